"""Which ConfigMaps and Secrets the garbage collector deletes."""

import asyncio
from collections.abc import Iterable, Iterator
from datetime import UTC, datetime
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.clusters import Cluster
from conformance.comparison import Difference, differences
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.kubernetes import some
from pergola.api import marks
from pergola.api.objects import JsonObject, JsonValue
from pergola.resource_manager.controllers.garbage_collector import GarbageCollector
from pergola.runtime.clock import FakeClock

_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_CREATED: Final = (
    *("2025-12-01T00:00:00Z", "2026-01-01T11:00:00Z", "2026-01-01T11:49:59Z"),
    *("2026-01-01T11:50:00Z", "2026-01-01T11:50:01Z", "2026-01-01T12:30:00Z"),
)
_NAMES: Final = ("a", "b", "a-12345678")
_NAMESPACES: Final = st.sampled_from(["n", "n", "m"])
_KEYS: Final = (
    *("secret-12345678", "configmap-12345678", "secret-87654321", "configmap-87654321"),
    *("secret", "secret-a-b", "Secret-12345678", "secret-", "-12345678", "pod-12345678"),
)
_USERS: Final = (
    *(("apps/v1", kind) for kind in ("Deployment", "StatefulSet", "DaemonSet")),
    *(("batch/v1", kind) for kind in ("Job", "CronJob")),
    ("v1", "Pod"),
    ("resources.gardener.cloud/v1alpha1", "ManagedResource"),
    ("monitoring.coreos.com/v1", "Prometheus"),
    ("v1", "Service"),  # uses nothing, whatever it says
    ("v1", "ConfigMap"),
)
"""Kinds of objects with annotations. Pergola also reads their specs, templates and ReplicaSets."""


def _candidate(parts: JsonObject) -> JsonObject:
    metadata = {name: parts[name] for name in ("name", "namespace", "creationTimestamp")}
    if "label" in parts:
        metadata["labels"] = {marks.GARBAGE_COLLECTABLE: parts["label"]}
    if parts.get("held"):
        metadata["finalizers"] = ["example.com/f"]
    return {"apiVersion": "v1", "kind": parts["kind"], "metadata": metadata, "immutable": True}


_CANDIDATES: Final = st.lists(
    some(
        {
            "label": st.sampled_from(["true", "true", "true", "1", "false"]),
            "held": st.sampled_from([False, False, True]),
        },
        {
            "kind": st.sampled_from(["ConfigMap", "Secret"]),
            "name": st.sampled_from(_NAMES),
            "namespace": _NAMESPACES,
            "creationTimestamp": st.sampled_from(_CREATED),
        },
    ).map(_candidate),
    min_size=1,
    max_size=5,
    unique_by=lambda obj: (obj["kind"], obj["metadata"]["namespace"], obj["metadata"]["name"]),
)


def _user(
    number: int, kind: tuple[str, str], namespace: str, annotations: JsonObject
) -> JsonObject:
    prefixed = {f"{marks.REFERENCE_PREFIX}{key}": name for key, name in annotations.items()}
    metadata = {"name": f"user-{number}", "namespace": namespace, "annotations": prefixed}
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata}


_USER_LISTS: Final = st.lists(
    st.tuples(
        st.sampled_from(_USERS),
        _NAMESPACES,
        st.dictionaries(
            st.sampled_from([*_KEYS[:4] * 3, *_KEYS[4:]]),
            st.sampled_from([*_NAMES, *_NAMES, ""]),
            max_size=3,
        ),
    ),
    max_size=4,
).map(lambda found: [_user(number, *parts) for number, parts in enumerate(found)])


class Garbage:
    """The objects that are left after two runs, as Pergola deletes nothing in the first one."""

    name = "garbage"
    ask = "garbage"
    title = "Garbage collection"
    of: OracleModule = GARDENER
    code = ("pergola.resource_manager.controllers.garbage_collector",)

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return ConfigMaps and Secrets, and objects that use some of them."""
        return st.builds(
            lambda candidates, users: {"objects": [*candidates, *users], "now": _NOW.isoformat()},
            _CANDIDATES,
            _USER_LISTS,
        )

    def meaning(self, answer: Answer) -> JsonValue:
        """Return what is left."""
        return {"left": sorted(answer.output.get("left", ()))}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare what is left."""
        return differences(self.meaning(answer), {"left": asyncio.run(_left(question))})


async def _left(question: JsonObject) -> JsonValue:
    cluster = Cluster(question["objects"])
    collector = GarbageCollector(cluster.client, FakeClock(_NOW), sync_period=3600.0)
    for _ in range(2):
        await collector.reconcile("target")
    left: list[JsonValue] = [
        f"{obj['kind']}/{obj['metadata']['namespace']}/{obj['metadata']['name']}"
        for obj in cluster.documents
        if obj["kind"] in ("ConfigMap", "Secret")
    ]
    return sorted(left, key=str)
