"""Secrets and ConfigMaps referenced by a Garden must have the required content."""

import base64
from datetime import UTC, datetime, timedelta
from functools import cache

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.operator.run.reference_contents import content_problems
from pergola.operator.run.references import references_of
from pergola.pki.authorities import Authority
from tests.support.gardens import GARDENER, MINIMAL, SERVER, with_values

KUBECONFIG = """
clusters: [{name: a, cluster: {server: "https://a"}}]
contexts: [{name: a, context: {cluster: a}}]
current-context: a
"""
KUBECONFIG_FIELDS = {
    f"{SERVER}.auditWebhook": {"kubeconfigSecretName": "named"},
    f"{GARDENER}.gardenerAPIServer.auditWebhook": {"kubeconfigSecretName": "named"},
    f"{SERVER}.authentication.webhook": {"kubeconfigSecretName": "named"},
    f"{SERVER}.admissionPlugins": [{"name": "A", "kubeconfigSecretName": "named"}],
    f"{SERVER}.structuredAuthorization.kubeconfigs": [
        {"authorizerName": "a", "secretName": "named"}
    ],
}
TLS_FIELDS = {
    f"{SERVER}.sni": {"domainPatterns": ["api.example.org"], "secretName": "named"},
    f"{GARDENER}.gardenerDashboard": {"tlsSecretName": "named"},
    f"{GARDENER}.gardenerDiscoveryServer": {"tlsSecretName": "named"},
}
FRONTEND = f"{GARDENER}.gardenerDashboard"
MAP_FIELDS = {
    f"{SERVER}.auditConfig.auditPolicy.configMapRef": ({"name": "named"}, "policy"),
    f"{SERVER}.structuredAuthentication": ({"configMapName": "named"}, "config.yaml"),
    f"{SERVER}.structuredAuthorization": ({"configMapName": "named"}, "config.yaml"),
    FRONTEND: ({"frontendConfigMapRef": {"name": "named"}}, "frontend-config.yaml"),
}


def problems(field: str, value: object, content: dict[str, str]) -> list[str]:
    """Return the problems of the one object that a Garden names, without object and field."""
    garden = with_values(MINIMAL, {field: value})
    (reference,) = references_of(garden)
    data = (
        {key: base64.b64encode(text.encode()).decode() for key, text in content.items()}
        if reference.kind == "Secret"
        else content
    )
    metadata = {"name": "named", "namespace": "garden"}
    obj: JsonObject = {
        "apiVersion": "v1",
        "kind": reference.kind,
        "metadata": metadata,
        "data": data,
    }
    found = {(reference.kind, Key("garden", "named")): obj}
    prefix = f"{reference.kind} garden/named ({reference.field}) "
    assert field in prefix
    return [text.removeprefix(prefix) for text in content_problems([reference], found)]


@cache
def key_pair(name: str) -> tuple[str, str]:
    pair = Authority.create(name, datetime.now(UTC), timedelta(days=1)).pair
    return pair.public.decode(), pair.private.decode()


@pytest.mark.parametrize("field", KUBECONFIG_FIELDS)
@pytest.mark.parametrize(
    ("content", "problem"),
    [
        ({"kubeconfig": KUBECONFIG}, None),
        ({}, "is empty"),
        ({"kubeconfig": ""}, "is empty"),
        ({"config": KUBECONFIG}, 'has no content at key "kubeconfig"'),
        ({"kubeconfig": "a: [b"}, 'has a key "kubeconfig" that is not a kubeconfig with a cluster'),
        ({"kubeconfig": "a: b"}, 'has a key "kubeconfig" that is not a kubeconfig with a cluster'),
    ],
)
def test_a_kubeconfig_names_a_cluster(
    field: str, content: dict[str, str], problem: str | None
) -> None:
    found = problems(field, KUBECONFIG_FIELDS[field], content)
    assert found == ([problem] if problem else [])


@pytest.mark.parametrize("field", TLS_FIELDS)
def test_a_certificate_has_its_key(field: str) -> None:
    certificate, key = key_pair("a")

    def found(**content: str) -> list[str]:
        values = {name.replace("_", "."): text for name, text in content.items()}
        return problems(field, TLS_FIELDS[field], values)

    assert found(tls_crt=certificate, tls_key=key) == []
    assert found(tls_crt=certificate) == ['has no content at key "tls.key"']
    assert found(tls_crt=certificate, tls_key=key_pair("b")[1]) == [
        'has a "tls.key" that does not belong to its "tls.crt"'
    ]
    (unreadable,) = found(tls_crt="certificate", tls_key=key)
    assert unreadable.startswith('has a "tls.crt" or "tls.key" that cannot be read: ')


@pytest.mark.parametrize("field", MAP_FIELDS)
def test_a_configuration_file_is_a_map(field: str) -> None:
    value, key = MAP_FIELDS[field]
    assert problems(field, value, {key: "kind: Policy"}) == []
    assert problems(field, value, {"other": "kind: Policy"}) == [f'has no content at key "{key}"']
    for malformed in ("- a", "a: [b"):
        assert problems(field, value, {key: malformed}) == [
            f'has a key "{key}" that is not a YAML map'
        ]


@pytest.mark.parametrize("field", MAP_FIELDS)
def test_only_settings_of_the_dashboard_may_be_empty(field: str) -> None:
    value, key = MAP_FIELDS[field]
    empty = [] if field == FRONTEND else [f'has no content at key "{key}"']
    assert problems(field, value, {key: ""}) == empty


def test_credentials_for_other_systems_must_not_be_empty() -> None:
    field = "spec.virtualCluster.etcd.main.backup.secretRef"
    assert problems(field, {"name": "named"}, {"any": "thing"}) == []
    assert problems(field, {"name": "named"}, {}) == ["is empty"]


def test_references_of_extensions_may_have_any_content() -> None:
    resource = {"name": "a", "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "named"}}
    assert problems("spec.resources", [resource], {}) == []
