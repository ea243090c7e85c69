"""How objects get into the Secret of a ManagedResource, and which ManagedResource reads it."""

import asyncio
import base64
from collections.abc import Iterable, Iterator, Sequence
from datetime import UTC, datetime
from typing import Any, Final

import orjson
from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.clusters import Cluster
from conformance.comparison import Difference, differences, refusals
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.kubernetes import some
from conformance.strategies.managed import ANNOTATIONS, KINDS, LABELS, Kind
from pergola.api import marks
from pergola.api.objects import JsonObject, JsonValue, map_at, without_empty
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.client import apply
from pergola.bundle.content import Budget, read_documents
from pergola.bundle.errors import BundleError
from pergola.bundle.managed_resource import Bundle, Settings, build, for_seed, for_shoot
from pergola.bundle.registry import DATA_KEY, Registry
from pergola.runtime.clock import FakeClock

_NOW: Final = datetime(2026, 1, 1, 12, tzinfo=UTC)
_NAMESPACES: Final = st.sampled_from(["garden", "shoot--a--b", "shoot-a", "extension-x"])
_LABEL_KEYS: Final = ("a", marks.ROLE, marks.ORIGIN_LABEL, marks.CARE_CONDITION_TYPE)
_LABELS: Final = st.dictionaries(
    st.sampled_from(_LABEL_KEYS), st.sampled_from(["x", "y"]), max_size=2
)
_REFERENCE: Final = f"{marks.REFERENCE_PREFIX}secret-"
_OLD: Final = ("old", "managedresource-x-12345678")


def _object(kind: Kind) -> SearchStrategy[JsonObject]:
    names = ["a", "b", "a.b"] if kind.namespaced else ["a", "system:b"]
    namespaces = st.sampled_from(["n", "m", "default"]) if kind.namespaced else st.none()
    metadata = some(
        {"annotations": ANNOTATIONS, "labels": LABELS}, {"name": st.sampled_from(names)}
    )
    return st.builds(
        lambda parts, namespace, body: {
            "apiVersion": kind.version,
            "kind": kind.name,
            "metadata": parts | ({"namespace": namespace} if namespace else {}),
            **body,
        },
        metadata,
        namespaces,
        kind.body,
    )


def _unique(objects: list[JsonObject]) -> list[JsonObject]:
    """Return the objects without those whose file has the name of another one's."""
    found = {}
    for obj in objects:
        metadata = obj["metadata"]
        name = metadata["name"].replace(":", "_")
        found[obj["kind"], metadata.get("namespace"), name] = obj
    return [*found.values()]


_OBJECTS: Final = st.lists(
    st.one_of([_object(kind) for kind in KINDS]), min_size=1, max_size=3
).flatmap(lambda objects: st.sampled_from([objects, _unique(objects), _unique(objects)]))


def _old_secret(namespace: str, name: str, labels: JsonObject) -> JsonObject:
    metadata = {"name": name, "namespace": namespace, "labels": labels}
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "type": "Opaque"}


def _old_resource(namespace: str, name: str, parts: JsonObject) -> JsonObject:
    return {
        "apiVersion": MANAGED_RESOURCE.api_version,
        "kind": MANAGED_RESOURCE.kind,
        "metadata": {
            "name": name,
            "namespace": namespace,
            "labels": parts["labels"],
            "annotations": parts["annotations"],
        },
        "spec": parts["spec"],
    }


_BEFORE: Final = st.none() | st.fixed_dictionaries(
    {
        "labels": _LABELS,
        "annotations": st.dictionaries(
            st.sampled_from(["b", f"{_REFERENCE}12345678", f"{_REFERENCE}old"]),
            st.sampled_from(["x", "old"]),
            max_size=2,
        ),
        "spec": some(
            {
                "class": st.sampled_from(["seed", "other"]),
                "keepObjects": st.booleans(),
                "forceOverwriteLabels": st.booleans(),
                "injectLabels": _LABELS,
            },
            {
                "secretRefs": st.lists(st.sampled_from(_OLD), max_size=2, unique=True).map(
                    lambda names: [{"name": name} for name in names]
                )
            },
        ),
        "secrets": st.lists(
            st.tuples(
                st.sampled_from(_OLD),
                st.sampled_from([{}, {"a": "x"}, {marks.GARBAGE_COLLECTABLE: "true"}]),
            ),
            max_size=2,
            unique_by=lambda secret: str(secret[0]),
        ),
    }
)


def _question(
    parts: JsonObject, objects: list[JsonObject], before: JsonObject | None
) -> JsonObject:
    namespace, name = parts["namespace"], parts["name"]
    existing = []
    if before is not None:
        existing = [_old_secret(namespace, old, labels) for old, labels in before["secrets"]]
        existing.append(_old_resource(namespace, name, before))
    try:
        data = Registry(*objects).serialize()[DATA_KEY]
    except BundleError:
        data = b""  # both sides refuse the objects
    encoded = base64.b64encode(data).decode()
    return {**parts, "objects": objects, "data": encoded, "existing": existing}


class ManagedResourceSecrets:
    """Secrets and ManagedResources after a bundle was applied."""

    name = "managed-resource-secrets"
    ask = "managed-resource-secrets"
    title = "Secrets of ManagedResources"
    of: OracleModule = GARDENER
    code = (
        "pergola.bundle.managed_resource",
        "pergola.bundle.names",
        "pergola.bundle.registry",
    )

    def table(self) -> Iterator[JsonObject]:
        """Yield nothing: random questions say it all."""
        yield from ()

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return objects with the way in which they are written."""
        parts = some(
            {
                "keep": st.booleans(),
                "inject": _LABELS,
                "force": st.booleans(),
                "class": st.sampled_from(["", "seed", "other"]),
            },
            {
                "way": st.sampled_from(["seed", "shoot", "other"]),
                "namespace": _NAMESPACES,
                "name": st.sampled_from(["x", "x-", "extension-controlplane"]),
                "origin": st.sampled_from(["gardener", "gardener-operator", "me"]),
                "labels": _LABELS,
                "prefix": st.booleans(),
            },
        )
        return st.builds(_question, parts, _OBJECTS, _BEFORE)

    def meaning(self, answer: Answer) -> JsonValue:
        """Return documents, Secrets and ManagedResources; an error is a refusal."""
        return _meaning(answer.output) if answer.outcome == "output" else "refused"

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare what is written, and what the original reads of it."""
        theirs = [] if answer.outcome == "output" else [("objects", str(answer.value))]
        try:
            ours = asyncio.run(_applied(question))
        except BundleError as error:
            return refusals(theirs, [("objects", str(error))])
        if theirs:
            return refusals(theirs, [])
        return differences(_meaning(answer.output), _meaning(ours))


def _meaning(answer: JsonObject) -> JsonObject:
    found: JsonObject = {name: without_empty(answer[name]) for name in ("written", "read")}
    for kind in ("secrets", "resources"):
        found[kind] = {obj["metadata"]["name"]: _essence(obj) for obj in answer[kind]}
    return {**found, "written": [_typed(obj) for obj in found["written"]]}


def _typed(obj: JsonObject) -> JsonObject:
    """Return a document without the empty status that a typed object has."""
    return {name: value for name, value in obj.items() if name != "status"}


def _essence(obj: JsonObject) -> Any:
    kept = ("name", "namespace", "labels", "annotations")
    metadata = {k: v for k, v in map_at(obj, "metadata").items() if k in kept}
    content = {k: obj.get(k) for k in ("data", "immutable", "type", "spec")}
    return without_empty({"metadata": metadata, **content})


async def _applied(question: JsonObject) -> JsonObject:
    bundle = _bundle(question)
    cluster = Cluster(question["existing"])
    await apply(cluster.client, bundle, clock=FakeClock(_NOW))
    by_kind: dict[str, list[JsonObject]] = {"Secret": [], "ManagedResource": []}
    for document in cluster.documents:
        by_kind[document["kind"]].append(document)
    documents = [orjson.loads(orjson.dumps(each)) for each in _read(bundle)]
    return {
        "written": documents,
        "read": documents,
        "secrets": by_kind["Secret"],
        "resources": by_kind["ManagedResource"],
    }


def _read(bundle: Bundle) -> Sequence[JsonValue]:
    (secret,) = bundle.secrets
    data = base64.b64decode(secret["data"][DATA_KEY])
    return [document.value for document in read_documents(DATA_KEY, data, Budget())]


def _bundle(question: JsonObject) -> Bundle:
    namespace, name, labels = question["namespace"], question["name"], question["labels"]
    objects, keep = Registry(*question["objects"]), question.get("keep")
    if question["way"] == "seed":
        return for_seed(namespace, name, objects, keep_objects=bool(keep), labels=labels)
    if question["way"] == "shoot":
        return for_shoot(
            namespace,
            name,
            objects,
            origin=question["origin"],
            keep_objects=bool(keep),
            labels=labels,
        )
    settings = Settings(
        resource_class=question.get("class") or None,
        inject_labels=question.get("inject"),
        keep_objects=keep,
        force_overwrite_annotations=question.get("force"),
    )
    prefix = question["prefix"]
    return build(namespace, name, objects, settings=settings, labels=labels, secret_prefix=prefix)
