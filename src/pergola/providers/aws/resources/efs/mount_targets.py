"""EFS mount targets: one in the worker subnet of each zone (spec 30 §10.2).

In a user-provided network they are the user's, and existing ones are only recorded.
"""

from collections.abc import Iterable, Iterator
from contextlib import suppress
from functools import partial
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.cloud.errors import AlreadyExists, DependencyProblem, NotFound
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.decision import Decision, all_done, together
from pergola.providers.aws.resources.efs import file_system
from pergola.providers.aws.resources.efs.file_system import (
    AVAILABLE,
    GOING,
    delete_replaced,
    replaced,
    user_provided,
)
from pergola.providers.aws.resources.security_group import NODES_GROUP
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.resources.waiting import wait_until
from pergola.providers.aws.status import file_system_of, nodes_security_group

NAME: Final = "ensure EFS mount targets"
_PARTS: Final = 3
"""The parts of the key of a managed mount target: file system, subnet, security group."""


class _Target(NamedTuple):
    """A mount target: in one subnet, reached through one security group."""

    file_system: str
    subnet: str
    group: str
    zone: str

    @property
    def key(self) -> str:
        return keys.mount_target_key(self.file_system, self.subnet, self.group)


def step(desired: Desired, skip: str | None) -> Step:
    """Return the step that creates the mount targets, or records the user's."""
    zones = () if desired.config.byo_subnets else desired.config.networks.zones
    subnets = [names.subnets(zone.name) for zone in zones]
    return Step(
        name=NAME,
        observe=_observe,
        decide=_decide,
        after=(file_system.NAME, NODES_GROUP, *subnets),
        skip=skip,
        timeout=LONG_TIMEOUT,
    )


async def _observe(work: Work) -> None:
    """Wait until the existing mount targets are available."""
    if not work.desired.config.byo_subnets:
        existing = (_target_of(work, target) for target in _desired(work))
        await all_done(*(_wait(work, name) for name in existing if name))


def _decide(work: Work) -> Decision:
    if work.desired.config.byo_subnets:
        return Decision.keep("mount targets are user-provided, and only observed", _of_users(work))
    names = {target: _target_of(work, target) for target in _desired(work)}
    outdated, old = _outdated(work), replaced(work)
    absent = [target for target, name in names.items() if name is None]
    warnings = {target: text for target in absent if (text := _obstacle(work, target))}
    missing = [target for target in absent if target not in warnings]
    return Decision(
        _note(work, missing, outdated.values(), old),
        (
            together(*(partial(_remove, work, *each) for each in outdated.items())),
            together(*(partial(_create, work, target) for target in missing)),
            *([partial(delete_replaced, work, old)] if old else []),
        ),
        record={target.key: name for target, name in names.items() if name},
        warnings=tuple(warnings.values()),
    )


def _note(work: Work, missing: list[_Target], outdated: Iterable[str], old: str) -> Note:
    if missing or not file_system_of(work.desired, work.state):
        every = [zone.name for zone in work.desired.config.networks.zones]
        zones = [target.zone for target in missing] or every
        return Note(Fate.CREATE, f"mount targets in {', '.join(zones)}")
    gone = sorted(outdated)
    if gone or old:
        return Note(Fate.CHANGE, f"{', '.join(gone)} no longer needed")
    return Note(Fate.KEEP)


def _of_users(work: Work) -> dict[str, str]:
    """Return what the state gets about the user's mount targets, for observability only."""
    present = {
        keys.mount_target_key(each["FileSystemId"], each["SubnetId"]): name
        for name, each in work.snapshot.mount_targets.items()
    }
    known = (f"{keys.MOUNT_TARGETS}/{key}" for key in work.state.under(keys.MOUNT_TARGETS))
    return dict.fromkeys(known, "") | present


def _desired(work: Work) -> Iterator[_Target]:
    """Yield one for the worker subnet of each zone, as far as all of its parts exist."""
    system = file_system_of(work.desired, work.state)
    group = nodes_security_group(work.desired, work.state)
    for zone in work.desired.config.networks.zones:
        subnet = work.state.get(keys.zone_key(zone.name, keys.SUBNET_WORKERS))
        if system and group and subnet:
            yield _Target(system, subnet, group, zone.name)


def _target_of(work: Work, desired: _Target) -> str | None:
    """Return the id of an existing mount target: ours by the state, or the one in our subnet."""
    present = {
        name: each
        for name, each in work.snapshot.mount_targets.items()
        if each.get("LifeCycleState") not in GOING
    }
    known = work.state.get(desired.key)
    if known in present:
        return known
    here = (name for name, each in present.items() if each.get("SubnetId") == desired.subnet)
    # One of ours with another group is replaced; it has its own key.
    others = set(_outdated(work).values())
    return next((name for name in here if name not in others), None)


def _obstacle(work: Work, desired: _Target) -> str | None:
    """Return the warning about a user's mount target in the zone: AWS allows one per zone."""
    outdated = set(_outdated(work).values())
    for name, each in work.snapshot.mount_targets.items() if user_provided(work) else ():
        if each.get("AvailabilityZoneName") == desired.zone and name not in outdated:
            return (
                f"file system {desired.file_system} already has mount target {name} in "
                f"{desired.zone}; make its security group allow tcp 2049 from {desired.group}"
            )
    return None


async def _create(work: Work, desired: _Target) -> None:
    target = await _create_target(work, desired)
    name = str(target["MountTargetId"])
    work.snapshot.mount_targets[name] = target
    work.state.created(desired.key, name)
    await _wait(work, name)


async def _wait(work: Work, name: str) -> None:
    if work.snapshot.mount_targets[name].get("LifeCycleState") != AVAILABLE:
        found = await wait_until(work, lambda: _target(work, name, AVAILABLE))
        work.snapshot.mount_targets[name] = found


async def _create_target(work: Work, desired: _Target) -> JsonObject:
    try:
        return await work.aws.call(
            "efs",
            "CreateMountTarget",
            FileSystemId=desired.file_system,
            SubnetId=desired.subnet,
            SecurityGroups=[desired.group],
            IpAddressType=_address_type(work.desired),
        )
    except (AlreadyExists, DependencyProblem):
        found = await _targets(work, FileSystemId=desired.file_system)
        for target in found:  # the snapshot is older
            if target.get("SubnetId") == desired.subnet:
                return target
        raise


def _address_type(desired: Desired) -> str:
    """Return the IP families of a mount target's addresses; AWS never changes them."""
    if not desired.ipv6:
        return "IPV4_ONLY"
    return "DUAL_STACK" if desired.ipv4 else "IPV6_ONLY"


async def _target(work: Work, name: str, state: str) -> JsonObject | None:
    found = await _targets(work, MountTargetId=name)
    return next((each for each in found if each.get("LifeCycleState") == state), None)


async def _targets(work: Work, **by: str) -> list[JsonObject]:
    try:
        return await work.aws.pages("efs", "DescribeMountTargets", "MountTargets", **by)
    except NotFound:
        return []


def _outdated(work: Work) -> dict[str, str]:
    """Return our mount targets with another subnet, group or file system: ids by their keys."""
    desired = {target.key for target in _desired(work)}
    ours = {
        f"{keys.MOUNT_TARGETS}/{key}": name
        for key, name in work.state.under(keys.MOUNT_TARGETS).items()
        if len(key.split("_")) == _PARTS
    }
    return {key: name for key, name in ours.items() if key not in desired}


async def _remove(work: Work, key: str, name: str) -> None:
    with suppress(NotFound):
        await work.aws.call("efs", "DeleteMountTarget", MountTargetId=name)
        await wait_until(work, lambda: _gone(work, name))
    work.snapshot.mount_targets.pop(name, None)
    work.state.forget(key)


async def _gone(work: Work, name: str) -> bool | None:
    return None if await _targets(work, MountTargetId=name) else True
