"""Roles that Gardener gives to the members of a project.

Each is aggregated, so that extensions and the dashboard can add rules with a labelled ClusterRole
of their own.
"""

from collections.abc import Iterator, Sequence

from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject
from pergola.garden.components.virtual_system.roles import (
    ALL,
    GROUP,
    OPERATIONS,
    SECURITY,
    aggregated,
    unbound,
)
from pergola.manifests import READ, rule


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
