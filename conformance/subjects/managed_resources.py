"""ManagedResources: whether the API server stores them, and the spec that is read from them."""

from collections.abc import Iterable, Iterator
from typing import Final

from hypothesis.strategies import SearchStrategy

from conformance.comparison import Difference, differences, refusals
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.fields import (
    ANYTHING,
    BOOLEANS,
    Fields,
    free,
    one_of_changed,
    or_absent,
)
from pergola.api.objects import JsonObject, JsonValue, without_empty
from pergola.api.resources_v1alpha1 import ManagedResource, ManagedResourceSpec
from pergola.api.schema import validate
from pergola.api.schema.structural import schema_of

_TIMES: Final = or_absent("2026-01-01T00:00:00Z", "2026-01-01T00:00:00.5+01:00", "2026-01-01", "")
_CONDITION: Final = {
    "type": "ResourcesApplied",
    "status": "True",
    "reason": "ApplySucceeded",
    "message": "All resources are applied.",
    "lastTransitionTime": "2026-01-01T00:00:00Z",
    "lastUpdateTime": "2026-01-01T00:00:00Z",
}
_OBJECT: Final[JsonObject] = {
    "apiVersion": "resources.gardener.cloud/v1alpha1",
    "kind": "ManagedResource",
    "metadata": {
        "name": "a",
        "namespace": "garden",
        "uid": "1",
        "creationTimestamp": "2026-01-01T00:00:00Z",
    },
    "spec": {
        "class": "seed",
        "secretRefs": [{"name": "first"}, {"name": "second"}],
        "injectLabels": {"a": "b", "c": ""},
        "equivalences": [[{"group": "apps", "kind": "Deployment"}], []],
        "forceOverwriteLabels": True,
        "forceOverwriteAnnotations": True,
        "keepObjects": True,
        "deletePersistentVolumeClaims": True,
    },
    "status": {
        "conditions": [{**_CONDITION, "codes": ["ERR_TIMEOUT"]}],
        "observedGeneration": 3,
        "secretsDataChecksum": "abc",
        "resources": [
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "namespace": "default",
                "name": "a",
                "uid": "2",
                "resourceVersion": "3",
                "fieldPath": "data",
                "labels": {"a": "b"},
                "annotations": {"c": "d"},
            }
        ],
    },
}
_BASES: Final[tuple[JsonObject, ...]] = (
    _OBJECT,
    {**_OBJECT, "spec": {"secretRefs": [{"name": "first"}]}, "status": {}},
)
_TEXTS: Final = or_absent("", "text", None)
_FIELDS: Final[Fields] = free(
    {
        "spec.class": _TEXTS,
        "spec.secretRefs.0.name": _TEXTS,
        "spec.secretRefs.0.namespace": _TEXTS,
        "spec.secretRefs": ANYTHING,
        "spec.injectLabels.a": _TEXTS,
        "spec.equivalences.0.0.group": _TEXTS,
        "spec.equivalences.0.0.kind": _TEXTS,
        "spec.equivalences.1": ANYTHING,
        "spec.forceOverwriteLabels": BOOLEANS,
        "spec.forceOverwriteAnnotations": BOOLEANS,
        "spec.keepObjects": BOOLEANS,
        "spec.deletePersistentVolumeClaims": BOOLEANS,
        "spec.unknown": ANYTHING,
        "status.observedGeneration": ANYTHING,
        "status.secretsDataChecksum": _TEXTS,
        "status.conditions.0.codes.0": _TEXTS,
        "status.conditions.0.type": _TEXTS,
        "status.conditions.0.status": _TEXTS,
        "status.resources.0.name": _TEXTS,
        "status.resources.0.labels.a": _TEXTS,
    }
) | {
    # An API server lets a list through in place of a time, which no client can read.
    "status.conditions.0.lastUpdateTime": _TIMES,
    "status.conditions.0.lastTransitionTime": _TIMES,
}


class ManagedResources:
    """One ManagedResource: the rules of its CRD."""

    name = "managed-resource"
    ask = "managed-resource"
    title = "Schema and defaults of ManagedResources"
    of: OracleModule = GARDENER
    code = ("pergola.api.schema.validate", "pergola.api.schema.read", "pergola.api.schema.nulls")

    def table(self) -> Iterator[JsonObject]:
        """Yield a ManagedResource with all fields, and one with those that are required."""
        yield from ({"object": base} for base in _BASES)

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return ManagedResources with a few odd fields."""
        return one_of_changed(_BASES, _FIELDS).map(lambda obj: {"object": obj})

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the refused fields, and the spec."""
        refused: JsonValue = {each["field"]: True for each in answer.output["refusals"]}
        return {"refused": refused, "spec": without_empty(answer.output.get("spec"))}

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Compare the verdict and, if both accept, the spec."""
        theirs = [(each["field"], each["detail"]) for each in answer.output["refusals"]]
        found = validate(schema_of(ManagedResource), question["object"])
        ours = [(each.path, each.problem) for each in found if each.severity == "error"]
        yield from refusals(theirs, ours)
        if not theirs and not ours:
            spec = ManagedResourceSpec.from_object(question["object"]).to_json()
            yield from differences(_set(answer.output["spec"]), _set(spec), "spec")


def _set(spec: JsonObject) -> JsonValue:
    """Return the fields that mean something."""
    found: JsonValue = without_empty({k: v for k, v in spec.items() if v is not False})
    return found
