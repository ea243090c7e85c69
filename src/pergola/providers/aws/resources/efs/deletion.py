"""Deletion of the mount targets and file system that were created (spec 30 §10.2).

Mount targets are deleted only in subnets of this cluster: a user-provided file system may have
others. With user-provided subnets, EFS is not touched at all.
"""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import NotFound
from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.removal import (
    LONG_POLLS,
    decide_to_delete,
    each,
    is_ours,
    remove,
)
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.resources.subnets.deletion import subnets_in
from pergola.providers.aws.resources.waiting import wait_until

DELETE: Final = "delete EFS"
_OURS: Final = ("managed-by-gardener", "true")
_GONE: Final = "deleted"


def delete_step(desired: Desired, state: State) -> Step:
    """Return the step that deletes the file system and its mount targets."""
    is_known = state.get(keys.FILE_SYSTEM) or state.under(keys.MOUNT_TARGETS)
    skip = None if desired.config.wants_efs or is_known else "there is no file system"
    if desired.config.byo_subnets:
        skip = "file system and mount targets are user-provided"
    return Step(name=DELETE, decide=_decide, skip=skip, timeout=LONG_TIMEOUT)


def _decide(work: Work) -> Decision:
    targets, systems = _targets(work), _systems(work)
    known = (f"{keys.MOUNT_TARGETS}/{name}" for name in work.state.under(keys.MOUNT_TARGETS))

    async def remove_all(work: Work, _: list[str]) -> None:
        await each(_remove_target)(work, targets)
        await each(_remove_system)(work, systems)

    return decide_to_delete(work, [*targets, *systems], remove_all, (keys.FILE_SYSTEM, *known))


async def _remove_system(work: Work, system: str) -> None:
    # In use until AWS has removed the mount targets, so retry.
    await remove(work, "DeleteFileSystem", service="efs", polls=LONG_POLLS, FileSystemId=system)
    work.snapshot.file_system = None


async def _remove_target(work: Work, target: str) -> None:
    """Delete one; its network interface stays in a subnet until it is gone."""

    async def is_gone() -> bool | None:
        try:
            found = await work.aws.pages(
                "efs", "DescribeMountTargets", "MountTargets", MountTargetId=target
            )
        except NotFound:
            return True
        return all(one.get("LifeCycleState") == _GONE for one in found) or None

    await remove(work, "DeleteMountTarget", service="efs", MountTargetId=target)
    await wait_until(work, is_gone)
    work.snapshot.mount_targets.pop(target, None)


def _targets(work: Work) -> list[str]:
    """Return the mount targets in managed subnets."""
    found = {
        name
        for name, target in work.snapshot.mount_targets.items()
        if _in_subnet_of_ours(work, str(target.get("SubnetId", "")))
    }
    found |= {
        target
        for key, target in work.state.under(keys.MOUNT_TARGETS).items()
        if target not in work.snapshot.mount_targets and _in_subnet_of_ours(work, _subnet(key))
    }
    return sorted(found)


def _subnet(key: str) -> str:
    """Return the subnet in a mount target's key: `<file system>_<subnet>_<security group>`."""
    return key.partition("_")[2].partition("_")[0]


def _in_subnet_of_ours(work: Work, subnet: str) -> bool:
    zones = {
        *keys.zones_of(work.state),
        *(zone.name for zone in work.desired.config.networks.zones),
    }
    return any(subnet in subnets_in(work, zone) for zone in zones)


def _systems(work: Work) -> list[str]:
    config = work.desired.config.elastic_file_system
    of_user = config.id if config is not None else None
    names = {work.state.get(keys.FILE_SYSTEM)}
    system = work.snapshot.file_system
    if system is not None and _was_created(work, system):
        names.add(str(system["FileSystemId"]))
    return sorted(name for name in names if name and name != of_user)


def _was_created(work: Work, system: JsonObject) -> bool:
    return is_ours(work, system, (work.desired.name(),)) and _OURS in tags_of(system).items()
