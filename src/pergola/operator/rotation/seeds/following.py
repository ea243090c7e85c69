"""Following the progress of an operation on all Seeds, and the Seeds that a user excludes."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube import states
from pergola.kube.client import Client
from pergola.operator.rotation.seeds.standing import Request, Standing, skipped_in, standing_of
from pergola.operator.rotation.seeds.targets import Targets
from pergola.operator.run.run import Run

_POLL_SECONDS: Final = 5.0


async def standings(
    run: Run, virtual: Client, garden: Key, targets: Targets, request: Request
) -> AsyncGenerator[Standing]:
    """Yield the progress of the Seeds, now and when one of them or the user's exclusions change.

    Raises:
        KubeError: They, or the Garden, cannot be read.
    """
    changed = asyncio.Event()
    objects: list[JsonObject] | None = None
    skipped: frozenset[str] | None = None

    async def follow_objects() -> None:
        nonlocal objects
        found = states.all_watched(virtual, targets.gvk, targets.namespace)
        async with aclosing(found) as collections:
            async for collection in collections:
                objects = [obj for key, obj in collection.items() if targets.count(key)]
                changed.set()

    async def follow_decision() -> None:
        nonlocal skipped
        found = states.watched(run.client, GARDEN, garden, _POLL_SECONDS)
        async with aclosing(found) as gardens:
            async for each in gardens:
                skipped = skipped_in(each)
                changed.set()

    following = [asyncio.create_task(each()) for each in (follow_objects, follow_decision)]
    try:
        while True:
            turn = asyncio.create_task(changed.wait())
            await asyncio.wait([turn, *following], return_when=asyncio.FIRST_COMPLETED)
            turn.cancel()
            for task in following:
                if task.done():
                    task.result()
            changed.clear()
            if objects is not None and skipped is not None:
                yield standing_of(objects, request, skipped)
    finally:
        for task in following:
            task.cancel()
        await asyncio.gather(*following, return_exceptions=True)
