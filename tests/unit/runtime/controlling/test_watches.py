"""Triggers of a controller: sources of events, predicates and mappings."""

import asyncio
from collections.abc import Iterable

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.runtime.caching.cache import Change
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.queue import Queue
from pergola.runtime.controlling.unit import Controller
from pergola.runtime.controlling.watches import (
    Events,
    Watch,
    all_of,
    changed,
    exists,
    later,
    one_key,
    owners,
)
from pergola.runtime.metrics import Metrics

pytestmark = pytest.mark.looptime(start=0)

A, B = Key("ns", "a"), Key("ns", "b")


async def taken(queue: Queue[Key]) -> list[Key]:
    keys = []
    while len(queue):
        key = await queue.get()
        queue.done(key)
        keys.append(key)
    return keys


async def test_an_event_triggers_the_object_itself_unless_it_is_mapped() -> None:
    events: Events[Change[str]] = Events()
    queue: Queue[Key] = Queue()
    Watch[Change[str], Key](events).trigger(queue)
    events.notify(Change(A, None, "1"))
    assert await taken(queue) == [A]


async def test_an_event_triggers_all_keys_that_it_maps_to() -> None:
    events: Events[Change[str]] = Events()
    queue: Queue[Key] = Queue()

    def named(change: Change[str]) -> Iterable[Key]:
        return [Key(change.key.namespace, name) for name in (change.new or "").split()]

    Watch(events, to=named).trigger(queue)
    events.notify(Change(A, None, "x y"))
    assert await taken(queue) == [Key("ns", "x"), Key("ns", "y")]


async def test_an_irrelevant_event_is_not_mapped() -> None:
    events: Events[Change[str]] = Events()
    queue: Queue[Key] = Queue()
    mapped: list[Key] = []

    def note(change: Change[str]) -> Iterable[Key]:
        mapped.append(change.key)
        return [change.key]

    Watch(events, to=note, when=changed).trigger(queue)
    events.notify(Change(A, "1", "1"))
    events.notify(Change(B, "1", "2"))
    assert mapped == [B]
    assert await taken(queue) == [B]


@pytest.mark.parametrize(
    ("change", "matters"),
    [
        (Change(A, "1", "2"), True),
        (Change(A, None, "2"), True),
        (Change(A, None, "2", initial=True), False),
        (Change(A, "1", "1"), False),
        (Change(A, "1", None), False),
    ],
)
def test_predicates_are_combined(change: Change[str], matters: bool) -> None:
    assert all_of(exists, changed, later)(change) is matters


async def test_a_unit_runs_triggered_keys_and_initial_keys() -> None:
    nodes: Events[Change[str]] = Events()
    pods: Events[Change[str]] = Events()
    runs: list[str] = []

    async def reconcile(key: str) -> Outcome:
        runs.append(key)
        return DONE

    unit = Controller(
        "test",
        reconcile,
        watches=[
            Watch(nodes, to=lambda change: [change.key.name]),
            Watch(pods, to=one_key("all")),
        ],
        at_start=["first"],
        metrics=Metrics(),
    )
    assert unit.name == "test"
    task = asyncio.create_task(unit.run())
    await asyncio.sleep(1)
    nodes.notify(Change(A, None, "1"))
    await asyncio.sleep(1)
    pods.notify(Change(B, None, "1"))
    await asyncio.sleep(1)
    assert runs == ["first", "a", "all"]
    assert unit.is_idle
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)


WIDGET = GroupVersionKind("example.org", "v2", "Widget")


def owned_by(*references: object) -> JsonObject:
    return {"metadata": {"ownerReferences": list(references)}}


def by(name: object, kind: str = "Widget", api_version: str = "example.org/v1") -> JsonObject:
    return {"apiVersion": api_version, "kind": kind, "name": name, "uid": "1"}


def test_the_owners_before_and_after_a_change_are_found_in_any_version() -> None:
    change = Change(A, owned_by(by("a"), by("b")), owned_by(by("b"), by("c")))

    assert owners(WIDGET)(change) == [Key("ns", name) for name in "abc"]
    assert owners(WIDGET, namespaced=False)(change) == [Key("", name) for name in "abc"]


@pytest.mark.parametrize(
    "obj",
    [
        {},
        {"metadata": None},
        {"metadata": {"ownerReferences": None}},
        owned_by(None, "text", {}),
        owned_by(by(None), by(""), by(1)),
        owned_by(by("a", kind="Gadget"), by("a", api_version="v1"), by("a", kind="")),
    ],
)
def test_an_object_without_an_owner_of_the_kind_triggers_nothing(obj: JsonObject) -> None:
    assert owners(WIDGET)(Change(A, None, obj)) == []
    assert owners(WIDGET)(Change(A, obj, None)) == []
