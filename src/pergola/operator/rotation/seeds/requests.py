"""Requesting an operation on all Seeds, and waiting until their gardenlets have performed it."""

import asyncio
from contextlib import aclosing
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, NotFound
from pergola.operator.rotation.seeds.following import standings
from pergola.operator.rotation.seeds.standing import (
    NotRenewed,
    Request,
    SeedsBusy,
    requesting,
    skipped_in,
    standing_of,
)
from pergola.operator.rotation.seeds.targets import Targets
from pergola.operator.run.run import Run
from pergola.runtime.logging import get_logger
from pergola.runtime.retrying import retrying
from pergola.runtime.task_group import TaskGroup

log = get_logger("rotation")

_AT_ONCE: Final = 5


async def annotate(run: Run, garden: Key, targets: Targets, request: Request) -> None:
    """Request an operation on all Seeds that have not received the request in this rotation.

    Raises:
        SeedsBusy: Some have another operation; none was annotated.
        NotConnected: The virtual cluster cannot be reached.
        KubeError: A cluster refused, or did not answer.
    """
    virtual = await run.virtual.client()
    objects = await targets.list(virtual)
    skipped = skipped_in(await run.client.find(GARDEN, garden))
    standing = standing_of(objects, request, skipped)
    subject = _subject(request)
    if standing.busy:
        busy = ", ".join(f"{name} has {operation}" for name, operation in standing.busy)
        run.note(subject, f"waiting for other operations: {busy}")
        raise SeedsBusy(targets.gvk.kind, standing.busy)
    run.note(subject, "")
    log.info(
        "operation requested",
        kind=targets.gvk.kind,
        operation=request.operation,
        count=len(standing.unasked),
        done=standing.done,
        skipped=standing.skipped,
    )
    slots = asyncio.Semaphore(_AT_ONCE)
    async with TaskGroup() as group:
        for obj in standing.unasked:
            group.create_task(_annotate(virtual, targets.gvk, obj, request, slots))


async def wait(run: Run, garden: Key, targets: Targets, request: Request, secrets: str) -> None:
    """Wait until no Seed has the operation any longer, except for those that a user excludes.

    An enclosing deadline reports which ones still have it.

    Args:
        secrets: The renewed credentials, such as `garden access`.

    Raises:
        NotConnected: The virtual cluster cannot be reached.
        KubeError: A cluster refused, or did not answer.
    """
    virtual = await run.virtual.client()
    objects = await targets.list(virtual)
    skipped = skipped_in(await run.client.find(GARDEN, garden))
    standing = standing_of(objects, request, skipped)
    if not standing.pending:
        return
    subject, kinds = _subject(request), f"{targets.gvk.kind}s"
    run.note(subject, standing.progress(kinds))
    try:
        with retrying() as failed:
            async with aclosing(standings(run, virtual, garden, targets, request)) as found:
                async for standing in found:
                    if not standing.pending:
                        return
                    failed(NotRenewed(targets.gvk.kind, secrets, standing))
                    run.note(subject, standing.progress(kinds))
    finally:
        run.note(subject, "")


async def _annotate(
    client: Client,
    gvk: GroupVersionKind,
    obj: JsonObject,
    request: Request,
    slots: asyncio.Semaphore,
) -> None:
    """Patch one Seed; one that changes concurrently is evaluated again."""
    key = Key.of(obj)
    async with slots:
        found: JsonObject | None = obj
        while found is not None:
            standing = standing_of([found], request, ())
            if standing.busy:
                raise SeedsBusy(gvk.kind, standing.busy)
            if not standing.unasked:
                return
            try:
                await client.patch(gvk, key, requesting(found, request))
            except Conflict:
                found = await client.find(gvk, key, metadata_only=True)
            except NotFound:
                return
            else:
                return


def _subject(request: Request) -> str:
    return f"Operation {request.operation}"
