"""Control planes of a cloud: the generic actuator for ControlPlanes (spec 31 §6).

plan          what a provider renders from, and what it renders
contract      what a provider implements
resources     the ManagedResources that ship the objects
rollout       installation, removal and migration
hibernation   stops controllers when the API server of a Shoot has stopped
provider      the base class for providers
"""

from pergola.extensions.control_planes.plan import Credential, Plan, Rendered, data_checksum
from pergola.extensions.control_planes.provider import ControlPlaneProvider

__all__ = ["ControlPlaneProvider", "Credential", "Plan", "Rendered", "data_checksum"]
