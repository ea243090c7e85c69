"""The Infrastructure as a kind: spec 30 §2 item 1."""

import pytest

from pergola.api.infrastructure_v1alpha1 import Infrastructure, infrastructure_crd
from pergola.api.objects import JsonObject
from pergola.api.schema.structural import schema_of
from pergola.api.schema.validate import validate

VALID: JsonObject = {
    "apiVersion": "extensions.gardener.cloud/v1alpha1",
    "kind": "Infrastructure",
    "metadata": {"name": "web", "namespace": "shoot--p--web"},
    "spec": {
        "type": "aws",
        "region": "eu-west-1",
        "secretRef": {"name": "cloudprovider", "namespace": "shoot--p--web"},
        "sshPublicKey": "c3NoLXJzYQ==",
        "providerConfig": {"apiVersion": "a/v1", "kind": "K", "anything": {"goes": [1]}},
    },
    "status": {
        "egressCIDRs": ["192.0.2.1/32"],
        "networking": {"nodes": ["10.0.0.0/16"], "pods": [], "services": []},
        "state": {"data": {"VPC": "vpc-1"}},
        "providerStatus": {"vpc": {"id": "vpc-1"}},
    },
}


def test_fields_that_the_aws_extension_writes_are_valid() -> None:
    assert list(validate(schema_of(Infrastructure), VALID, "")) == []


@pytest.mark.parametrize("field", ["type", "region", "secretRef"])
def test_fields_that_every_provider_needs_are_required(field: str) -> None:
    spec = {name: value for name, value in VALID["spec"].items() if name != field}

    findings = validate(schema_of(Infrastructure), {**VALID, "spec": spec}, "")

    assert [finding.path for finding in findings] == [f"spec.{field}"]


def test_the_definition_is_namespaced_has_a_status_a_short_name_and_shows_the_region() -> None:
    definition = infrastructure_crd()["spec"]
    version = definition["versions"][0]

    assert definition["scope"] == "Namespaced"
    assert definition["names"]["shortNames"] == ["infra"]
    assert version["subresources"] == {"status": {}}
    assert [column["name"] for column in version["additionalPrinterColumns"]] == [
        "Type",
        "Region",
        "Status",
        "Age",
    ]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    rules = {name: field.get("x-kubernetes-validations") for name, field in fields.items()}
    assert {name for name, rule in rules.items() if rule} == {"type", "region", "class"}
