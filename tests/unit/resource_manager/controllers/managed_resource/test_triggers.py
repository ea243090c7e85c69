"""The ManagedResources that each event triggers: spec 10 §4.1."""

from dataclasses import replace
from typing import Any

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP
from pergola.api.marks import FINALIZER
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.resource_manager.controllers.health import health_triggers
from pergola.resource_manager.controllers.managed_resource.triggers import (
    drifted,
    owners,
    resource_triggers,
    secret_triggers,
)
from pergola.resource_manager.responsibility import Responsibility
from pergola.resource_manager.source import SeenResource, SeenSecret, Source
from pergola.resource_manager.target import Observed, TargetChange
from pergola.runtime.caching.cache import Change
from tests.support.cluster_config import cluster_config

MINE = Responsibility("resources")
OTHERS_FINALIZER = f"{FINALIZER}-seed"
KEY = Key("garden", "demo")

BEFORE = SeenResource(
    uid="1",
    version="10",
    generation=1,
    resource_class=None,
    finalizers=(FINALIZER,),
    ignored=False,
    deleting=False,
    operation=None,
    secrets=frozenset({"demo"}),
    applied="True",
    healthy="True",
    packed=b"{}",
)


def wakes(old: SeenResource | None, new: SeenResource | None) -> bool:
    return resource_triggers(Change(KEY, old, new), MINE)


# ManagedResources

Fields = dict[str, Any]


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        # A: relevant changes
        ({}, {}, False),
        ({}, {"applied": "False"}, False),
        ({}, {"finalizers": ()}, False),
        ({}, {"generation": 2}, True),
        ({}, {"operation": "reconcile"}, True),
        ({}, {"operation": "restore"}, True),
        ({}, {"operation": "migrate"}, True),
        ({}, {"operation": "wait-for-state"}, False),
        ({}, {"operation": "other"}, False),
        ({"operation": "reconcile"}, {"operation": "reconcile"}, True),
        ({"operation": "reconcile"}, {}, False),
        ({}, {"healthy": "False"}, True),
        ({"healthy": None}, {"healthy": "False"}, True),
        ({"healthy": "Unknown"}, {"healthy": "False"}, False),
        ({"healthy": "False"}, {"healthy": "False"}, False),
        ({"healthy": "False"}, {"healthy": "True"}, False),
        ({}, {"healthy": "Unknown"}, False),
        ({}, {"ignored": True}, True),
        ({"ignored": True}, {}, True),
        ({"finalizers": (OTHERS_FINALIZER,)}, {"finalizers": ()}, True),
        ({"finalizers": (OTHERS_FINALIZER,)}, {"finalizers": (OTHERS_FINALIZER,)}, False),
        ({"finalizers": (OTHERS_FINALIZER,)}, {}, True),
        ({"uid": "0"}, {}, True),
        # ours beyond the table: the wait for a state is over
        ({"operation": "wait-for-state"}, {}, True),
        # B: the responsible instance
        ({"ignored": True}, {"ignored": True, "generation": 2}, False),
        ({"ignored": True}, {"ignored": True, "operation": "reconcile"}, False),
        ({"ignored": True}, {"ignored": True, "generation": 2, "deleting": True}, True),
        ({"ignored": True}, {"ignored": True, "deleting": True}, False),
    ],
)
def test_relevant_updates_trigger_a_managed_resource(
    before: Fields, after: Fields, *, expected: bool
) -> None:
    assert wakes(replace(BEFORE, **before), replace(BEFORE, **after)) is expected


@pytest.mark.parametrize(
    ("resource_class", "finalizers", "expected"),
    [
        (None, (), True),
        ("", (), True),
        ("resources", (), True),
        ("seed", (), False),
        ("seed", (OTHERS_FINALIZER,), False),
        ("seed", (FINALIZER,), True),
        (None, (OTHERS_FINALIZER,), True),
    ],
)
def test_only_managed_resources_that_are_or_were_ours_are_triggered(
    resource_class: str | None, finalizers: tuple[str, ...], *, expected: bool
) -> None:
    new = replace(BEFORE, resource_class=resource_class, finalizers=finalizers)
    assert wakes(None, new) is expected
    assert wakes(replace(new, generation=0), new) is expected


def test_a_new_managed_resource_is_triggered_even_if_ignored() -> None:
    assert wakes(None, replace(BEFORE, ignored=True))


def test_a_deleted_managed_resource_is_triggered_for_cleanup() -> None:
    assert wakes(BEFORE, None)


# Secrets


def source_with(*resources: JsonObject) -> Source:
    """Return a source with these ManagedResources that is never run."""
    source = Source(Client.connect(cluster_config()), MINE)
    for resource in resources:
        source.observe(resource)
    return source


def managed_resource(
    name: str,
    *secrets: str,
    namespace: str = "garden",
    resource_class: str = "",
    **metadata: Any,
) -> JsonObject:
    return {
        "apiVersion": "resources.gardener.cloud/v1alpha1",
        "kind": "ManagedResource",
        "metadata": {"name": name, "namespace": namespace, "resourceVersion": "1"} | metadata,
        "spec": {
            "class": resource_class,
            "secretRefs": [{"name": secret} for secret in secrets],
        },
    }


def secret(version: str) -> SeenSecret:
    return SeenSecret("1", version, ())


SECRET_KEY = Key("garden", "shared")
IGNORED: Fields = {"annotations": {marks.IGNORE: "true"}}
DELETING: Fields = {"deletionTimestamp": "2026-01-01T00:00:00Z"}


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (Change(SECRET_KEY, secret("1"), secret("2")), True),
        (Change(SECRET_KEY, secret("1"), secret("1")), False),
        (Change(SECRET_KEY, secret("1"), None), False),
        (Change(SECRET_KEY, None, secret("1"), initial=True), False),
        # beyond the table: a Secret that a run missed has appeared
        (Change(SECRET_KEY, None, secret("1")), True),
        (Change(Key("garden", "other"), secret("1"), secret("2")), False),
        (Change(Key("elsewhere", "shared"), secret("1"), secret("2")), False),
    ],
)
def test_relevant_changes_of_a_secret_trigger_its_readers(
    change: Change[SeenSecret], *, expected: bool
) -> None:
    source = source_with(managed_resource("demo", "first", "shared"))
    assert list(secret_triggers(change, source)) == ([KEY] if expected else [])


@pytest.mark.parametrize(
    ("resource", "expected"),
    [
        (managed_resource("demo", "shared"), True),
        (managed_resource("demo", "other"), False),
        (managed_resource("demo"), False),
        (managed_resource("demo", "shared", namespace="elsewhere"), False),
        (managed_resource("demo", "shared", **IGNORED), False),
        (managed_resource("demo", "shared", **DELETING), True),
        (managed_resource("demo", "shared", **IGNORED, **DELETING), True),
        (managed_resource("demo", "shared", resource_class="seed"), False),
        (
            managed_resource("demo", "shared", resource_class="seed", finalizers=[FINALIZER]),
            True,
        ),
    ],
)
def test_a_changed_secret_triggers_its_managed_resources(
    resource: JsonObject, *, expected: bool
) -> None:
    source = source_with(resource)
    change = Change(SECRET_KEY, secret("1"), secret("2"))
    assert list(secret_triggers(change, source)) == ([KEY] if expected else [])


def test_a_secret_triggers_all_its_readers() -> None:
    source = source_with(*(managed_resource(name, "shared") for name in "abc"))
    change = Change(SECRET_KEY, secret("1"), secret("2"))
    assert {key.name for key in secret_triggers(change, source)} == set("abc")


def test_a_secret_does_not_trigger_former_readers() -> None:
    source = source_with(managed_resource("demo", "shared"))
    source.observe(managed_resource("demo", "other", resourceVersion="2"))
    assert list(secret_triggers(Change(SECRET_KEY, secret("1"), secret("2")), source)) == []


# Managed objects

LEFT = Observed(
    uid="1",
    version="10",
    origin="garden-1:garden/demo",
    digest=b"right",
    problem=None,
    rollout=None,
    deleting=False,
    packed=None,
)


def event(old: Observed | None, new: Observed | None) -> TargetChange:
    return TargetChange(CONFIG_MAP, Change(Key("default", "a"), old, new))


def from_origin(origin: str) -> Observed:
    return replace(LEFT, origin=origin)


@pytest.mark.parametrize(
    ("old", "new", "names"),
    [
        (None, LEFT, {"demo"}),
        (LEFT, None, {"demo"}),
        (LEFT, LEFT, {"demo"}),
        (LEFT, from_origin("garden-1:garden/thief"), {"demo", "thief"}),
        (LEFT, from_origin(""), {"demo"}),
        (None, from_origin(""), set()),
        (None, from_origin("garden/demo"), set()),
        (None, from_origin("garden-2:garden/demo"), set()),
        (None, from_origin("nonsense"), set()),
        (None, from_origin("a:b:garden/demo"), set()),
    ],
)
def test_an_object_triggers_its_current_and_former_origin(
    old: Observed | None, new: Observed | None, names: set[str]
) -> None:
    found = list(owners(event(old, new), "garden-1"))
    assert len(found) == len(names)
    assert set(found) == {Key("garden", name) for name in names}


@pytest.mark.parametrize(
    ("origin", "expected"), [("garden/demo", [KEY]), ("garden-1:garden/demo", [])]
)
def test_without_a_cluster_id_only_origins_without_one_count(
    origin: str, expected: list[Key]
) -> None:
    assert list(owners(event(None, from_origin(origin)), "")) == expected


EDITED = replace(LEFT, version="11", digest=b"edited")


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (LEFT, None, True),
        (EDITED, None, True),
        (LEFT, EDITED, True),
        (EDITED, LEFT, False),
        (None, LEFT, False),
        (None, EDITED, True),
        # a status, a rollout or a heartbeat: nothing that could be reverted
        (LEFT, replace(LEFT, version="11", problem="unhealthy", rollout="waits"), False),
        (EDITED, replace(EDITED, version="12"), False),
        # recreated by another client, with the same error
        (EDITED, replace(EDITED, uid="2"), True),
        (LEFT, replace(LEFT, uid="2"), False),
    ],
)
def test_events_that_show_drift_are_recognized(
    old: Observed | None, new: Observed | None, *, expected: bool
) -> None:
    asked: list[tuple[GroupVersionKind, Key]] = []

    def is_expected(gvk: GroupVersionKind, key: Key, digest: bytes) -> bool:
        asked.append((gvk, key))
        return digest == LEFT.digest

    assert drifted(event(old, new), is_expected) is expected
    assert set(asked) <= {(CONFIG_MAP, Key("default", "a"))}


# Health


@pytest.mark.parametrize(
    ("before", "after", "expected"),
    [
        ({}, {}, False),
        ({}, {"version": "11", "packed": b"[]"}, False),
        ({}, {"generation": 2}, False),
        ({}, {"healthy": "False"}, False),
        ({}, {"operation": "reconcile"}, False),
        ({}, {"ignored": True}, False),
        ({}, {"deleting": True}, False),
        ({"ignored": True}, {}, True),
        ({}, {"applied": "False"}, True),
        ({"applied": None}, {"applied": "True"}, True),
        ({"applied": "Progressing"}, {"applied": "True"}, True),
        ({}, {"resource_class": "seed"}, True),
        ({"uid": "0"}, {}, True),
    ],
)
def test_relevant_updates_trigger_a_health_check(
    before: Fields, after: Fields, *, expected: bool
) -> None:
    change = Change(KEY, replace(BEFORE, **before), replace(BEFORE, **after))
    assert health_triggers(change) is expected


def test_new_and_deleted_managed_resources_trigger_a_health_check() -> None:
    assert health_triggers(Change(KEY, None, BEFORE))
    assert health_triggers(Change(KEY, BEFORE, None))
