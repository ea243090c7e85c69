"""The file system that all nodes can mount, with a mount target in each zone (spec 30 §10.2).

file_system    created, or user-provided
mount_targets  one in the worker subnet of each zone
deletion       of both; in a user-provided network nothing of EFS is touched
"""

from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.efs import file_system, mount_targets
from pergola.providers.aws.resources.step import Step

FILE_SYSTEM = file_system.NAME
MOUNT_TARGETS = mount_targets.NAME

__all__ = ["FILE_SYSTEM", "MOUNT_TARGETS", "steps"]


def steps(desired: Desired) -> list[Step]:
    """Return the steps of the file system and its mount targets."""
    why = None if desired.config.wants_efs else "EFS is not configured"
    return [file_system.step(desired, why), mount_targets.step(desired, why)]
