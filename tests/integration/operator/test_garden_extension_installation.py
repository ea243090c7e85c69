"""Waiting for the extensions that a Garden requires, on a real API server (spec 21 §13.8)."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from typing import Final

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.errors import ExtensionsMissing
from pergola.kube.client import Client
from pergola.operator.reconcile.extension_resources.installed import (
    LIMIT,
    managed_resource,
    wait_for_extensions,
)
from pergola.testing.waiting import PATIENCE
from tests.support.garden import landscape
from tests.support.garden_extensions import operator_extension

ONE: Final = operator_extension("one", "Extension/one")
TWO: Final = operator_extension("two", "Extension/two")
USES_BOTH: Final[JsonObject] = {"spec": {"extensions": [{"type": "one"}, {"type": "two"}]}}
UNREAD: Final = "generation 1 was not applied yet; the last one was 0"


@pytest.fixture(autouse=True)
async def _cleaned(runtime: Client) -> AsyncIterator[None]:
    """Delete all ManagedResources after the test."""
    yield
    for obj in await runtime.list(MANAGED_RESOURCE, "garden"):
        await runtime.delete(MANAGED_RESOURCE, Key.of(obj))


def site(*extensions: JsonObject) -> Landscape:
    return landscape(USES_BOTH, extensions=extensions)


async def install(runtime: Client, name: str) -> None:
    key = managed_resource(name)
    await runtime.create(
        {
            "apiVersion": MANAGED_RESOURCE.api_version,
            "kind": "ManagedResource",
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": {"class": "seed", "secretRefs": []},
        }
    )


async def report(runtime: Client, name: str, *, healthy: bool = True) -> None:
    """Write the status of an extension's ManagedResource, as a resource manager does."""
    states = {
        "ResourcesApplied": True,
        "ResourcesHealthy": healthy,
        "ResourcesProgressing": False,
    }
    now = "2026-01-01T00:00:00Z"
    conditions = [
        {
            "type": kind,
            "status": "True" if is_true else "False",
            "reason": "Said",
            "message": "",
            "lastTransitionTime": now,
            "lastUpdateTime": now,
        }
        for kind, is_true in states.items()
    ]
    status = {"observedGeneration": 1, "conditions": conditions}
    key = managed_resource(name)
    await runtime.patch(MANAGED_RESOURCE, key, {"status": status}, subresource="status")


class Notes:
    """The problems that a wait reports."""

    def __init__(self) -> None:
        self._noted: asyncio.Queue[str] = asyncio.Queue()

    def note(self, subject: str, problem: str) -> None:
        assert subject == "Extensions"
        self._noted.put_nowait(problem)

    async def until(self, *parts: str) -> None:
        """Wait until a problem contains all of these parts."""
        async with asyncio.timeout(PATIENCE):
            problem = await self._noted.get()
            while not all(part in problem for part in parts):
                problem = await self._noted.get()


@asynccontextmanager
async def waiting(client: Client, found: Landscape) -> AsyncGenerator[Notes]:
    """Wait for extensions while the block runs, and after it until they are ready."""
    notes = Notes()
    async with asyncio.TaskGroup() as group:
        group.create_task(wait_for_extensions(client, found, 60, notes.note))
        yield notes


async def test_ready_extensions_end_the_wait_at_once(client: Client, runtime: Client) -> None:
    for name in ("one", "two"):
        await install(runtime, name)
        await report(runtime, name)
    await wait_for_extensions(client, site(ONE, TWO), 30)


async def test_missing_and_unready_extensions_are_listed_with_the_reason(
    client: Client, runtime: Client
) -> None:
    assert LIMIT == 60
    await install(runtime, "one")
    await runtime.create(ONE)
    with pytest.raises(ExtensionsMissing) as raised:
        await wait_for_extensions(client, site(ONE), 5)
    assert str(raised.value) == (
        "extension controllers missing or unready: Extension/one (ManagedResource "
        f"garden/extension-one-garden: {UNREAD}), Extension/two (no Extension serves it)"
    )


async def test_an_extension_that_becomes_ready_is_noticed(client: Client, runtime: Client) -> None:
    for extension in (ONE, TWO):
        await runtime.create(extension)
    await install(runtime, "one")
    await report(runtime, "one")
    async with waiting(client, site(ONE, TWO)) as notes:
        await notes.until("extension-two-garden: it does not exist")
        await install(runtime, "two")
        await notes.until(f"extension-two-garden: {UNREAD}")
        await report(runtime, "two")


async def test_an_extension_created_during_the_wait_is_noticed(
    client: Client, runtime: Client
) -> None:
    await runtime.create(ONE)
    for name in ("one", "two"):
        await install(runtime, name)
        await report(runtime, name)
    async with waiting(client, site(ONE)) as notes:
        await notes.until("Extension/two (no Extension serves it)")
        await runtime.create(TWO)


async def test_an_extension_that_fails_while_another_is_awaited_is_noticed(
    client: Client, runtime: Client
) -> None:
    for extension in (ONE, TWO):
        await runtime.create(extension)
        await install(runtime, extension["metadata"]["name"])
    await report(runtime, "one")
    async with waiting(client, site(ONE, TWO)) as notes:
        await notes.until(f"extension-two-garden: {UNREAD}")
        await report(runtime, "one", healthy=False)
        await notes.until("extension-one-garden: condition ResourcesHealthy is False", UNREAD)
        await report(runtime, "two")
        await notes.until("extension-one-garden: condition ResourcesHealthy is False")
        await report(runtime, "one")
    assert await runtime.find(EXTENSION, Key("", "two"))
