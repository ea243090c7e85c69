"""Builders for the roles of the virtual cluster."""

from collections.abc import Mapping, Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import READ, manifest, rule, selector

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
