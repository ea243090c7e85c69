"""The extension SDK: an author writes an `Actuator` for a kind and type, and the SDK does the rest.

Not for: the meaning of kinds; networks are in `pergola.providers.networking`.
"""

from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import Code, ExtensionError, RequeueAfter, SeveralErrors
from pergola.extensions.actuator import Actuator, Context, Status
from pergola.extensions.seed import Seed

__all__ = [
    "Actuator",
    "Cluster",
    "Code",
    "Context",
    "ExtensionError",
    "RequeueAfter",
    "Seed",
    "SeveralErrors",
    "Shoot",
    "Status",
]
