"""The roles of the dashboard and its terminals in the virtual cluster."""

from collections.abc import Iterator
from typing import Final

from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject
from pergola.garden.components.gardener_dashboard.settings import (
    PROGRAM,
    TERMINAL_ADMIN,
    dashboard_of,
)
from pergola.garden.components.virtual_system import ALL, DASHBOARD, aggregation_label, unbound
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    KUBE_SYSTEM,
    account,
    cluster_role,
    manifest,
    role,
    rule,
    service_account,
)

_RBAC: Final = "rbac.authorization.k8s.io"
_WATCH: Final = ("list", "watch")
_LEASES: Final = "coordination.k8s.io"
_LEASE: Final = "gardener-dashboard-github-webhook"
_WATCHED: Final = (
    "quotas",
    "projects",
    "shoots",
    "controllerregistrations",
    "namespacedcloudprofiles",
)


def permissions(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the roles of the dashboard and of terminals."""
    labels = PROGRAM.labels
    yield from cluster_role(
        "gardener.cloud:system:dashboard", _rules(), PROGRAM.account(), labels=labels
    )
    yield from _terminals()
    if dashboard_of(landscape).git_hub is not None:
        yield from role(
            "gardener.cloud:system:dashboard-github-webhook",
            NAMESPACE,
            _lease_rules(),
            PROGRAM.account(),
            labels=labels,
        )


def _rules() -> list[JsonObject]:
    return [
        rule("authentication.k8s.io", ["tokenreviews"], ["create"]),
        rule(GARDENER_CORE, _WATCHED, _WATCH),
        rule("seedmanagement.gardener.cloud", ["managedseeds"], _WATCH),
        rule("apiregistration.k8s.io", ["apiservices"], ["get"]),
        rule("", ["configmaps"], ["get"], ["cluster-identity"]),
        rule("", ["resourcequotas"], _WATCH),
    ]


def _terminals() -> Iterator[JsonObject]:
    """Yield the account of administrators' terminals, and the role of project members."""
    labels = PROGRAM.labels
    yield service_account(TERMINAL_ADMIN, KUBE_SYSTEM, labels)
    yield manifest(
        f"{_RBAC}/v1",
        "ClusterRoleBinding",
        "gardener.cloud:dashboard-terminal:admin",
        labels=labels,
        roleRef={
            "apiGroup": _RBAC,
            "kind": "ClusterRole",
            "name": "gardener.cloud:system:administrators",
        },
        subjects=[account(TERMINAL_ADMIN, KUBE_SYSTEM)],
    )
    yield unbound(
        "dashboard.gardener.cloud:system:project-member",
        [rule(DASHBOARD, ["terminals"], ALL)],
        {**labels, **aggregation_label("project-member")},
    )


def _lease_rules() -> list[JsonObject]:
    """Return the rules for the Lease whose holder receives GitHub's webhooks."""
    return [
        rule(_LEASES, ["leases"], ["get", "patch", "watch", "list"], [_LEASE]),
        rule(_LEASES, ["leases"], ["create"]),
    ]
