"""The EFS file system: created, or user-provided (spec 30 §10.2)."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from functools import partial
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import AlreadyExists, NotFound
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.decision import Decision
from pergola.providers.aws.resources.step import LONG_TIMEOUT, Step, Work
from pergola.providers.aws.resources.tags import as_list
from pergola.providers.aws.resources.waiting import POLLS, wait_until

NAME: Final = "ensure EFS file system"
MANAGED: Final[Mapping[str, str]] = {"managed-by-gardener": "true"}
"""Tags that mark a managed file system."""
AVAILABLE: Final = "available"
GOING: Final = ("deleting", "deleted")


def step(desired: Desired, skip: str | None) -> Step:
    """Return the step that creates the file system; none is created for user-provided subnets."""
    byo = "subnets are user-provided, and so is the file system"
    return Step(
        name=NAME,
        observe=_observe,
        decide=_decide,
        skip=skip or (byo if desired.config.byo_subnets else None),
        timeout=LONG_TIMEOUT,
    )


async def _observe(work: Work) -> None:
    """Describe a file system that the state names, and wait until it is available."""
    known = work.state.get(keys.FILE_SYSTEM)
    if user_provided(work):
        return
    if work.snapshot.file_system is None and known:
        work.snapshot.file_system = await _described(work, POLLS, FileSystemId=known)
    name = _present(work)
    if name and (work.snapshot.file_system or {}).get("LifeCycleState") != AVAILABLE:
        work.snapshot.file_system = await wait_until(work, lambda: _available(work, name))


def _decide(work: Work) -> Decision:
    named, name = user_provided(work), _present(work)
    if named:
        return Decision.keep(f"{named}, user-provided")
    if name is None:
        new = f'file system "{work.desired.name()}"'
        return Decision.creation(new, partial(_create, work), record={keys.FILE_SYSTEM: ""})
    present, record = tags_of(work.snapshot.file_system or {}), {keys.FILE_SYSTEM: name}
    changed = {key: value for key, value in _tags(work).items() if present.get(key) != value}
    if not changed:
        return Decision.keep(name, record)
    return Decision.change(f"tags of {name}", partial(_tag, work, name, changed), record=record)


def _present(work: Work) -> str | None:
    """Return the file system in the state, or with our creation token; None if there is none."""
    system = work.snapshot.file_system
    if system is None or system.get("LifeCycleState") in GOING:
        return None
    return str(system["FileSystemId"])


async def _tag(work: Work, name: str, changed: Mapping[str, str]) -> None:
    await work.aws.call("efs", "TagResource", ResourceId=name, Tags=as_list(changed))
    system = work.snapshot.file_system or {}
    system["Tags"] = as_list({**tags_of(system), **changed})


async def _create(work: Work) -> None:
    token = work.desired.shoot_uid or work.desired.technical_id
    try:
        answer = await work.aws.call(
            "efs",
            "CreateFileSystem",
            CreationToken=token,
            Encrypted=True,
            Tags=as_list(_tags(work)),
        )
    except AlreadyExists:  # the snapshot is older, or the token was used without a uid
        answer = await wait_until(work, lambda: _usable(work, token))
    work.snapshot.file_system = answer
    work.state.created(keys.FILE_SYSTEM, str(answer["FileSystemId"]))


async def _described(work: Work, polls: int, **by: str) -> JsonObject | None:
    """Describe a file system; a new one may not be visible at the first attempt."""
    for attempt in range(polls):
        if attempt:
            await asyncio.sleep(work.poll_seconds)
        try:
            found = await work.aws.pages("efs", "DescribeFileSystems", "FileSystems", **by)
        except NotFound:
            continue
        if found:
            return found[0]
    return None


async def _usable(work: Work, token: str) -> JsonObject | None:
    system = await _described(work, 1, CreationToken=token)
    return None if system is None or system.get("LifeCycleState") in GOING else system


async def _available(work: Work, name: str) -> JsonObject | None:
    system = await _described(work, 1, FileSystemId=name)
    return system if system and system.get("LifeCycleState") == AVAILABLE else None


def user_provided(work: Work) -> str:
    """Return the id of the user's file system; empty if it is managed."""
    efs = work.desired.config.elastic_file_system
    return (efs.id if efs else None) or ""


def _tags(work: Work) -> dict[str, str]:
    return work.desired.tags(**MANAGED)


def replaced(work: Work) -> str:
    """Return the managed file system that a user-provided one replaces; empty if there is none."""
    known, named = work.state.get(keys.FILE_SYSTEM), user_provided(work)
    return known if known and named and known != named else ""


async def delete_replaced(work: Work, name: str) -> None:
    """Delete the managed file system that a user-provided one replaced."""
    with suppress(NotFound):
        await work.aws.call("efs", "DeleteFileSystem", FileSystemId=name)
    work.state.forget(keys.FILE_SYSTEM)
