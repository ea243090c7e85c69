"""A file system that all nodes can mount, with a door to it in every zone (spec 30 §10.2).

In a network that users bring, both are theirs: what there is is only remembered.
"""

import asyncio
from collections.abc import Iterator, Mapping
from contextlib import suppress
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.cloud.errors import AlreadyExists, DependencyProblem, NotFound
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.security_rules import nodes_security_groups
from pergola.providers.aws.snapshot import tags_of
from pergola.providers.aws.status import file_system_of
from pergola.providers.aws.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.steps import names
from pergola.providers.aws.steps.security_group import NODES_GROUP
from pergola.providers.aws.steps.waiting import LOOKS, all_done, wait_until
from pergola.providers.aws.tags import as_list
from pergola.providers.aws.wanted import Wanted

FILE_SYSTEM: Final = "ensure EFS file system"
MOUNT_TARGETS: Final = "ensure EFS mount targets"
MANAGED: Final[Mapping[str, str]] = {"managed-by-gardener": "true"}
"""What tells a file system of ours from one of the user."""
_AVAILABLE: Final = "available"
_GOING: Final = ("deleting", "deleted")
_PARTS: Final = 3
"""Of the key of a mount target that is ours: file system, subnet, security group."""


class _Target(NamedTuple):
    """A mount target: in one subnet, reached through one security group."""

    file_system: str
    subnet: str
    group: str
    zone: str

    @property
    def key(self) -> str:
        return keys.mount_target_key(self.file_system, self.subnet, self.group)


def steps(wanted: Wanted, *, after: tuple[str, ...] = ()) -> list[Step]:
    """The steps of the file system and its mount targets.

    Args:
        after: further steps that have to be done before there are mount targets.
    """
    config = wanted.config
    why = None if config.wants_efs else "there is no EFS in the configuration"
    brought = "subnets are brought by the user, and so is the file system"
    zones = () if config.brings_subnets else config.networks.zones
    subnets = [names.subnets(zone.name) for zone in zones]
    return [
        Step(
            name=FILE_SYSTEM,
            plan=_plan_system,
            ensure=_ensure_system,
            skip=why or (brought if config.brings_subnets else None),
            timeout=LONG_TIMEOUT,
        ),
        Step(
            name=MOUNT_TARGETS,
            plan=_plan_targets,
            ensure=_ensure_targets,
            after=(FILE_SYSTEM, NODES_GROUP, *subnets, *after),
            skip=why,
            timeout=LONG_TIMEOUT,
        ),
    ]


# The file system


def _plan_system(work: Work) -> Note:
    named = _named(work)
    if named:
        return Note(Fate.KEEP, f"{named}, brought by the user")
    system = work.snapshot.file_system
    if system is None or system.get("LifeCycleState") in _GOING:
        return Note(Fate.CREATE, f'file system "{work.wanted.name()}"')
    name = str(system["FileSystemId"])
    if _tags(work).items() <= tags_of(system).items():
        return Note(Fate.KEEP, name)
    return Note(Fate.CHANGE, f"tags of {name}")


async def _ensure_system(work: Work) -> None:
    if _named(work):
        return
    system = await _present(work) or await _create(work)
    name = str(system["FileSystemId"])
    work.state.created(keys.FILE_SYSTEM, name)
    if system.get("LifeCycleState") != _AVAILABLE:
        system = await wait_until(work, lambda: _available(work, name))
    present, tags = tags_of(system), _tags(work)
    changed = {key: value for key, value in tags.items() if present.get(key) != value}
    if changed:
        await work.aws.call("efs", "TagResource", ResourceId=name, Tags=as_list(changed))
        system["Tags"] = as_list({**present, **changed})
    work.snapshot.file_system = system


async def _present(work: Work) -> JsonObject | None:
    """The file system of the state or with our creation token; None if there is none."""
    system, known = work.snapshot.file_system, work.state.get(keys.FILE_SYSTEM)
    if system is None and known:
        system = await _look(work, LOOKS, FileSystemId=known)
    return None if system is None or system.get("LifeCycleState") in _GOING else system


async def _create(work: Work) -> JsonObject:
    token = work.wanted.shoot_uid or work.wanted.technical_id
    try:
        answer = await work.aws.call(
            "efs",
            "CreateFileSystem",
            CreationToken=token,
            Encrypted=True,
            Tags=as_list(_tags(work)),
        )
    except AlreadyExists:  # the snapshot is older, or the token was used without a uid
        return await wait_until(work, lambda: _look(work, 1, CreationToken=token))
    return answer


async def _look(work: Work, looks: int, **by: str) -> JsonObject | None:
    """A file system as AWS describes it; what is new may not be seen at the first look."""
    for look in range(looks):
        if look:
            await asyncio.sleep(work.poll_seconds)
        try:
            found = await work.aws.pages("efs", "DescribeFileSystems", "FileSystems", **by)
        except NotFound:
            continue
        if found:
            return found[0]
    return None


async def _available(work: Work, name: str) -> JsonObject | None:
    system = await _look(work, 1, FileSystemId=name)
    return system if system and system.get("LifeCycleState") == _AVAILABLE else None


def _named(work: Work) -> str:
    efs = work.wanted.config.elastic_file_system
    return (efs.id if efs else None) or ""


def _tags(work: Work) -> dict[str, str]:
    return work.wanted.tags(**MANAGED)


# Mount targets


def _plan_targets(work: Work) -> Note:
    if work.wanted.config.brings_subnets:
        return Note(Fate.KEEP, "mount targets are the user's; they are only looked at")
    missing = [t.zone for t in _desired(work) if _target_of(work, t) is None]
    if missing or not file_system_of(work.wanted, work.state):
        zones = missing or [zone.name for zone in work.wanted.config.networks.zones]
        return Note(Fate.CREATE, f"mount targets in {', '.join(zones)}")
    outdated = sorted(_outdated(work).values())
    if outdated or _replaced(work):
        return Note(Fate.CHANGE, f"{', '.join(outdated)} no longer needed")
    return Note(Fate.KEEP)


async def _ensure_targets(work: Work) -> None:
    if work.wanted.config.brings_subnets:
        _remember_users(work)
        return
    await all_done(*(_remove(work, key, name) for key, name in _outdated(work).items()))
    await all_done(*(_ensure_target(work, target) for target in _desired(work)))
    replaced = _replaced(work)
    if replaced:
        await _delete_system(work, replaced)


def _remember_users(work: Work) -> None:
    """Notes where the user's mount targets are; for people, nothing depends on it."""
    present = {
        keys.mount_target_key(each["FileSystemId"], each["SubnetId"]): name
        for name, each in work.snapshot.mount_targets.items()
    }
    for key in work.state.under(keys.MOUNT_TARGETS):
        whole = f"{keys.MOUNT_TARGETS}/{key}"
        if whole not in present:
            work.state.forget(whole)
    for key, name in present.items():
        work.state.set(key, name)


def _desired(work: Work) -> Iterator[_Target]:
    """One in the workers' subnet of each zone; none for what is not there yet."""
    system = file_system_of(work.wanted, work.state)
    groups = nodes_security_groups(work.wanted, work.state)
    for zone in work.wanted.config.networks.zones:
        subnet = work.state.get(keys.zone_key(zone.name, keys.SUBNET_WORKERS))
        if system and groups and subnet:
            yield _Target(system, subnet, groups[0], zone.name)


def _target_of(work: Work, wanted: _Target) -> str | None:
    """The id of a mount target that is there: ours by the state, or the one in our subnet."""
    present = {
        name: each
        for name, each in work.snapshot.mount_targets.items()
        if each.get("LifeCycleState") not in _GOING
    }
    known = work.state.get(wanted.key)
    if known in present:
        return known
    here = (name for name, each in present.items() if each.get("SubnetId") == wanted.subnet)
    # One of ours with another group is replaced; it is under a key of its own.
    others = set(_outdated(work).values())
    return next((name for name in here if name not in others), None)


async def _ensure_target(work: Work, wanted: _Target) -> None:
    name = _target_of(work, wanted)
    if name is None:
        if _users_in(work, wanted):
            return
        target = await _create_target(work, wanted)
        name = str(target["MountTargetId"])
        work.snapshot.mount_targets[name] = target
    work.state.created(wanted.key, name)
    if work.snapshot.mount_targets[name].get("LifeCycleState") != _AVAILABLE:
        work.snapshot.mount_targets[name] = await wait_until(
            work, lambda: _target(work, name, _AVAILABLE)
        )


def _users_in(work: Work, wanted: _Target) -> bool:
    """Whether the zone is served by a mount target of the user: AWS allows one in each."""
    for name, each in work.snapshot.mount_targets.items():
        if each.get("AvailabilityZoneName") == wanted.zone and _named(work):
            work.warnings.append(
                f"file system {wanted.file_system} has mount target {name} in {wanted.zone} "
                f"already; let its security group allow tcp 2049 from {wanted.group}"
            )
            return True
    return False


async def _create_target(work: Work, wanted: _Target) -> JsonObject:
    try:
        return await work.aws.call(
            "efs",
            "CreateMountTarget",
            FileSystemId=wanted.file_system,
            SubnetId=wanted.subnet,
            SecurityGroups=[wanted.group],
        )
    except (AlreadyExists, DependencyProblem):
        found = await _targets(work, FileSystemId=wanted.file_system)
        for target in found:  # the snapshot is older
            if target.get("SubnetId") == wanted.subnet:
                return target
        raise


async def _target(work: Work, name: str, state: str) -> JsonObject | None:
    found = await _targets(work, MountTargetId=name)
    return next((each for each in found if each.get("LifeCycleState") == state), None)


async def _targets(work: Work, **by: str) -> list[JsonObject]:
    try:
        return await work.aws.pages("efs", "DescribeMountTargets", "MountTargets", **by)
    except NotFound:
        return []


# What is not wanted any more


def _outdated(work: Work) -> dict[str, str]:
    """Mount targets of ours with another subnet, group or file system: ids by their keys."""
    wanted = {target.key for target in _desired(work)}
    ours = {
        f"{keys.MOUNT_TARGETS}/{key}": name
        for key, name in work.state.under(keys.MOUNT_TARGETS).items()
        if len(key.split("_")) == _PARTS
    }
    return {key: name for key, name in ours.items() if key not in wanted}


def _replaced(work: Work) -> str:
    """The file system of ours that one of the user took the place of; empty if there is none."""
    known, named = work.state.get(keys.FILE_SYSTEM), _named(work)
    return known if known and named and known != named else ""


async def _remove(work: Work, key: str, name: str) -> None:
    with suppress(NotFound):
        await work.aws.call("efs", "DeleteMountTarget", MountTargetId=name)
        await wait_until(work, lambda: _gone(work, name))
    work.snapshot.mount_targets.pop(name, None)
    work.state.forget(key)


async def _gone(work: Work, name: str) -> bool | None:
    return None if await _targets(work, MountTargetId=name) else True


async def _delete_system(work: Work, name: str) -> None:
    with suppress(NotFound):
        await work.aws.call("efs", "DeleteFileSystem", FileSystemId=name)
    work.state.forget(keys.FILE_SYSTEM)
