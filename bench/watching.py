"""Observing processes from outside: their watches, and the ManagedResources they reconcile."""

import asyncio
import re
import time
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from typing import Final, Protocol

from bench.writes import NAMESPACE
from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.resource_manager.source import SeenResource, keep_resource
from pergola.runtime.caching.cache import Cache, Change
from pergola.testing.world import is_applied, is_ready

_STEP: Final = 0.5
_OPENS: Final = 300.0
PATIENCE: Final = 600.0
"""Seconds without progress after which a benchmark fails."""


class Running(Protocol):
    """A process that may end."""

    def check(self) -> None:
        """Fail if the process ended."""
        ...


async def watches(client: Client, resource: str) -> int:
    """Return the number of open watches of a resource."""
    text = (await client.get_raw("/metrics")).decode()
    total = 0
    for line in re.findall(r"^apiserver_longrunning_requests\{.*$", text, flags=re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if (labels.get("resource"), labels.get("verb")) == (resource, "WATCH"):
            total += int(float(line.rsplit(" ", 1)[1]))
    return total


async def another_watch(client: Client, resource: str, before: int, process: Running) -> None:
    """Wait until more watches of a resource are open than before the process was started."""
    deadline = time.monotonic() + _OPENS
    while await watches(client, resource) <= before:
        process.check()
        if time.monotonic() > deadline:
            raise SystemExit(f"the process did not watch {resource}")
        await asyncio.sleep(_STEP)


@dataclass(frozen=True)
class Pending:
    """The ManagedResources that are not applied, and those that are not ready."""

    unapplied: set[Key] = field(default_factory=set)
    unready: set[Key] = field(default_factory=set)
    changed: asyncio.Event = field(default_factory=asyncio.Event)

    async def emptied(self, pending: set[Key], running: Iterable[Running]) -> None:
        """Wait until one of the sets is empty; fail after ten minutes without progress."""
        deadline, least = time.monotonic() + PATIENCE, len(pending)
        while pending:
            for process in running:
                process.check()
            if len(pending) < least:
                deadline, least = time.monotonic() + PATIENCE, len(pending)
            if time.monotonic() > deadline:
                left = f"{len(pending)} ManagedResources, such as {min(pending)}"
                raise SystemExit(f"{left}, made no progress for {PATIENCE:.0f} s")
            self.changed.clear()
            try:
                await asyncio.wait_for(self.changed.wait(), 5)
            except TimeoutError:
                continue


@asynccontextmanager
async def pending(client: Client) -> AsyncIterator[Pending]:
    """Follow the ManagedResources while the block lasts."""
    cache = Cache(client, MANAGED_RESOURCE, keep_resource, namespace=NAMESPACE)
    found = Pending()

    def note(change: Change[SeenResource]) -> None:
        if change.new is None:
            return
        resource = change.new.unpack()
        (found.unapplied.discard if is_applied(resource) else found.unapplied.add)(change.key)
        (found.unready.discard if is_ready(resource) else found.unready.add)(change.key)
        found.changed.set()

    cache.subscribe(note)
    following = asyncio.create_task(cache.run())
    try:
        await cache.synced()
        yield found
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)
