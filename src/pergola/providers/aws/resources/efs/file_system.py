"""The EFS file system: created, or user-provided (spec 30 §10.2)."""

import asyncio
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import AlreadyExists, NotFound
from pergola.flow.picture import Fate, Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
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
        plan=_plan,
        ensure=_ensure,
        skip=skip or (byo if desired.config.byo_subnets else None),
        timeout=LONG_TIMEOUT,
    )


def _plan(work: Work) -> Note:
    named = user_provided(work)
    if named:
        return Note(Fate.KEEP, f"{named}, user-provided")
    system = work.snapshot.file_system
    if system is None or system.get("LifeCycleState") in GOING:
        return Note(Fate.CREATE, f'file system "{work.desired.name()}"')
    name = str(system["FileSystemId"])
    if _tags(work).items() <= tags_of(system).items():
        return Note(Fate.KEEP, name)
    return Note(Fate.CHANGE, f"tags of {name}")


async def _ensure(work: Work) -> None:
    if user_provided(work):
        return
    system = await _present(work) or await _create(work)
    name = str(system["FileSystemId"])
    work.state.created(keys.FILE_SYSTEM, name)
    if system.get("LifeCycleState") != AVAILABLE:
        system = await wait_until(work, lambda: _available(work, name))
    present, tags = tags_of(system), _tags(work)
    changed = {key: value for key, value in tags.items() if present.get(key) != value}
    if changed:
        await work.aws.call("efs", "TagResource", ResourceId=name, Tags=as_list(changed))
        system["Tags"] = as_list({**present, **changed})
    work.snapshot.file_system = system


async def _present(work: Work) -> JsonObject | None:
    """Return the file system in the state, or with our creation token; None if there is none."""
    system, known = work.snapshot.file_system, work.state.get(keys.FILE_SYSTEM)
    if system is None and known:
        system = await _observe(work, POLLS, FileSystemId=known)
    return None if system is None or system.get("LifeCycleState") in GOING else system


async def _create(work: Work) -> JsonObject:
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
        return await wait_until(work, lambda: _observe(work, 1, CreationToken=token))
    return answer


async def _observe(work: Work, polls: int, **by: str) -> JsonObject | None:
    """Describe a file system; a new one may not be visible at the first attempt."""
    for observe in range(polls):
        if observe:
            await asyncio.sleep(work.poll_seconds)
        try:
            found = await work.aws.pages("efs", "DescribeFileSystems", "FileSystems", **by)
        except NotFound:
            continue
        if found:
            return found[0]
    return None


async def _available(work: Work, name: str) -> JsonObject | None:
    system = await _observe(work, 1, FileSystemId=name)
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
