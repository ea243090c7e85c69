"""The Bastion as a kind: spec 30 §10.1, spec 12 §15.2."""

import pytest

from pergola.api.bastion_v1alpha1 import Bastion, bastion_crd
from pergola.api.objects import JsonObject
from pergola.api.schema.read import read
from pergola.api.schema.structural import schema_of
from pergola.api.schema.validate import validate

VALID: JsonObject = {
    "apiVersion": "extensions.gardener.cloud/v1alpha1",
    "kind": "Bastion",
    "metadata": {"name": "cli-1", "namespace": "shoot--p--web"},
    "spec": {
        "type": "aws",
        "userData": "IyEvYmluL3NoCg==",
        "ingress": [{"ipBlock": {"cidr": "10.0.0.0/8", "except": ["10.1.0.0/16"]}}],
        "providerConfig": {"apiVersion": "a/v1", "kind": "K", "anything": {"goes": [1]}},
    },
    "status": {
        "ingress": {
            "ip": "192.0.2.1",
            "hostname": "bastion.example.org",
            "ipMode": "VIP",
            "ports": [{"port": 22, "protocol": "TCP", "error": "example.org/PortInUse"}],
        },
        "observedGeneration": 1,
    },
}


def test_fields_that_callers_and_the_aws_extension_write_are_valid() -> None:
    assert list(validate(schema_of(Bastion), VALID, "")) == []


@pytest.mark.parametrize("error", ["", "not a word", "e" * 317])
def test_the_error_of_a_port_must_be_a_string(error: str) -> None:
    port: JsonObject = {"port": 22, "protocol": "TCP", "error": error}
    status: JsonObject = {"ingress": {"ports": [port]}}

    [found] = validate(schema_of(Bastion), {**VALID, "status": status}, "")

    assert found.path == "status.ingress.ports[0].error"


def test_a_bastion_survives_a_round_trip() -> None:
    bastion = read(Bastion, VALID, of="Bastion cli-1")

    assert bastion.spec.user_data == b"#!/bin/sh\n"
    assert bastion.spec.ingress[0].ip_block.except_ == ["10.1.0.0/16"]
    assert bastion.to_json() == VALID


@pytest.mark.parametrize("field", ["type", "userData", "ingress"])
def test_fields_that_every_provider_needs_are_required(field: str) -> None:
    spec = {name: value for name, value in VALID["spec"].items() if name != field}

    findings = validate(schema_of(Bastion), {**VALID, "spec": spec}, "")

    assert [finding.path for finding in findings] == [f"spec.{field}"]


def test_the_definition_is_namespaced_has_a_status_and_shows_the_address() -> None:
    definition = bastion_crd()["spec"]
    version = definition["versions"][0]

    assert definition["scope"] == "Namespaced"
    assert version["subresources"] == {"status": {}}
    columns = [column["name"] for column in version["additionalPrinterColumns"]]
    assert columns == ["IP", "Hostname", "Age"]
    fields = version["schema"]["openAPIV3Schema"]["properties"]["spec"]["properties"]
    rules = {name: field.get("x-kubernetes-validations") for name, field in fields.items()}
    assert {name for name, rule in rules.items() if rule} == {"type", "userData", "class"}
