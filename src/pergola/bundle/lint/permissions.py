"""Rules against excessive permissions."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import GroupKind, JsonObject, map_at, maps_at
from pergola.bundle.lint.manifests import Finding, Manifests

_GROUP: Final = "rbac.authorization.k8s.io"
_BINDINGS: Final = (GroupKind(_GROUP, "ClusterRoleBinding"), GroupKind(_GROUP, "RoleBinding"))
_ROLES: Final = (GroupKind(_GROUP, "ClusterRole"), GroupKind(_GROUP, "Role"))


def cluster_admin(manifests: Manifests) -> Iterator[Finding]:
    """Check that no component is a cluster administrator."""
    for binding in manifests.of_kind(*_BINDINGS):
        role = map_at(binding, "roleRef")
        if role.get("kind") == "ClusterRole" and role.get("name") == "cluster-admin":
            yield Finding(
                binding,
                "roleRef.name",
                "binds cluster-admin; bind a role with only the necessary permissions",
            )


def wildcard_permission(manifests: Manifests) -> Iterator[Finding]:
    """Check that no role allows all verbs on all resources."""
    for role in manifests.of_kind(*_ROLES):
        for i, rule in enumerate(maps_at(role, "rules")):
            for field in ("resources", "nonResourceURLs"):
                if _has_wildcard(rule, "verbs") and _has_wildcard(rule, field):
                    yield Finding(
                        role,
                        f"rules[{i}]",
                        f"allows all verbs on all {field}; list the necessary ones",
                    )


def _has_wildcard(rule: JsonObject, field: str) -> bool:
    values = rule.get(field)
    return isinstance(values, list) and "*" in values
