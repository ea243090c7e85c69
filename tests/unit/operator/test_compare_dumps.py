"""Dumps of a landscape: reading their objects, and ignored ones."""

import base64
from typing import Any

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.garden.components.component import Managed, Target
from pergola.operator.compare import Placed, RecordError, from_objects, from_rows
from pergola.operator.run.deploy import bundle_of
from tests.support.garden import GARDEN

CONFIG_MAP: JsonObject = {
    "apiVersion": "v1",
    "kind": "ConfigMap",
    "metadata": {"name": "settings", "namespace": "garden"},
    "data": {"a": "b"},
}


def resource(name: str, target: Target, *objects: JsonObject) -> list[JsonObject]:
    """Return a ManagedResource of objects, and its Secrets."""
    bundle = bundle_of(Managed(name=name, objects=objects, target=target))
    return [bundle.managed_resource, *bundle.secrets]


def row(kind: str, name: str, where: str = "runtime cluster", **fields: Any) -> JsonObject:
    return {"where": where, "apiVersion": "v1", "kind": kind, "name": name, **fields}


def titles(objects: list[Placed]) -> list[str]:
    return [f"{each.cluster.value} {each.managed or '-'} {each.identity}" for each in objects]


def test_objects_of_managed_resources_are_read_from_their_secrets() -> None:
    runtime = resource("logs", Target.RUNTIME, CONFIG_MAP)
    virtual = resource("roles", Target.VIRTUAL, CONFIG_MAP)

    found = from_objects([*runtime, *virtual])

    assert titles(found.objects)[:2] == [
        "runtime logs ConfigMap garden/settings",
        "virtual roles ConfigMap garden/settings",
    ]
    assert "runtime - ManagedResource garden/logs" in titles(found.objects)
    assert "runtime - Secret garden/managedresource-logs-*" in titles(found.objects)
    assert found.problems == []


def test_an_object_of_a_resource_manager_is_read_only_from_its_manifest() -> None:
    annotations = {"resources.gardener.cloud/origin": "garden:garden/logs"}
    live = {**CONFIG_MAP, "metadata": {**CONFIG_MAP["metadata"], "annotations": annotations}}

    found = from_objects([live, *resource("logs", Target.RUNTIME, CONFIG_MAP)])

    kept = [each for each in titles(found.objects) if "ConfigMap" in each]
    assert kept == ["runtime logs ConfigMap garden/settings"]


def test_a_secret_that_a_dump_lacks_is_a_problem_and_not_a_crash() -> None:
    managed, secret = resource("logs", Target.RUNTIME, CONFIG_MAP)
    broken = {**secret, "data": {"data.yaml.br": base64.b64encode(b"nonsense").decode()}}

    assert from_objects([managed]).problems == [
        f"ManagedResource garden/logs: Secret {Key.of(secret)} is not given"
    ]
    (problem,) = from_objects([managed, broken]).problems
    assert "not a Brotli stream" in problem


def test_objects_that_no_operator_applies_are_counted_and_ignored() -> None:
    rows = [
        row("Pod", "etcd-0", namespace="garden"),
        row("ConfigMap", "kube-root-ca.crt", namespace="garden"),
        row("Service", "kubernetes", namespace="default"),
        row("CustomResourceDefinition", "gardens.operator.gardener.cloud"),
        row("Secret", "mine", labels={"gardener.cloud/role": "garden-cert"}),
        row("DNSRecord", "api", namespace="garden"),
        row("Service", "vali", namespace="garden"),
    ]

    found = from_rows(rows)

    assert titles(found.objects) == ["runtime - Service garden/vali"]
    assert found.ignored == {
        "objects of controllers": 1,
        "objects of Kubernetes": 2,
        "objects of the operator's chart": 1,
        "objects of users": 1,
        "objects for or of extensions": 1,
    }


def test_objects_that_the_garden_references_belong_to_its_user() -> None:
    named = {"spec": {"dns": {"providers": [{"secretRef": {"name": "dns"}}]}}}
    found = from_rows([row("Secret", "dns", namespace="garden"), row("Secret", "other")])

    assert titles(found.made_for(named)) == ["runtime - Secret other"]


def test_the_location_of_an_object_is_read_from_its_row() -> None:
    found = from_rows(
        [
            row("ConfigMap", "settings-0123abcd", "virtual cluster, ManagedResource web"),
            row("Garden", "garden", spec=GARDEN["spec"], apiVersion=GARDEN["apiVersion"]),
        ]
    )

    assert titles(found.objects) == ["virtual web ConfigMap settings-*"]
    assert [each["metadata"]["name"] for each in found.gardens] == ["garden"]
    assert not found.has_texts


@pytest.mark.parametrize("broken", [{}, {"where": "nowhere", "kind": "A", "name": "a"}])
def test_the_error_about_a_malformed_row_has_its_line(broken: JsonObject) -> None:
    with pytest.raises(RecordError, match="line 2"):
        from_rows([row("Service", "a"), broken])
