"""All callers that need a kind wait for the same first lists."""

import asyncio
from typing import cast

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.kube.client import Client
from pergola.resource_manager.target import watches
from pergola.resource_manager.target.autoscalers import Autoscalers
from pergola.resource_manager.target.watches import Watched, Watches

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")
AUTOSCALER: JsonObject = {"metadata": {"name": "a", "namespace": "garden"}}


class Server:
    """A server that answers lists, but no watches."""

    async def list(self, gvk: GroupVersionKind, namespace: str) -> list[JsonObject]:
        """Return one autoscaler."""
        assert (gvk.kind, namespace) == ("HorizontalPodAutoscaler", "garden")
        return [AUTOSCALER]


def target() -> Watches:
    """Return the watches of a target whose watches are not run."""
    return Watches(cast("Client", Server()), managed_by="gardener", namespaces=())


def appear(kind: Watched[JsonObject]) -> None:
    """Complete the first lists."""
    for cache in kind.caches:
        cache._complete(set(), "1")


async def test_all_callers_wait_for_the_first_list() -> None:
    kind = target().make(CONFIG_MAP, dict)
    waiting = [asyncio.create_task(kind.listed()) for _ in range(3)]
    await asyncio.sleep(0)
    assert not any(task.done() for task in waiting)
    appear(kind)
    assert await asyncio.gather(*waiting) == [True, True, True]


async def test_callers_wait_only_briefly_but_a_late_list_is_used(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watches, "_FIRST_LIST_SECONDS", -1.0)
    kind = target().make(CONFIG_MAP, dict)
    assert not await kind.listed()
    assert not await kind.listed()
    appear(kind)
    assert await kind.listed()


async def test_autoscalers_are_read_directly_until_they_are_listed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(watches, "_FIRST_LIST_SECONDS", -1.0)
    autoscalers = Autoscalers(target())
    assert await autoscalers.of(["garden"]) == [AUTOSCALER]
