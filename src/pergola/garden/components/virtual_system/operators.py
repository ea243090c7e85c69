"""Roles of people who run the landscape: administrators and viewers."""

from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject
from pergola.garden.components.virtual_system.roles import (
    ALL,
    DASHBOARD,
    GROUP,
    OPERATIONS,
    ROLE,
    SECURITY,
    SEED_MANAGEMENT,
    aggregated,
    for_groups,
    unbound,
)
from pergola.manifests import READ, manifest, rule, user

_ADMIN: Final = "gardener.cloud:admin"
_VIEWER: Final = "gardener.cloud:viewer"
_EVERYTHING_OF: Final = (SEED_MANAGEMENT, DASHBOARD, OPERATIONS)
# Verbs that admission plugins of gardener-apiserver check in addition to standard verbs.
_CUSTOM_VERBS: Final = (
    "manage-members",
    "modify-spec-tolerations-whitelist",
    "modify-spec-kubernetes",
    "modify-spec-machineimages",
    "modify-spec-providerconfig",
    "mark-self-hosted",
)
_CERTIFICATES: Final = "certificates.k8s.io"
_VIEWED: Final = (
    "backupbuckets",
    "backupentries",
    "cloudprofiles",
    "namespacedcloudprofiles",
    "controllerinstallations",
    "quotas",
    "projects",
    "seeds",
    "shoots",
)


def operators() -> Iterator[JsonObject]:
    """Yield the roles; people should be bound only to the aggregated ones."""
    yield unbound(_ADMIN, _admin_rules(), {ROLE: "admin"})
    yield _aggregator()
    yield unbound(_VIEWER, _viewer_rules(), {ROLE: "viewer"})
    members = ("admin", "project-member", "project-serviceaccountmanager")
    yield aggregated(
        "gardener.cloud:system:administrators",
        "administrators",
        *({ROLE: member} for member in members),
    )
    yield aggregated(
        "gardener.cloud:system:viewers", "viewers", {ROLE: "viewer"}, {ROLE: "project-viewer"}
    )


def _aggregator() -> JsonObject:
    """Return the binding of the user as which the API server calls aggregated APIs."""
    return manifest(
        f"{GROUP}/v1",
        "ClusterRoleBinding",
        _ADMIN,
        roleRef={"apiGroup": GROUP, "kind": "ClusterRole", "name": _ADMIN},
        subjects=[user("system:kube-aggregator")],
    )


def _admin_rules() -> list[JsonObject]:
    return [
        rule(GARDENER_CORE, ["*"], [*ALL, *_CUSTOM_VERBS]),
        for_groups(_EVERYTHING_OF, ["*"], ALL),
        rule(SECURITY, ["credentialsbindings", "workloadidentities"], ALL),
        *_kubernetes(ALL),
        rule(_CERTIFICATES, ["certificatesigningrequests"], [*ALL, "approve", "deny"]),
    ]


def _viewer_rules() -> list[JsonObject]:
    return [
        rule(GARDENER_CORE, _VIEWED, READ),
        rule(SECURITY, ["credentialsbindings"], READ),
        for_groups(_EVERYTHING_OF, ["*"], READ),
        *_kubernetes(READ),
    ]


def _kubernetes(verbs: Sequence[str]) -> list[JsonObject]:
    webhooks = ["mutatingwebhookconfigurations", "validatingwebhookconfigurations"]
    return [
        rule("", ["events", "namespaces", "resourcequotas", "services", "endpoints"], verbs),
        rule("discovery.k8s.io", ["endpointslices"], verbs),
        rule("events.k8s.io", ["events"], verbs),
        rule(GROUP, ["clusterroles", "clusterrolebindings", "roles", "rolebindings"], verbs),
        rule("admissionregistration.k8s.io", webhooks, verbs),
        rule("apiregistration.k8s.io", ["apiservices"], verbs),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], verbs),
        rule("coordination.k8s.io", ["leases"], verbs),
    ]
