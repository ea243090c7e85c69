"""The permissions of Istio's control plane."""

from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import READ, account, cluster_role, role, rule

NAMESPACE: Final = "istio-system"
ISTIOD: Final = "istiod"
LABELS: Final = {"app": ISTIOD, "istio": "pilot"}

_READER: Final = "istio-reader-service-account"
_CONFIGURATION: Final = (
    "config.istio.io",
    "security.istio.io",
    "networking.istio.io",
    "authentication.istio.io",
    "rbac.istio.io",
    "telemetry.istio.io",
    "extensions.istio.io",
)
_GATEWAYS: Final = "gateway.networking.k8s.io"
_GATEWAYS_X: Final = "gateway.networking.x-k8s.io"
_INFERENCE: Final = "inference.networking.k8s.io"
_MULTICLUSTER: Final = "multicluster.x-k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"
_ALL: Final = (*READ, "update", "patch", "create", "delete")
_STATUS: Final = ("update", "patch")
_ROUTES: Final = (
    "backendtlspolicies",
    "gatewayclasses",
    "gateways",
    "grpcroutes",
    "httproutes",
    "referencegrants",
    "tcproutes",
    "tlsroutes",
    "udproutes",
)


def permissions() -> Iterator[JsonObject]:
    """Yield all roles and their bindings."""
    istiod = account(ISTIOD, NAMESPACE)
    reader = account(_READER, NAMESPACE)
    yield from cluster_role(f"istio-reader-clusterrole-{NAMESPACE}", _read(), reader, labels=LABELS)
    yield from cluster_role(f"istiod-clusterrole-{NAMESPACE}", _control(), istiod, labels=LABELS)
    yield from cluster_role(
        f"istiod-gateway-controller-{NAMESPACE}", _gateways(), istiod, labels=LABELS
    )
    yield from role(ISTIOD, NAMESPACE, _own_namespace(), istiod, labels=LABELS)


def _rule(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str]) -> JsonObject:
    return {"apiGroups": list(groups), "resources": list(resources), "verbs": list(verbs)}


def _reviews() -> list[JsonObject]:
    return [
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
    ]


def _discovery() -> list[JsonObject]:
    return [
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], READ),
        rule("discovery.k8s.io", ["endpointslices"], READ),
        rule(_MULTICLUSTER, ["serviceexports"], [*READ, "create", "delete"]),
        rule(_MULTICLUSTER, ["serviceimports"], READ),
    ]


def _read() -> list[JsonObject]:
    core = ("endpoints", "pods", "services", "nodes", "replicationcontrollers", "namespaces")
    return [
        _rule(_CONFIGURATION, ["*"], READ),
        rule("", [*core, "secrets", "configmaps"], READ),
        rule("networking.istio.io", ["workloadentries"], READ),
        _rule(["networking.x-k8s.io", _GATEWAYS], ["gateways"], READ),
        rule("apps", ["replicasets"], READ),
        *_discovery(),
        *_reviews(),
    ]


def _control() -> list[JsonObject]:
    entries = ("workloadentries/status", "serviceentries/status")
    return [
        rule(_ADMISSION, ["mutatingwebhookconfigurations"], [*READ, *_STATUS]),
        rule(_ADMISSION, ["validatingwebhookconfigurations"], [*READ, "update"]),
        _rule(_CONFIGURATION, ["*"], READ),
        rule("networking.istio.io", ["workloadentries", *entries], _ALL),
        rule("security.istio.io", ["authorizationpolicies/status"], _ALL),
        rule("", ["services/status"], _ALL),
        rule("", ["pods", "nodes", "services", "namespaces", "endpoints", "secrets"], READ),
        rule("", ["configmaps"], [*READ, "create", "update"]),
        rule("networking.k8s.io", ["ingresses", "ingressclasses"], READ),
        rule("networking.k8s.io", ["ingresses/status"], ["*"]),
        _rule([_GATEWAYS, _GATEWAYS_X], ["*"], READ),
        rule(_GATEWAYS_X, ["xbackendtrafficpolicies/status", "xlistenersets/status"], _STATUS),
        rule(_GATEWAYS, [f"{route}/status" for route in _ROUTES], _STATUS),
        rule(_GATEWAYS, ["gatewayclasses"], ["create", *_STATUS, "delete"]),
        rule(_INFERENCE, ["inferencepools"], READ),
        rule(_INFERENCE, ["inferencepools/status"], _STATUS),
        *_discovery(),
        *_reviews(),
    ]


def _gateways() -> list[JsonObject]:
    return [
        rule("apps", ["deployments"], _ALL),
        rule("autoscaling", ["horizontalpodautoscalers"], _ALL),
        rule("policy", ["poddisruptionbudgets"], _ALL),
        rule("", ["services", "serviceaccounts"], _ALL),
    ]


def _own_namespace() -> list[JsonObject]:
    return [
        rule("networking.istio.io", ["gateways"], ["create"]),
        rule("", ["secrets"], [*READ, "create", "update", "delete"]),
        rule("", ["configmaps"], ["delete"]),
        rule("coordination.k8s.io", ["leases"], ["get", "update", "patch", "create"]),
    ]
