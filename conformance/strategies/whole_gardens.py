"""Gardens with the objects beside them that they name, to reconcile as a whole."""

import base64
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.gardens import GARDEN, PROVIDERS, STORED, VIRTUAL, altered
from pergola.api.objects import JsonObject, map_at
from pergola.manifests import manifest
from pergola.operator.run.references import references_of

_NOW: Final = "2026-01-02T12:00:00Z"
_AUDIT_POLICY: Final = """\
apiVersion: audit.k8s.io/v1
kind: Policy
rules:
- level: Metadata
"""
_AUTHENTICATION: Final = """\
apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthenticationConfiguration
jwt:
- issuer:
    url: https://issuer.example.org
    audiences: [garden]
  claimMappings:
    username: {claim: sub, prefix: "a:"}
"""
_AUTHORIZATION: Final = """\
apiVersion: apiserver.config.k8s.io/v1beta1
kind: AuthorizationConfiguration
authorizers:
- type: Webhook
  name: webhook
  webhook:
    timeout: 3s
    subjectAccessReviewVersion: v1
    matchConditionSubjectAccessReviewVersion: v1
    failurePolicy: Deny
    connectionInfo: {type: KubeConfigFile}
"""
_CONFIG_MAPS: Final = {
    "audit-policy": {"policy": _AUDIT_POLICY},
    "authentication": {"config.yaml": _AUTHENTICATION},
    "authorization": {"config.yaml": _AUTHORIZATION},
    "frontend": {"frontend-config.yaml": "branding: {productName: Example}\n"},
}
_CERTIFICATE: Final = ("tls.crt", "tls.key", "ca.crt")
_CERTIFICATES: Final = ("dashboard-tls", "discovery-tls", "sni", "wildcard")
_SECRET_KEYS: Final = (
    *("kubeconfig", "client_id", "client_secret", "token", "username", "webhookSecret"),
    "ca.crt",
)
_AUTHORITY: Final = """\
-----BEGIN CERTIFICATE-----
MIIBfjCCASWgAwIBAgIUXbGx21hul3m2GRvfLrmBvsT3ISgwCgYIKoZIzj0EAwIw
FDESMBAGA1UEAwwJYXV0aG9yaXR5MCAXDTI2MTEyODE0NTYzNFoYDzIxMjYxMTA0
MTQ1NjM0WjAUMRIwEAYDVQQDDAlhdXRob3JpdHkwWTATBgcqhkjOPQIBBggqhkjO
PQMBBwNCAAQ1OIpO6aKLFN9xKGRl7RzjP0UVY2FDqTYag1n67TeywIbxBN5EArZM
XcPJkwaWpvuRqpXzBtEbI5F75zEXpL8ho1MwUTAdBgNVHQ4EFgQUEvVQJ8oRM8Ee
ec6kBl5qvybyq/MwHwYDVR0jBBgwFoAUEvVQJ8oRM8Eeec6kBl5qvybyq/MwDwYD
VR0TAQH/BAUwAwEB/zAKBggqhkjOPQQDAgNHADBEAiBqa38wzocwDq1kvLJefKAU
yDc3NfG8Aps4M59lCYJoMgIgQXztTSKixIBFkL3gOE+k4bEMsGq5PaTbvcAdF78X
2yc=
-----END CERTIFICATE-----
"""
_WILDCARD: Final = {"gardener.cloud/role": "garden-cert"}
_KINDS: Final = ("BackupBucket", "BackupEntry", "DNSRecord")
_EXTENSION: Final = manifest(
    "operator.gardener.cloud/v1alpha1",
    "Extension",
    "local",
    spec={
        "resources": [
            *({"kind": kind, "type": "local"} for kind in _KINDS),
            {"kind": "Extension", "type": "certificates", "clusterCompatibility": ["garden"]},
        ]
    },
)
_INSTALLED: Final = manifest(
    "resources.gardener.cloud/v1alpha1",
    "ManagedResource",
    "extension-local-garden",
    namespace="garden",
    spec={"class": "seed", "secretRefs": []},
)
_GATES: Final = {
    "BackupEntryForGarden": False,
    "DefaultSeccompProfile": True,
    "DisableNginxIngressInGarden": False,
    "IstioTLSTermination": False,
    "PrometheusHealthChecks": True,
    "RemoveVali": True,
    "VictoriaLogsBackend": True,
}
"""Feature gates of the operator that are not as usual."""
_NONE: Final[Mapping[str, bool]] = MappingProxyType({})
_METADATA: Final = {
    "name": "garden",
    "uid": "8a9b0f0e-1f43-4d6a-9a53-9ba7d4c4f7f5",
    "creationTimestamp": "2026-01-01T12:34:00Z",
}


def question(
    garden: JsonObject, *, wildcard: bool = True, gates: Mapping[str, bool] = _NONE
) -> JsonObject:
    """Return the question about a Garden whose resources are encrypted as it says.

    Args:
        wildcard: Whether there is a certificate for all hosts.
        gates: The operator's feature gates that are not as usual.
    """
    api_servers = (
        map_at(garden, *VIRTUAL, "kubernetes", "kubeAPIServer"),
        map_at(garden, *VIRTUAL, "gardener", "gardenerAPIServer"),
    )
    settings = [map_at(each, "encryptionConfig") for each in api_servers]
    at_rest = {
        "resources": [name for each in settings for name in each.get("resources", ())],
        "provider": {"type": map_at(settings[0], "provider").get("type", "aescbc")},
    }
    status = {"credentials": {"encryptionAtRest": at_rest}}
    asked: JsonObject = {**garden, "metadata": _METADATA, "status": status}
    beside = [*_beside(asked, wildcard=wildcard)]
    return {"garden": asked, "beside": beside, "featureGates": dict(gates), "now": _NOW}


def _beside(garden: JsonObject, *, wildcard: bool) -> Iterator[JsonObject]:
    yield from (_EXTENSION, _INSTALLED)
    seen = set()
    for reference in references_of(garden):
        key = reference.kind, reference.key
        if key not in seen:
            seen.add(key)
            yield _referenced(reference.kind, reference.key.name)
    if wildcard:
        yield _secret("wildcard", labels=_WILDCARD)


def _referenced(kind: str, name: str) -> JsonObject:
    if kind == "Secret":
        return _secret(name)
    if name == "assets":
        return manifest("v1", kind, name, namespace="garden", binaryData={"logo.png": "bG9nbw=="})
    return manifest("v1", kind, name, namespace="garden", data=_CONFIG_MAPS[name])


def _secret(name: str, labels: Mapping[str, str] | None = None) -> JsonObject:
    keys = _CERTIFICATE if name in _CERTIFICATES else _SECRET_KEYS
    values = {key: key for key in keys} | {"ca.crt": _AUTHORITY}
    data = {key: base64.b64encode(value.encode()).decode() for key, value in values.items()}
    return manifest("v1", "Secret", name, namespace="garden", labels=labels, data=data)


_RUNTIME: Final = ("spec", "runtimeCluster")
_Path = tuple[str, ...]


def _paths(value: JsonObject, above: _Path) -> Iterator[_Path]:
    for name, below in value.items():
        path = (*above, name)
        if name not in _NEEDED:
            yield path
        if isinstance(below, dict):
            yield from _paths(below, path)


# Admission accepts references without a name, which nothing can follow. The original crashes
# without domains or settings; without settings of an autoscaler, it needs one that exists already.
_NEEDED: Final = ("domains", "name", "settings", "verticalPodAutoscaler")
PATHS: Final = tuple(_paths(GARDEN["spec"], ("spec",)))
"""The paths of all fields of a Garden that has every field."""


def without(paths: list[_Path]) -> JsonObject:
    """Return the Garden with every field, without some."""
    chosen = [each for each in paths if not any(each[:n] in paths for n in range(len(each)))]
    return altered(GARDEN, *((path, None) for path in chosen))


def some_garden() -> SearchStrategy[JsonObject]:
    """Return a strategy for questions about Gardens with random options."""
    dropped = st.lists(st.sampled_from(PATHS), max_size=25, unique=True)
    versions = st.sampled_from(["1.32.9", "1.33.4", "1.34.2", "1.36.2"])

    def asked(
        paths: list[_Path], version: str, wildcard: bool, gates: Mapping[str, bool]
    ) -> JsonObject:
        garden = without(paths)
        kubernetes = map_at(garden, *VIRTUAL, "kubernetes")
        if kubernetes:
            kubernetes["version"] = version
        return question(garden, wildcard=wildcard, gates=gates)

    gates = st.dictionaries(st.sampled_from([*_GATES]), st.booleans(), max_size=2)
    return st.builds(asked, dropped, versions, st.booleans(), gates)


_FEW: Final = altered(
    GARDEN,
    *((path, None) for path in (("spec", "dns"), *PROVIDERS)),
    *((("spec", name), None) for name in ("extensions", "resources")),
    ((*_RUNTIME, "settings"), {"verticalPodAutoscaler": {"enabled": True}}),
    ((*_RUNTIME, "volume"), None),
    *(((*VIRTUAL, name), None) for name in ("controlPlane", "etcd")),
    ((*VIRTUAL, "gardener"), {"clusterIdentity": "garden"}),
    ((*VIRTUAL, "kubernetes"), {"version": "1.34.2"}),
)
# The others differ in their status alone.
_ROTATIONS: Final = next(index for index, garden in enumerate(STORED) if "status" not in garden)
GARDENS: Final = (
    question(GARDEN),
    question(GARDEN, wildcard=False),
    question(_FEW),
    *(question(GARDEN, gates={gate: on}) for gate, on in _GATES.items()),
    *(question(garden) for garden in STORED[1:_ROTATIONS]),
    *(question(without([path])) for path in PATHS if len(path) <= 4),
    question(without([path for path in PATHS if path[-1] == "tlsSecretName"]), wildcard=False),
)
"""Questions about Gardens with every option set, and each of them unset."""
