"""Namespaces and roles of the virtual cluster that people and gardenlets need (spec 20 §16.1).

The roles that Gardener gives to the members of a project are aggregated, so that extensions and the
dashboard can add rules with a labelled ClusterRole of their own.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pergola.api import marks
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Managed, Rendered, Target
from pergola.garden.components.gardener_program import CONDITION
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    KUBE_SYSTEM,
    READ,
    cluster_role,
    group,
    manifest,
    role,
    rule,
    selector,
    user,
)

GROUP: Final = "rbac.authorization.k8s.io"
SECURITY: Final = "security.gardener.cloud"
SEED_MANAGEMENT: Final = "seedmanagement.gardener.cloud"
OPERATIONS: Final = "operations.gardener.cloud"
DASHBOARD: Final = "dashboard.gardener.cloud"
ALL: Final = ("create", "delete", "deletecollection", *READ, "patch", "update")
ROLE: Final = "gardener.cloud/role"
"""The label by which roles are aggregated."""


def unbound(
    name: str, rules: Sequence[JsonObject], labels: Mapping[str, str] | None = None
) -> JsonObject:
    """Return a ClusterRole without a binding."""
    return manifest(f"{GROUP}/v1", "ClusterRole", name, labels=labels, rules=list(rules))


def aggregated(name: str, role: str, *selected: Mapping[str, str]) -> JsonObject:
    """Return a ClusterRole that aggregates the rules of all roles with any of these labels.

    Args:
        role: The value of its own label.
    """
    selectors = [selector(labels) for labels in selected]
    return manifest(
        f"{GROUP}/v1",
        "ClusterRole",
        name,
        labels={ROLE: role},
        aggregationRule={"clusterRoleSelectors": selectors},
    )


def for_groups(groups: Sequence[str], resources: Sequence[str], verbs: Sequence[str]) -> JsonObject:
    """Return a rule for the same resources of several API groups."""
    return {**rule("", resources, verbs), "apiGroups": list(groups)}


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


def aggregation_label(role: str) -> dict[str, str]:
    """Return the label of roles whose rules are granted to members of a project.

    Args:
        role: `project-member`, `project-serviceaccountmanager` or `project-viewer`.
    """
    return {f"rbac.gardener.cloud/aggregate-to-{role}": "true"}


def projects() -> Iterator[JsonObject]:
    """Yield the aggregated roles, and Gardener's own part of each."""
    yield from _role("project-member", _member())
    yield from _role("project-serviceaccountmanager", _account_manager())
    yield from _role("project-viewer", _viewer())


def _role(role: str, rules: Sequence[JsonObject]) -> Iterator[JsonObject]:
    label = aggregation_label(role)
    yield unbound(f"gardener.cloud:system:{role}-aggregation", rules, label)
    yield aggregated(f"gardener.cloud:system:{role}", role, label)


def _member() -> list[JsonObject]:
    return [
        rule("", ["secrets", "configmaps"], ALL),
        rule("", ["events", "resourcequotas", "serviceaccounts"], READ),
        rule("events.k8s.io", ["events"], READ),
        rule(GARDENER_CORE, ["shoots", "secretbindings", "quotas"], ALL),
        rule(SECURITY, ["credentialsbindings", "workloadidentities"], ALL),
        rule(OPERATIONS, ["bastions"], ALL),
        rule(GROUP, ["roles", "rolebindings"], ALL),
        rule(GARDENER_CORE, ["shoots/adminkubeconfig", "shoots/viewerkubeconfig"], ["create"]),
        rule(GARDENER_CORE, ["shoots/finalizers"], ["update"]),
        rule(
            GARDENER_CORE,
            ["namespacedcloudprofiles"],
            [*READ, "create", "patch", "update", "delete"],
        ),
    ]


def _account_manager() -> list[JsonObject]:
    return [
        rule("", ["serviceaccounts"], ALL),
        rule("", ["serviceaccounts/token"], ["create"]),
    ]


def _viewer() -> list[JsonObject]:
    return [
        rule("", ["events", "configmaps", "resourcequotas", "serviceaccounts"], READ),
        rule("events.k8s.io", ["events"], READ),
        rule(
            GARDENER_CORE, ["shoots", "secretbindings", "quotas", "namespacedcloudprofiles"], READ
        ),
        rule(SECURITY, ["credentialsbindings"], READ),
        rule(OPERATIONS, ["bastions"], READ),
        rule(GROUP, ["roles", "rolebindings"], READ),
        rule(GARDENER_CORE, ["shoots/viewerkubeconfig"], ["create"]),
    ]


PUBLIC: Final = "gardener-system-public"
"""The namespace with objects that every user of the virtual cluster may read."""

_NAME: Final = "garden-system-virtual"
_EVERYBODY: Final = group("system:authenticated")
_BOOTSTRAPPERS: Final = group("system:bootstrappers")
_PREFIX: Final = "gardener.cloud:system"
_REQUESTS: Final = "certificatesigningrequests"
_GLOBAL: Final = ("cloudprofiles", "controllerregistrations", "exposureclasses", "seeds")


def render(landscape: Landscape) -> Rendered:
    """Return namespaces and roles."""
    del landscape
    objects = (*_namespaces(), *operators(), *projects(), *_gardenlets(), *_everybody())
    managed = Managed(name=_NAME, objects=objects, target=Target.VIRTUAL, condition=CONDITION)
    return Rendered(managed=(managed,))


def _namespaces() -> Iterator[JsonObject]:
    yield manifest(
        "v1",
        "Namespace",
        NAMESPACE,
        labels={"app": "gardener"},
        annotations={marks.KEEP_OBJECT: "true"},
    )
    yield manifest("v1", "Namespace", PUBLIC)


def _gardenlets() -> list[JsonObject]:
    """Return the role of gardenlets that have only a bootstrap token."""
    group_ = "certificates.k8s.io"
    signers = [f"{_REQUESTS}/{client}" for client in ("seedclient", "shootclient")]
    rules = [rule(group_, [_REQUESTS], ["create", "get"]), rule(group_, signers, ["create"])]
    return cluster_role(f"{_PREFIX}:seed-bootstrapper", rules, _BOOTSTRAPPERS)


def _everybody() -> Iterator[JsonObject]:
    """Yield the roles of all users, and the unbound role that allows creating projects."""
    global_resources = [
        rule(GARDENER_CORE, _GLOBAL, READ),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], READ),
    ]
    reviews = [
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule("authorization.k8s.io", ["selfsubjectaccessreviews"], ["create"]),
    ]
    yield from cluster_role(f"{_PREFIX}:read-global-resources", global_resources, _EVERYBODY)
    yield from cluster_role(f"{_PREFIX}:user-auth", reviews, _EVERYBODY)
    yield unbound(f"{_PREFIX}:project-creation", [rule(GARDENER_CORE, ["projects"], ["create"])])
    yield from _config_maps(
        f"{_PREFIX}:read-cluster-identity-configmap", KUBE_SYSTEM, "cluster-identity"
    )
    yield from _config_maps(f"{_PREFIX}:read-{PUBLIC}", PUBLIC, "gardener-info", "kube-root-ca.crt")


def _config_maps(name: str, namespace: str, *names: str) -> list[JsonObject]:
    return role(name, namespace, [rule("", ["configmaps"], READ, names)], _EVERYBODY)


VIRTUAL_SYSTEM: Final = Component(
    name=_NAME,
    deploy="Deploying virtual system resources",
    after=(task_names.VIRTUAL_RESOURCE_MANAGER,),
    render=render,
)
