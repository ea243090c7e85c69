"""The objects of a ManagedResource, from the first write to the deletion."""

import asyncio
import copy
import re
from collections.abc import Iterable, Iterator
from functools import lru_cache
from typing import Final

import msgspec
import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.kubernetes import some
from conformance.strategies.managed import (
    ANNOTATIONS,
    KINDS,
    LABELS,
    LIVE_ANNOTATIONS,
    OWNERS,
    PROPAGATIONS,
    UNKNOWN,
    Kind,
    live_body,
)
from conformance.subjects.managed_runs import NOW, RESOURCE, run
from pergola.api import marks
from pergola.api.objects import (
    JsonObject,
    JsonValue,
    annotations_of,
    map_at,
    without_empty,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.resource_manager.origin import parse_origin

_CREATED: Final = "2025-12-01T00:00:00Z"
_DELETED: Final = st.sampled_from(
    ["2026-01-01T10:30:00Z", "2026-01-01T11:00:00Z", "2026-01-01T11:59:00Z"]
)
_ORIGINS: Final = ("n/mr", "id:n/mr", "n/other", "other:n/mr", "odd")
_NAMES: Final = ("o0", "o1")


def _metadata(kind: Kind, name: str, parts: JsonObject) -> JsonObject:
    namespace = {"namespace": "n"} if kind.namespaced else {}
    return {"name": name, **namespace, **{k: v for k, v in parts.items() if v}}


def _manifest(kind: Kind, name: str) -> SearchStrategy[JsonObject]:
    metadata = some({"annotations": ANNOTATIONS, "labels": LABELS, "ownerReferences": OWNERS})
    return st.builds(
        lambda parts, body: {
            "apiVersion": kind.version,
            "kind": kind.name,
            "metadata": _metadata(kind, name, parts),
            **body,
        },
        metadata,
        kind.body,
    )


def _live(kind: Kind, name: str) -> SearchStrategy[JsonObject]:
    metadata = some(
        {"ownerReferences": OWNERS},
        {
            "labels": LABELS,
            "annotations": st.tuples(
                LIVE_ANNOTATIONS,
                st.sampled_from([{}, *({marks.ORIGIN: each} for each in _ORIGINS)])
                | st.just({marks.ORIGIN: "n/mr"}),
            ).map(lambda parts: {**parts[0], **parts[1]}),
            "creationTimestamp": st.just(_CREATED),
        },
    )
    deleting = some({"deletionTimestamp": _DELETED}, {"finalizers": st.just(["example.com/f"])})
    return st.builds(
        lambda parts, extra, body: {
            "apiVersion": kind.version,
            "kind": kind.name,
            "metadata": {**_metadata(kind, name, parts), **extra},
            **body,
        },
        metadata,
        st.one_of(st.just({}), st.just({}), deleting),
        live_body(kind),
    )


def _reference(kind: Kind, name: str) -> SearchStrategy[JsonObject]:
    """Return the record of an object that was applied before."""
    return some({"labels": LABELS, "annotations": ANNOTATIONS}).map(
        lambda parts: {
            "apiVersion": kind.version,
            "kind": kind.name,
            **_metadata(kind, name, parts),
        }
    )


_Object = tuple[JsonObject | None, JsonObject | None, JsonObject | None]
"""A manifest, the live object, and its record; None for those that do not exist."""


@lru_cache
def _objects(kind: Kind, name: str) -> SearchStrategy[_Object]:
    manifest, live, record = _manifest(kind, name), _live(kind, name), _reference(kind, name)
    nothing = st.none()
    return st.one_of(
        st.tuples(manifest, live, record),
        st.tuples(manifest, live, record),
        st.tuples(manifest, nothing | live, nothing),
        st.tuples(nothing, live, record),
        st.tuples(nothing | manifest, nothing | live, nothing | record),
    )


_SPEC: Final = some(
    {
        "injectLabels": st.dictionaries(
            st.sampled_from(["app", "injected", marks.MANAGED_BY]), st.just("i"), max_size=2
        ),
        "forceOverwriteLabels": st.booleans(),
        "forceOverwriteAnnotations": st.booleans(),
        "keepObjects": st.booleans(),
        "deletePersistentVolumeClaims": st.booleans(),
    },
    {"secretRefs": st.just([{"name": "manifests"}])},
)
_STATES: Final = st.sampled_from(
    [*[{}] * 12, {"annotations": {marks.IGNORE: "true"}}, *[{"deletionTimestamp": _CREATED}] * 3]
)
_FINALIZERS: Final = {"finalizers": ["resources.gardener.cloud/gardener-resource-manager"]}


def _resource(spec: JsonObject, state: JsonObject, records: list[JsonObject]) -> JsonObject:
    metadata = {"name": RESOURCE.name, "namespace": RESOURCE.namespace, "uid": "1"}
    return {
        "apiVersion": MANAGED_RESOURCE.api_version,
        "kind": MANAGED_RESOURCE.kind,
        "metadata": {**metadata, "generation": 1, **_FINALIZERS, **state},
        "spec": spec,
        "status": {"resources": records},
    }


def _scaler(kind: Kind, name: str) -> JsonObject:
    target = {"apiVersion": kind.version, "kind": kind.name, "name": name}
    return {
        "apiVersion": "autoscaling/v1",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": f"hpa-{name}", "namespace": "n", "uid": "9"},
        "spec": {"scaleTargetRef": target, "maxReplicas": 3},
    }


def _claim(name: str) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "namespace": "n", "labels": {"app": "a"}, "uid": name},
        "spec": {"accessModes": ["ReadWriteOnce"]},
    }


@lru_cache
def _question(kinds: tuple[Kind, ...]) -> SearchStrategy[JsonObject]:
    named = [*zip(kinds, _NAMES[: len(kinds)], strict=True)]
    workloads = [(k, n) for k, n in named if k.name in ("Deployment", "StatefulSet")]
    beside = [_scaler(kind, name) for kind, name in workloads]
    beside += [
        _claim(f"{claim}-{name}-0")
        for kind, name in workloads
        if kind.name == "StatefulSet"
        for claim in ("data", "logs")
    ]

    is_alone = len(named) == 1 and not any(
        re.fullmatch(kind, kinds[0].name) for kind, _ in _KEPT[:-1]
    )

    def build(
        objects: tuple[_Object, ...], spec: JsonObject, state: JsonObject, other: JsonObject
    ) -> JsonObject:
        manifests, live, records = ([o for o in each if o] for each in zip(*objects, strict=True))
        if len(manifests) > 1:
            manifests = [_with_propagation(each) for each in manifests]
            live = [_mutable(each) for each in live]
        live = [_started(each, spec) if each["kind"] == "Job" else each for each in live]
        return {
            "resource": _resource(spec, state, [*records]),
            "manifests": manifests,
            "target": [*live, *other["beside"]],
            "refused": other["refused"],
            "collected": other["collected"],
            "clusterID": other["clusterID"],
            "now": NOW.isoformat(),
        }

    other = st.fixed_dictionaries(
        {
            "beside": st.lists(st.sampled_from(beside), unique_by=str) if beside else st.just([]),
            # An object that fails for good keeps the original from applying later ones.
            "refused": st.sampled_from([[], [], [], ["o0"]] if is_alone else [[]]),
            "collected": st.booleans(),
            "clusterID": st.sampled_from(["", "", "id"]),
        }
    )
    objects = st.tuples(*(_objects(kind, name) for kind, name in named))
    return st.builds(build, objects, _SPEC, _STATES, other)


def _with_propagation(manifest: JsonObject) -> JsonObject:
    """Return the manifest without a propagation that the resource manager would refuse."""
    name, annotations = marks.DELETION_PROPAGATION_ON_INVALID_UPDATE, annotations_of(manifest)
    if annotations.get(name) != UNKNOWN:
        return manifest
    metadata = {**manifest["metadata"], "annotations": {**annotations, name: PROPAGATIONS[0]}}
    return {**manifest, "metadata": metadata}


def _mutable(live: JsonObject) -> JsonObject:
    """Return the object without the mark that it is immutable, if it cannot be deleted at once."""
    if not live["metadata"].get("finalizers"):
        return live
    return {name: value for name, value in live.items() if name != "immutable"}


def _started(job: JsonObject, spec: JsonObject) -> JsonObject:
    """Return a Job with the labels that it got when it was created; they cannot change."""
    injected = {**spec.get("injectLabels", {}), marks.MANAGED_BY: "gardener"}
    job = copy.deepcopy(job)
    job["spec"]["template"]["metadata"]["labels"] |= injected
    return job


class ManagedObjects:
    """The objects of one ManagedResource after several runs, and its status."""

    name = "managed-objects"
    ask = "managed-objects"
    title = "Objects of a ManagedResource"
    of: OracleModule = GARDENER
    code = ("pergola.resource_manager.controllers.managed_resource",)

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return a ManagedResource with one or two objects."""
        kinds = st.lists(st.sampled_from(KINDS), min_size=1, max_size=2).map(tuple)
        return kinds.flatmap(_question)

    def meaning(self, answer: Answer) -> JsonValue:
        """Return objects and status without texts and versions."""
        return _meaning(answer.output)

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare everything that exists afterwards."""
        ours = _meaning(asyncio.run(run(question)))
        for each in differences(_meaning(answer.output), ours):
            yield msgspec.structs.replace(each, path=_rule(question, each) + each.path)


def _rule(question: JsonObject, difference: Difference) -> str:
    """Return which of Pergola's own rules explains a difference; empty if none does."""
    spared = [
        live
        for live in question["target"]
        if _is_foreign(live, question["clusterID"]) and _identity(live) in _left(question)
    ]
    if any(live["metadata"]["name"] in difference.path for live in spared):
        return "spared: "
    if any("finalizers" in live["metadata"] for live in spared):
        return "spared: "  # the original waits for its deletion before it applies anything
    return "kept: " if _is_kept(question, difference) else ""


def _is_kept(question: JsonObject, difference: Difference) -> bool:
    """Return whether Pergola leaves a value that another writer set, and the manifest omits."""
    for kind, pattern in _KEPT:
        found = re.fullmatch(rf"objects\.[^/]*/{kind}/[^/]*/(o[01])\.{pattern}", difference.path)
        live = {_identity(each)[1]: each for each in question["target"]}
        if found is not None and difference.ours in _texts(live[found[1]]):
            return True
    return False


def _texts(value: JsonValue) -> Iterator[str]:
    """Yield a value and all values below as JSON."""
    yield orjson.dumps(value, option=orjson.OPT_SORT_KEYS).decode()
    for below in value.values() if isinstance(value, dict) else ():
        yield from _texts(below)
    for below in value if isinstance(value, list) else ():
        yield from _texts(below)


_KEPT: Final = (
    ("PersistentVolume", r"spec\.claimRef"),
    ("PersistentVolume", r"spec\.capacity\.storage"),
    ("PersistentVolumeClaim", r"spec\.(volumeName|storageClassName)"),
    ("PersistentVolumeClaim", r"spec\.resources\.requests\.storage"),
    ("MutatingWebhookConfiguration", r"webhooks\[\d\]\.clientConfig\.caBundle"),
    ("Service", r"metadata\.annotations\.loadbalancer\.openstack\.org/id"),
    (".*", r"metadata\.annotations\.deployment\.kubernetes\.io/revision"),
)
"""Values that a server, controller or injector sets; in the original, an update erases them."""


def _left(question: JsonObject) -> set[tuple[str, str]]:
    """Return the objects that were managed, and no longer are."""
    resource = question["resource"]
    before = {(each["kind"], each["name"]) for each in resource["status"]["resources"]}
    if "deletionTimestamp" in resource["metadata"]:
        return before
    return before - {_identity(manifest) for manifest in question["manifests"]}


def _identity(obj: JsonObject) -> tuple[str, str]:
    return obj["kind"], obj["metadata"]["name"]


def _is_foreign(live: JsonObject, cluster_id: str) -> bool:
    """Return whether an object belongs to a ManagedResource of another cluster.

    No other one exists in this cluster, and one that is gone owns nothing.
    """
    origin = parse_origin(annotations_of(live).get(marks.ORIGIN, ""))
    return origin is not None and origin.cluster_id != cluster_id


def _meaning(answer: JsonObject) -> JsonObject:
    objects = {name: _essence(obj) for name, obj in answer.get("objects", {}).items()}
    found = {k: answer.get(k) for k in ("applied", "failed", "gone", "propagations")}
    if answer.get("applied") == "True ApplySucceeded":
        found["resources"] = without_empty(answer.get("resources") or [])
    return {**found, "objects": objects}


_OF_SERVER: Final = ("uid", "resourceVersion", "generation", "creationTimestamp", "managedFields")


def _essence(obj: JsonObject) -> JsonValue:
    metadata = {k: v for k, v in map_at(obj, "metadata").items() if k not in _OF_SERVER}
    if metadata.pop("deletionTimestamp", None):
        metadata["deleting"] = True
    status = {name: value for name, value in map_at(obj, "status").items() if value}
    found: JsonValue = without_empty({**obj, "metadata": metadata, "status": status})
    return found
