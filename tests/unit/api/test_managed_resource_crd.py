from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.api.resources_v1alpha1 import (
    ManagedResource,
    ManagedResourceSpec,
    ManagedResourceStatus,
    managed_resource_crd,
)
from pergola.api.schema import Malformed, schema_of, validate

STRING: JsonObject = {"type": "string"}
BOOLEAN: JsonObject = {"type": "boolean"}
TIME: JsonObject = {"type": "string", "format": "date-time"}
LABELS: JsonObject = {"type": "object", "additionalProperties": STRING}

# The schema of spec 10 §2, repeated by hand; descriptions are not compared.
SPEC: JsonObject = {
    "type": "object",
    "required": ["secretRefs"],
    "properties": {
        "class": STRING,
        "deletePersistentVolumeClaims": BOOLEAN,
        "equivalences": {
            "type": "array",
            "items": {
                "type": "array",
                "items": {
                    "type": "object",
                    "required": ["group", "kind"],
                    "properties": {"group": STRING, "kind": STRING},
                },
            },
        },
        "forceOverwriteAnnotations": BOOLEAN,
        "forceOverwriteLabels": BOOLEAN,
        "injectLabels": LABELS,
        "keepObjects": BOOLEAN,
        "secretRefs": {
            "type": "array",
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {"name": {"type": "string", "default": ""}},
            },
        },
    },
}
STATUS: JsonObject = {
    "type": "object",
    "properties": {
        "conditions": {
            "type": "array",
            "items": {
                "type": "object",
                "required": [
                    "lastTransitionTime",
                    "lastUpdateTime",
                    "message",
                    "reason",
                    "status",
                    "type",
                ],
                "properties": {
                    "codes": {"type": "array", "items": STRING},
                    "lastTransitionTime": TIME,
                    "lastUpdateTime": TIME,
                    "message": STRING,
                    "reason": STRING,
                    "status": STRING,
                    "type": STRING,
                },
            },
        },
        "observedGeneration": {"type": "integer", "format": "int64"},
        "resources": {
            "type": "array",
            "items": {
                "type": "object",
                "x-kubernetes-map-type": "atomic",
                "properties": {
                    "annotations": LABELS,
                    "apiVersion": STRING,
                    "fieldPath": STRING,
                    "kind": STRING,
                    "labels": LABELS,
                    "name": STRING,
                    "namespace": STRING,
                    "resourceVersion": STRING,
                    "uid": STRING,
                },
            },
        },
        "secretsDataChecksum": STRING,
    },
}
CRD: JsonObject = {
    "apiVersion": "apiextensions.k8s.io/v1",
    "kind": "CustomResourceDefinition",
    "metadata": {
        "name": "managedresources.resources.gardener.cloud",
        "labels": {"gardener.cloud/deletion-protected": "true"},
    },
    "spec": {
        "group": "resources.gardener.cloud",
        "scope": "Namespaced",
        "names": {
            "kind": "ManagedResource",
            "listKind": "ManagedResourceList",
            "plural": "managedresources",
            "shortNames": ["mr"],
            "singular": "managedresource",
        },
        "versions": [
            {
                "name": "v1alpha1",
                "served": True,
                "storage": True,
                "subresources": {"status": {}},
                "schema": {
                    "openAPIV3Schema": {
                        "type": "object",
                        "properties": {
                            "apiVersion": STRING,
                            "kind": STRING,
                            "metadata": {"type": "object"},
                            "spec": SPEC,
                            "status": STATUS,
                        },
                    }
                },
                "additionalPrinterColumns": [
                    {"name": "Class", "type": "string", "jsonPath": ".spec.class"},
                    {
                        "name": "Applied",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type=="ResourcesApplied")].status',
                    },
                    {
                        "name": "Healthy",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type=="ResourcesHealthy")].status',
                    },
                    {
                        "name": "Progressing",
                        "type": "string",
                        "jsonPath": '.status.conditions[?(@.type=="ResourcesProgressing")].status',
                    },
                    {"name": "Age", "type": "date", "jsonPath": ".metadata.creationTimestamp"},
                ],
            }
        ],
    },
}


def without_descriptions(value: Any) -> Any:
    if isinstance(value, list):
        return [without_descriptions(entry) for entry in value]
    if not isinstance(value, dict):
        return value
    return {
        name: without_descriptions(entry)
        for name, entry in value.items()
        if name != "description" or not isinstance(entry, str)
    }


def properties(schema: JsonObject, path: str = "") -> list[tuple[str, JsonObject]]:
    found: list[tuple[str, JsonObject]] = []
    for name, entry in schema.get("properties", {}).items():
        found += [(f"{path}.{name}", entry), *properties(entry, f"{path}.{name}")]
    if isinstance(items := schema.get("items"), dict):
        found += properties(items, f"{path}[]")
    return found


def test_the_crd_follows_the_specification() -> None:
    assert without_descriptions(managed_resource_crd()) == CRD


def test_every_field_has_a_description() -> None:
    bare = [path for path, s in properties(schema_of(ManagedResource)) if not s.get("description")]

    assert bare == [".metadata"]


def problems(obj: JsonObject) -> list[str]:
    return [str(finding) for finding in validate(schema_of(ManagedResource), obj)]


def test_secret_refs_are_required_and_may_be_empty() -> None:
    assert problems({"spec": {}}) == ["spec.secretRefs: is required"]
    assert problems({"spec": {"secretRefs": []}}) == []
    assert problems({}) == []


def test_an_equivalence_without_a_group_is_rejected() -> None:
    spec = {"secretRefs": [], "equivalences": [[{"kind": "X"}]]}

    assert problems({"spec": spec}) == ["spec.equivalences[0][0].group: is required"]


def test_a_secret_ref_without_a_name_has_the_empty_name() -> None:
    assert problems({"spec": {"secretRefs": [{}]}}) == []
    [ref] = ManagedResourceSpec.from_object({"spec": {"secretRefs": [{}]}}).secret_refs
    assert ref.name == ""


def test_a_spec_is_read_with_every_field() -> None:
    spec = ManagedResourceSpec.from_object(
        {
            "spec": {
                "class": "seed",
                "secretRefs": [{"name": "a"}, {"name": "b"}],
                "injectLabels": {"x": "y"},
                "forceOverwriteLabels": True,
                "forceOverwriteAnnotations": True,
                "keepObjects": True,
                "equivalences": [[{"group": "apps", "kind": "Deployment"}]],
                "deletePersistentVolumeClaims": True,
                "somethingNewer": {"is": "ignored"},
            }
        }
    )

    assert (spec.class_, [ref.name for ref in spec.secret_refs]) == ("seed", ["a", "b"])
    assert spec.inject_labels == {"x": "y"}
    assert spec.force_overwrite_labels
    assert spec.force_overwrite_annotations
    assert spec.keep_objects
    assert spec.delete_persistent_volume_claims
    assert [[e.kind for e in group] for group in spec.equivalences] == [["Deployment"]]


def test_an_object_without_spec_and_status_is_read_as_empty() -> None:
    assert ManagedResourceSpec.from_object({}).secret_refs == []
    assert ManagedResourceStatus.from_object({}).resources == []


def test_a_malformed_spec_is_reported_in_one_sentence() -> None:
    obj = {
        "metadata": {"namespace": "shoot--a", "name": "core"},
        "spec": {"secretRefs": [{"name": 1}], "keepObjects": "yes"},
    }

    with pytest.raises(Malformed) as caught:
        ManagedResourceSpec.from_object(obj)

    assert str(caught.value) == (
        "ManagedResource shoot--a/core: spec.secretRefs[0].name: must be a string, not an integer; "
        "spec.keepObjects: must be true or false, not a string"
    )
