"""Identities of pods, and their permissions."""

from collections.abc import Mapping, Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests.objects import manifest

_GROUP: Final = "rbac.authorization.k8s.io"
_VERSION: Final = f"{_GROUP}/v1"

READ: Final = ("get", "list", "watch")
"""The verbs of a cache."""


def service_account(
    name: str, namespace: str, labels: Mapping[str, str] | None = None
) -> JsonObject:
    """Return an identity whose token pods get only on request."""
    return manifest(
        "v1",
        "ServiceAccount",
        name,
        namespace=namespace,
        labels=labels,
        automountServiceAccountToken=False,
    )


def account(name: str, namespace: str) -> JsonObject:
    """Return a ServiceAccount as the subject of a binding."""
    return {"kind": "ServiceAccount", "name": name, "namespace": namespace}


def user(name: str) -> JsonObject:
    """Return a user as the subject of a binding."""
    return {"apiGroup": _GROUP, "kind": "User", "name": name}


def group(name: str) -> JsonObject:
    """Return all users of a group as the subject of a binding."""
    return {"apiGroup": _GROUP, "kind": "Group", "name": name}


def rule(
    group: str, resources: Sequence[str], verbs: Sequence[str], names: Sequence[str] = ()
) -> JsonObject:
    """Return a rule for resources of one API group, optionally only for objects of these names."""
    found: JsonObject = {
        "apiGroups": [group],
        "resources": list(resources),
        "verbs": list(verbs),
    }
    return found | ({"resourceNames": list(names)} if names else {})


def role(
    name: str,
    namespace: str,
    rules: Sequence[JsonObject],
    *subjects: JsonObject,
    labels: Mapping[str, str] | None = None,
    binding: str = "",
) -> list[JsonObject]:
    """Return a Role and its RoleBinding, which has the same name by default."""
    return _role("Role", name, namespace, rules, subjects, labels, binding or name)


def cluster_role(
    name: str,
    rules: Sequence[JsonObject],
    *subjects: JsonObject,
    labels: Mapping[str, str] | None = None,
    binding: str = "",
) -> list[JsonObject]:
    """Return a ClusterRole and its ClusterRoleBinding, which has the same name by default."""
    return _role("ClusterRole", name, "", rules, subjects, labels, binding or name)


def _role(
    kind: str,
    name: str,
    namespace: str,
    rules: Sequence[JsonObject],
    subjects: Sequence[JsonObject],
    labels: Mapping[str, str] | None,
    binding: str,
) -> list[JsonObject]:
    reference = {"apiGroup": _GROUP, "kind": kind, "name": name}
    return [
        manifest(_VERSION, kind, name, namespace=namespace, labels=labels, rules=list(rules)),
        manifest(
            _VERSION,
            f"{kind}Binding",
            binding,
            namespace=namespace,
            labels=labels,
            roleRef=reference,
            subjects=list(subjects),
        ),
    ]
