"""The permissions of the ingress controller."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.landscape import NAMESPACE
from pergola.manifests import READ, account, cluster_role, manifest, rule

NAME: Final = "nginx-ingress"
LEASE: Final = "ingress-controller-seed-leader"
APP: Final = {"app": NAME}

_PREFIX: Final = f"gardener.cloud:seed:{NAME}"
_RBAC: Final = "rbac.authorization.k8s.io"
_LEASES: Final = "coordination.k8s.io"


def permissions() -> Iterator[JsonObject]:
    """Yield the roles, and their bindings."""
    subject = account(NAME, NAMESPACE)
    yield from cluster_role(_PREFIX, _everywhere(), subject, labels=APP)
    yield manifest(
        f"{_RBAC}/v1",
        "Role",
        f"{_PREFIX}:role",
        namespace=NAMESPACE,
        labels=APP,
        rules=_own_namespace(),
    )
    yield manifest(
        f"{_RBAC}/v1",
        "RoleBinding",
        f"{_PREFIX}:role-binding",
        namespace=NAMESPACE,
        labels=APP,
        roleRef={"apiGroup": _RBAC, "kind": "Role", "name": f"{_PREFIX}:role"},
        subjects=[subject],
    )


def _everywhere() -> list[JsonObject]:
    return [
        rule("", ["endpoints", "nodes", "pods", "secrets"], ["list", "watch"]),
        rule("", ["nodes"], ["get"]),
        rule("", ["services", "configmaps"], [*READ, "update"]),
        rule("", ["events"], ["create", "patch"]),
        rule("networking.k8s.io", ["ingresses", "ingressclasses"], READ),
        rule("networking.k8s.io", ["ingresses/status"], ["update"]),
        rule(_LEASES, ["leases"], ["list", "watch"]),
        rule("discovery.k8s.io", ["endpointslices"], READ),
    ]


def _own_namespace() -> list[JsonObject]:
    return [
        rule("", ["configmaps", "namespaces", "pods", "secrets"], ["get"]),
        rule("", ["endpoints"], ["create", "get", "update"]),
        rule(_LEASES, ["leases"], ["get", "update"], [LEASE]),
        rule(_LEASES, ["leases"], ["create"]),
        rule("discovery.k8s.io", ["endpointslices"], READ),
    ]
