"""Deletions end with the run that sends them."""

import asyncio
from datetime import UTC, datetime
from types import SimpleNamespace
from typing import Any, cast

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.resource_manager.controllers.managed_resource.prune import Pruner
from pergola.resource_manager.origin import Origin
from pergola.resource_manager.target import Target
from pergola.runtime.clock import FakeClock

pytestmark = pytest.mark.looptime(start=0)

OWNER = Origin("", "ns", "mr")


class OneBreaks:
    """A client that fails unexpectedly on one object, while it is reading the others.

    Attributes:
        written: the names of the objects that were deleted or patched.
    """

    def __init__(self) -> None:
        self.written: list[str] = []

    async def get(self, _: GroupVersionKind, key: Key) -> JsonObject:
        if key.name == "broken":
            raise RuntimeError("a defect")
        await asyncio.sleep(1)
        return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": key.name, "uid": "1"}}

    async def delete(self, _: GroupVersionKind, key: Key, **__: object) -> bool:
        self.written.append(key.name)
        return True


async def spare_none(*_: object) -> None:
    """Leave all objects to the ManagedResource that deletes them."""


@pytest.mark.parametrize("names", [("broken", "other"), ("other", "broken")])
async def test_no_deletion_is_sent_after_its_run_has_failed(names: tuple[str, ...]) -> None:
    client = OneBreaks()
    target = cast("Target", SimpleNamespace(client=cast("Any", client)))
    clock = FakeClock(datetime(2026, 1, 1, tzinfo=UTC))
    pruner = Pruner(target, clock, collects_garbage=False)
    references: list[JsonObject] = [
        {"apiVersion": "v1", "kind": "ConfigMap", "namespace": "ns", "name": name} for name in names
    ]
    with pytest.raises(RuntimeError, match="a defect"):
        await pruner.delete(references, OWNER, claims=False, spare=spare_none)
    await asyncio.sleep(60)
    assert client.written == []
