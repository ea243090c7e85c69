"""The CRD of terminals in the virtual cluster, with its webhooks and permissions."""

import base64
from collections.abc import Iterator
from typing import Final

from pergola.api.dashboard_v1alpha1 import terminal_crd
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject, JsonValue
from pergola.garden.components import authorities
from pergola.garden.components.conventions import (
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    TO_RUNTIME_API_SERVER,
)
from pergola.garden.components.gardener_program import SERVER, Program
from pergola.garden.components.priority_classes import P200
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import KUBE_SYSTEM, READ, cluster_role, manifest, role, rule

NAME: Final = "terminal-controller-manager"
PROGRAM: Final = Program(
    name=NAME,
    labels={"app": NAME},
    priority=P200,
    kind=SERVER,
    managed="terminal",
    to={**TO_PUBLIC_NETWORKS, **TO_PRIVATE_NETWORKS, **TO_RUNTIME_API_SERVER},
)

_ROLE: Final = f"gardener.cloud:system:{NAME}"
_GROUP: Final = "dashboard.gardener.cloud"
_EDIT: Final = (*READ, "patch", "update")


def registration(landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return the objects of the virtual cluster."""
    return (terminal_crd(), *_permissions(), *_webhooks(landscape))


def _permissions() -> list[JsonObject]:
    own = [
        rule(group, [resource], [*READ, "create", "update", "patch", "delete"])
        for group, resource in (("", "configmaps"), ("coordination.k8s.io", "leases"))
    ]
    account, labels = PROGRAM.account(), PROGRAM.labels
    return [
        *cluster_role(_ROLE, _rules(), account, labels=labels),
        *role(_ROLE, KUBE_SYSTEM, own, account, labels=labels),
    ]


def _rules() -> list[JsonObject]:
    webhooks = ("mutatingwebhookconfigurations", "validatingwebhookconfigurations")
    return [
        rule("", ["events"], ["create", "patch"]),
        rule("", ["serviceaccounts"], _EDIT),
        rule("", ["serviceaccounts/token"], ["create"]),
        rule("admissionregistration.k8s.io", webhooks, ["list"]),
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["subjectaccessreviews"], ["create"]),
        rule(GARDENER_CORE, ["projects"], _EDIT),
        rule(GARDENER_CORE, ["shoots"], READ),
        rule(GARDENER_CORE, ["shoots/adminkubeconfig"], ["create"]),
        rule(_GROUP, ["terminals"], ["create", "delete", *_EDIT]),
        rule(_GROUP, ["terminals/status"], ["get", "patch", "update"]),
    ]


def _webhooks(landscape: Landscape) -> Iterator[JsonObject]:
    bundle = landscape.credentials.bundle(authorities.RUNTIME).data["bundle.crt"]
    authority = base64.b64encode(bundle).decode()
    common = {"app.kubernetes.io/name": "terminal"}
    for kind, prefix, path in (
        ("Mutating", "mutating", "mutate-terminal"),
        ("Validating", "validating", "validate-terminal"),
    ):
        yield manifest(
            "admissionregistration.k8s.io/v1",
            f"{kind}WebhookConfiguration",
            f"terminal-{prefix}-webhook-configuration",
            labels={
                **PROGRAM.labels,
                **common,
                "app.kubernetes.io/component": "admission-controller",
            },
            webhooks=[_webhook(f"{prefix}-create-update-terminal", path, authority)],
        )


def _webhook(name: str, path: str, authority: str) -> JsonObject:
    rules: list[JsonValue] = [
        {
            "apiGroups": [_GROUP],
            "apiVersions": ["v1alpha1"],
            "operations": ["CREATE", "UPDATE"],
            "resources": ["terminals"],
        }
    ]
    return {
        "name": f"{name}.gardener.cloud",
        "clientConfig": {
            "url": f"https://{NAME}.{NAMESPACE}.svc/{path}",
            "caBundle": authority,
        },
        "rules": rules,
        "admissionReviewVersions": ["v1", "v1beta1"],
        "failurePolicy": "Fail",
        "sideEffects": "None",
    }
