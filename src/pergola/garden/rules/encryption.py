"""Rules about encryption at rest: resources and providers (spec 21 §7.4, §7.5)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, unsupported
from pergola.api.known.kubernetes_apis import is_unknown_resource
from pergola.api.known.kubernetes_versions import Version
from pergola.api.operator_v1alpha1 import Garden, GardenSpec
from pergola.api.operator_v1alpha1.api_server import EncryptionConfig
from pergola.garden.landscape.encryption_at_rest import (
    ALWAYS_BY_GARDENER,
    ALWAYS_BY_KUBERNETES,
    encrypted_now,
    is_served_by_gardener,
    resource_keys,
)

KUBERNETES: Final = "spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig"
GARDENER: Final = "spec.virtualCluster.gardener.gardenerAPIServer.encryptionConfig"
_PROVIDERS: Final = ("aescbc", "aesgcm", "secretbox")
_WITHOUT_API: Final = ("apiserveripinfo", "serviceipallocations", "servicenodeportallocations")


def check_encryption(spec: GardenSpec, version: Version | None) -> Iterator[Cause]:
    """Yield the findings about the encryption of both API servers.

    Args:
        version: The version of Kubernetes, or None if it is unreadable.
    """
    kubernetes, gardener = encryption_configs(spec)
    yield from _common(kubernetes.resources, ALWAYS_BY_KUBERNETES, KUBERNETES)
    for index, resource in enumerate(kubernetes.resources):
        at = f"{KUBERNETES}.resources[{index}]"
        problems = list(_of_kubernetes(resource, at))
        yield from problems
        if not problems and version is not None:
            yield from _unknown(resource, version, at)
    if kubernetes.provider.type not in _PROVIDERS:
        yield unsupported(f"{KUBERNETES}.provider.type", kubernetes.provider.type, _PROVIDERS)
    yield from _common(gardener.resources, ALWAYS_BY_GARDENER, GARDENER)
    for index, resource in enumerate(gardener.resources):
        if not is_served_by_gardener(resource):
            yield invalid(
                f"{GARDENER}.resources[{index}]",
                resource,
                "should be a resource served by gardener-apiserver. ie; should have any of the "
                "suffixes {authentication,core,operations,security,settings,seedmanagement}"
                ".gardener.cloud",
            )
    if gardener.provider.type != kubernetes.provider.type:
        yield invalid(
            f"{GARDENER}.provider.type",
            gardener.provider.type,
            f"must be the provider of the kube-apiserver, {kubernetes.provider.type}",
        )


def encryption_configs(spec: GardenSpec) -> tuple[EncryptionConfig, EncryptionConfig]:
    """Return the encryption settings of kube-apiserver and of gardener-apiserver."""
    virtual = spec.virtual_cluster
    return (
        virtual.kubernetes.kube_api_server.encryption_config,
        virtual.gardener.api_server.encryption_config,
    )


def is_rolling_out(garden: Garden) -> bool:
    """Return whether the encrypted resources differ from those in the spec."""
    kubernetes, gardener = encryption_configs(garden.spec)
    desired = resource_keys([*kubernetes.resources, *gardener.resources])
    return desired != resource_keys(encrypted_now(garden.status).resources)


def _common(resources: list[str], always: tuple[str, ...], path: str) -> Iterator[Cause]:
    seen: set[str] = set()
    for index, resource in enumerate(resources):
        at = f"{path}.resources[{index}]"
        if resource.lower() != resource:
            yield invalid(at, resource, "resource must be lower case")
        if "*" in resource:
            yield invalid(at, resource, "wildcards are not supported")
        key = resource.rstrip(".")
        if key in seen:
            yield duplicate(at, resource)
        if key in always:
            yield forbidden(at, f'"{resource}" are always encrypted')
        seen.add(key)


def _unknown(resource: str, version: Version, path: str) -> Iterator[Cause]:
    """Yield a finding if Kubernetes lacks the resource, unless its group may be a custom one."""
    if resource.lower() != resource or "*" in resource:
        return  # already reported
    if is_unknown_resource(resource, version):
        minor = version.of_minor
        problem = f"Kubernetes {minor} has no such resource, so that nothing would be encrypted"
        yield invalid(path, resource, problem)


def _of_kubernetes(resource: str, path: str) -> Iterator[Cause]:
    group = resource.partition(".")[2]
    if resource in _WITHOUT_API:
        problem = "resources which do not have REST API/s cannot be encrypted"
        yield invalid(path, resource, problem)
    if resource.endswith("."):
        yield invalid(path, resource, "resource should not end with '.'")
    if group == "events.k8s.io":
        yield invalid(
            path,
            resource,
            "'*.events.k8s.io' objects are stored using the 'events' API group in etcd. "
            "Use 'events' instead",
        )
    if group == "extensions":
        problem = "'extensions' group has been removed and cannot be used for encryption"
        yield invalid(path, resource, problem)
    if is_served_by_gardener(resource):
        yield invalid(path, resource, f"is served by gardener-apiserver: move it to {GARDENER}")
