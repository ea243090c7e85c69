"""The Secrets and ConfigMaps that a Garden names (spec 21 §4.2)."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.operator.run.references import references_of
from tests.support.garden import GARDEN

KUBE = "spec.virtualCluster.kubernetes.kubeAPIServer"
GARDENER = "spec.virtualCluster.gardener.gardenerAPIServer"
DASHBOARD = "spec.virtualCluster.gardener.gardenerDashboard"
FIELDS = {
    "spec.dns.providers[0].secretRef.name": "Secret",
    "spec.virtualCluster.etcd.main.backup.secretRef.name": "Secret",
    f"{KUBE}.admissionPlugins[0].kubeconfigSecretName": "Secret",
    f"{GARDENER}.admissionPlugins[0].kubeconfigSecretName": "Secret",
    f"{KUBE}.authentication.webhook.kubeconfigSecretName": "Secret",
    f"{KUBE}.auditWebhook.kubeconfigSecretName": "Secret",
    f"{GARDENER}.auditWebhook.kubeconfigSecretName": "Secret",
    f"{KUBE}.sni.secretName": "Secret",
    f"{KUBE}.structuredAuthorization.kubeconfigs[0].secretName": "Secret",
    f"{DASHBOARD}.gitHub.secretRef.name": "Secret",
    f"{DASHBOARD}.oidcConfig.secretRef.name": "Secret",
    f"{DASHBOARD}.oidcConfig.certificateAuthoritySecretRef.name": "Secret",
    f"{DASHBOARD}.tlsSecretName": "Secret",
    "spec.virtualCluster.gardener.gardenerDiscoveryServer.tlsSecretName": "Secret",
    f"{KUBE}.auditConfig.auditPolicy.configMapRef.name": "ConfigMap",
    f"{GARDENER}.auditConfig.auditPolicy.configMapRef.name": "ConfigMap",
    f"{KUBE}.structuredAuthentication.configMapName": "ConfigMap",
    f"{KUBE}.structuredAuthorization.configMapName": "ConfigMap",
    f"{DASHBOARD}.frontendConfigMapRef.name": "ConfigMap",
    f"{DASHBOARD}.assetsConfigMapRef.name": "ConfigMap",
}


def naming(field: str, value: object) -> JsonObject:
    """Return a Garden with a value at a path; `[0]` is the only item of a list."""
    found: Any = value
    for step in reversed(field.split(".")):
        name, _, is_list = step.partition("[")
        found = {name: [found] if is_list else found}
    garden: JsonObject = found
    return garden


@pytest.mark.parametrize(("field", "kind"), FIELDS.items())
def test_every_field_that_names_an_object_is_a_reference(field: str, kind: str) -> None:
    assert references_of(naming(field, "x")) == [(kind, ("garden", "x"), field)]


@pytest.mark.parametrize("field", FIELDS)
@pytest.mark.parametrize("value", ["", None, 1, {}, []])
def test_a_value_that_is_not_a_name_is_not_a_reference(field: str, value: object) -> None:
    assert references_of(naming(field, value)) == []


def test_each_item_of_a_list_is_a_separate_reference() -> None:
    providers = [{"secretRef": {"name": "a"}}, {"secretRef": {}}, {"secretRef": {"name": "b"}}]
    found = references_of({"spec": {"dns": {"providers": providers}}})
    assert [reference.field for reference in found] == [
        "spec.dns.providers[0].secretRef.name",
        "spec.dns.providers[2].secretRef.name",
    ]


@pytest.mark.parametrize(
    ("resource", "kinds"),
    [
        ({"apiVersion": "v1", "kind": "Secret", "name": "a"}, ["Secret"]),
        ({"apiVersion": "v1", "kind": "ConfigMap", "name": "a"}, ["ConfigMap"]),
        ({"apiVersion": "v1", "kind": "Service", "name": "a"}, []),
        ({"apiVersion": "example.org/v1", "kind": "Secret", "name": "a"}, []),
        ({"apiVersion": "v1", "kind": "Secret", "name": ""}, []),
        ("a", []),
    ],
)
def test_resources_for_extensions_are_references(resource: object, kinds: list[str]) -> None:
    garden: JsonObject = {"spec": {"resources": [{"name": "x", "resourceRef": resource}]}}
    assert [reference.kind for reference in references_of(garden)] == kinds


def test_a_minimal_garden_has_no_references() -> None:
    assert references_of(GARDEN) == []


json = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=3),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.text(max_size=3), inner),
    max_leaves=5,
)


@given(field=st.sampled_from(list(FIELDS)), value=json, cut=st.integers(0, 6))
def test_references_of_malformed_gardens_can_be_read(field: str, value: object, cut: int) -> None:
    references_of(naming(".".join(field.split(".")[: cut + 1]), value))
