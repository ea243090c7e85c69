"""The kinds Network and Cluster, as their CustomResourceDefinitions define them (spec 40 §1.2)."""

from typing import Any

import pytest

from pergola.api.extensions_v1alpha1 import Cluster, Network, cluster_crd, network_crd
from pergola.api.objects import JsonObject
from pergola.api.schema import schema_of, validate

STRING: JsonObject = {"type": "string"}
TIME: JsonObject = {"type": "string", "format": "date-time"}
OPAQUE: JsonObject = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
FAMILIES: JsonObject = {
    "type": "array",
    "maxItems": 2,
    "items": {"type": "string", "enum": ["IPv4", "IPv6"], "maxLength": 4},
}
STRINGS: JsonObject = {"type": "array", "items": STRING}


def record(required: tuple[str, ...], **fields: JsonObject) -> JsonObject:
    schema: JsonObject = {"type": "object", "properties": fields}
    return schema | ({"required": sorted(required)} if required else {})


def frozen(message: str) -> JsonObject:
    return STRING | {"x-kubernetes-validations": [{"rule": "self == oldSelf", "message": message}]}


# The schema of spec 40 §1.2, repeated by hand; descriptions are not compared.
SPEC = record(
    ("type", "podCIDR", "serviceCIDR"),
    type=frozen("field is immutable"),
    podCIDR=frozen("field is immutable"),
    serviceCIDR=frozen("field is immutable"),
    ipFamilies=FAMILIES,
    providerConfig=OPAQUE,
    **{"class": frozen("Value is immutable")},
)
CONDITION = record(
    ("type", "status", "lastTransitionTime", "lastUpdateTime", "reason", "message"),
    type=STRING,
    status=STRING,
    lastTransitionTime=TIME,
    lastUpdateTime=TIME,
    reason=STRING,
    message=STRING,
    codes=STRINGS,
)
OPERATION = record(
    ("type", "state", "progress", "description", "lastUpdateTime"),
    type=STRING,
    state=STRING,
    progress={"type": "integer", "format": "int32"},
    description=STRING,
    lastUpdateTime=TIME,
)
ERROR = record(
    ("description",), description=STRING, codes=STRINGS, taskID=STRING, lastUpdateTime=TIME
)
REFERENCE = record(("kind", "name"), apiVersion=STRING, kind=STRING, name=STRING)
STATUS = record(
    (),
    ipFamilies=FAMILIES,
    providerStatus=OPAQUE,
    conditions={"type": "array", "items": CONDITION},
    lastOperation=OPERATION,
    lastError=ERROR,
    observedGeneration={"type": "integer", "format": "int64"},
    observedTimestamp=STRING,
    state=OPAQUE,
    resources={
        "type": "array",
        "items": record(
            ("name", "resourceRef"),
            name=STRING,
            resourceRef=REFERENCE | {"x-kubernetes-map-type": "atomic"},
        ),
    },
)


def bare(schema: Any) -> Any:
    """Remove descriptions, which are strings; a property may have the same name."""
    if isinstance(schema, list):
        return [bare(item) for item in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        name: bare(value)
        for name, value in schema.items()
        if name != "description" or not isinstance(value, str)
    }


def test_the_schema_of_a_network_follows_the_contract() -> None:
    properties = bare(schema_of(Network))["properties"]
    rules = properties["spec"].pop("x-kubernetes-validations")

    assert properties["spec"] == SPEC
    assert [rule["fieldPath"] for rule in rules] == [".class", ".ipFamilies"]
    assert properties["status"] == STATUS
    assert schema_of(Network)["required"] == ["spec"]


def test_networks_are_served_as_the_contract_requires() -> None:
    crd = network_crd()
    [version] = crd["spec"]["versions"]

    assert crd["metadata"] == {
        "name": "networks.extensions.gardener.cloud",
        "labels": {"gardener.cloud/deletion-protected": "true"},
    }
    assert crd["spec"]["names"] == {
        "kind": "Network",
        "listKind": "NetworkList",
        "plural": "networks",
        "singular": "network",
    }
    assert (crd["spec"]["scope"], version["name"]) == ("Namespaced", "v1alpha1")
    assert version["subresources"] == {"status": {}}
    assert [(c["name"], c["jsonPath"]) for c in version["additionalPrinterColumns"]] == [
        ("Type", ".spec.type"),
        ("Pod CIDR", ".spec.podCIDR"),
        ("Service CIDR", ".spec.serviceCIDR"),
        ("Status", ".status.lastOperation.state"),
        ("Age", ".metadata.creationTimestamp"),
    ]


def test_a_cluster_is_cluster_scoped_with_a_status_subresource() -> None:
    crd = cluster_crd()
    [version] = crd["spec"]["versions"]

    assert crd["metadata"]["name"] == "clusters.extensions.gardener.cloud"
    assert crd["spec"]["scope"] == "Cluster"
    assert version["subresources"] == {"status": {}}


@pytest.mark.parametrize("missing", ["type", "podCIDR", "serviceCIDR"])
def test_a_network_without_required_fields_violates_the_schema(missing: str) -> None:
    spec: JsonObject = {
        "type": "calico",
        "podCIDR": "100.244.0.0/16",
        "serviceCIDR": "100.32.0.0/13",
    }
    del spec[missing]

    [finding] = validate(schema_of(Network), {"spec": spec})

    assert str(finding) == f"spec.{missing}: is required"


@pytest.mark.parametrize("part", ["cloudProfile", "seed", "shoot"])
def test_parts_of_a_cluster_may_be_null_or_any_object(part: str) -> None:
    values: list[JsonObject | None] = [None, {}, {"kind": "Shoot", "spec": {"a": [1, None]}}]
    for value in values:
        assert validate(schema_of(Cluster), {"spec": {part: value}}) == []
