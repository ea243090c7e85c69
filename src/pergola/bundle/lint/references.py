"""The rule that referenced ConfigMaps, Secrets, ServiceAccounts and roles exist."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pergola.api.objects import GroupKind, JsonObject, Key, map_at, maps_at, namespace_of
from pergola.bundle.lint.manifests import Container, Finding, Manifests, Workload

_RBAC: Final = "rbac.authorization.k8s.io"
_BINDINGS: Final = (GroupKind(_RBAC, "ClusterRoleBinding"), GroupKind(_RBAC, "RoleBinding"))
_BUILT_IN_ROLES: Final = frozenset(
    {"cluster-admin", "admin", "edit", "view", "extension-apiserver-authentication-reader"}
)


class _Use(NamedTuple):
    kind: str
    name: str
    path: str


class _Source(NamedTuple):
    """The location of a reference: the field with its map, and the field in it with the name."""

    field: str
    kind: str
    name: str = "name"


_ENVIRONMENTS: Final = (_Source("configMapRef", "ConfigMap"), _Source("secretRef", "Secret"))
_VARIABLES: Final = (_Source("configMapKeyRef", "ConfigMap"), _Source("secretKeyRef", "Secret"))
_VOLUMES: Final = (_Source("configMap", "ConfigMap"), _Source("secret", "Secret", "secretName"))
_PROJECTED: Final = (_Source("configMap", "ConfigMap"), _Source("secret", "Secret"))


def existing_reference(manifests: Manifests) -> Iterator[Finding]:
    """Check that referenced objects are in the manifests, or declared external or optional."""
    for workload in manifests.workloads:
        for use in _uses_of_pod(workload):
            if not _exists(manifests, use.kind, Key(workload.namespace, use.name)):
                yield _missing(workload.object, use.path, use.kind, use.name)
    for binding in manifests.of_kind(*_BINDINGS):
        yield from _dangling(manifests, binding)


def _uses_of_pod(workload: Workload) -> Iterator[_Use]:
    pod, path = workload.pod, workload.path
    account = pod.get("serviceAccountName")
    if isinstance(account, str) and account:
        yield _Use("ServiceAccount", account, f"{path}.serviceAccountName")
    for container in workload.containers():
        yield from _uses_of_container(container)
    for i, volume in enumerate(maps_at(pod, "volumes")):
        at = f"{path}.volumes[{i}]"
        yield from _uses(volume, _VOLUMES, at)
        for j, source in enumerate(maps_at(volume, "projected", "sources")):
            yield from _uses(source, _PROJECTED, f"{at}.projected.sources[{j}]")


def _uses_of_container(container: Container) -> Iterator[_Use]:
    for i, source in enumerate(maps_at(container.spec, "envFrom")):
        yield from _uses(source, _ENVIRONMENTS, f"{container.path}.envFrom[{i}]")
    for i, variable in enumerate(maps_at(container.spec, "env")):
        at = f"{container.path}.env[{i}].valueFrom"
        yield from _uses(map_at(variable, "valueFrom"), _VARIABLES, at)


def _uses(holder: JsonObject, sources: tuple[_Source, ...], path: str) -> Iterator[_Use]:
    for source in sources:
        reference = map_at(holder, source.field)
        name = reference.get(source.name)
        if isinstance(name, str) and name and reference.get("optional") is not True:
            yield _Use(source.kind, name, f"{path}.{source.field}.{source.name}")


def _dangling(manifests: Manifests, binding: JsonObject) -> Iterator[Finding]:
    role = map_at(binding, "roleRef")
    kind, name = str(role.get("kind", "")), str(role.get("name", ""))
    namespace = namespace_of(binding) if kind == "Role" else ""
    if not _exists(manifests, kind, Key(namespace, name)):
        yield _missing(binding, "roleRef.name", kind, name)
    for i, subject in enumerate(maps_at(binding, "subjects")):
        if subject.get("kind") == "ServiceAccount":
            key = Key(str(subject.get("namespace", "")), str(subject.get("name", "")))
            if not _exists(manifests, "ServiceAccount", key):
                yield _missing(binding, f"subjects[{i}]", "ServiceAccount", str(key))


def _exists(manifests: Manifests, kind: str, key: Key) -> bool:
    return _is_built_in(kind, key.name) or manifests.has(kind, key)


def _is_built_in(kind: str, name: str) -> bool:
    """Return whether every cluster or namespace has such an object by default."""
    match kind:
        case "ClusterRole" | "Role":
            return name in _BUILT_IN_ROLES or name.startswith("system:")
        case "ConfigMap":
            return name == "kube-root-ca.crt"
        case "ServiceAccount":
            return name == "default"
    return False


def _missing(obj: JsonObject, path: str, kind: str, name: str) -> Finding:
    return Finding(
        obj, path, f"{kind} {name} is not in the manifests; add it, or declare it external"
    )
