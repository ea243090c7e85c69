"""Rules about `spec.resources` of an Extension (spec 21 §9.2)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.field_errors import (
    IMMUTABLE,
    Cause,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from pergola.api.operator_v1alpha1.extension import ExtensionResource, Lifecycle
from pergola.extension_api.kinds import EXTENSION_KINDS

KINDS: Final = tuple(sorted(EXTENSION_KINDS))
_PATH: Final = "spec.resources"
_CLUSTERS: Final = ("garden", "seed", "shoot")
_AROUND_SERVER: Final = ("BeforeKubeAPIServer", "AfterKubeAPIServer")


def check_resources_served(resources: list[ExtensionResource]) -> Iterator[Cause]:
    """Yield the findings about the extension resources that an Extension serves."""
    seen: set[tuple[str, str]] = set()
    for index, resource in enumerate(resources):
        path = f"{_PATH}[{index}]"
        if resource.kind not in KINDS:
            yield unsupported(f"{path}.kind", resource.kind, KINDS)
        if not resource.type:
            yield required(f"{path}.type", "field is required")
        if (resource.kind, resource.type) in seen:
            yield duplicate(path, f"{resource.kind}/{resource.type}")
        seen.add((resource.kind, resource.type))
        yield from _of_one_kind(resource, path)
        yield from _clusters(resource, path)
        if resource.lifecycle is not None:
            yield from _lifecycle(resource.lifecycle, f"{path}.lifecycle")


def check_primary_unchanged(
    new: list[ExtensionResource], old: list[ExtensionResource]
) -> Iterator[Cause]:
    """Yield a finding for each resource whose `primary` changed."""
    before = {(r.kind, r.type): r.primary is not False for r in old}
    for index, resource in enumerate(new):
        now = resource.primary is not False
        if before.get((resource.kind, resource.type), now) != now:
            yield invalid(f"{_PATH}[{index}].primary", now, IMMUTABLE)


def _of_one_kind(resource: ExtensionResource, path: str) -> Iterator[Cause]:
    of_extensions = {
        "autoEnable": bool(resource.auto_enable),
        "clusterCompatibility": bool(resource.cluster_compatibility),
        "reconcileTimeout": resource.reconcile_timeout is not None,
        "lifecycle": resource.lifecycle is not None,
    }
    for field, is_set in of_extensions.items():
        if is_set and resource.kind != "Extension":
            yield forbidden(f"{path}.{field}", "field must not be set if kind != Extension")
    is_exposure = resource.kind == "SelfHostedShootExposure"
    if resource.continuous_endpoint_update is not None and not is_exposure:
        yield forbidden(
            f"{path}.continuousEndpointUpdate",
            "field must not be set if kind != SelfHostedShootExposure",
        )


def _clusters(resource: ExtensionResource, path: str) -> Iterator[Cause]:
    lists = {
        "clusterCompatibility": resource.cluster_compatibility,
        "autoEnable": resource.auto_enable,
    }
    for field, clusters in lists.items():
        for index, cluster in enumerate(clusters):
            at = f"{path}.{field}[{index}]"
            if cluster not in _CLUSTERS:
                yield unsupported(at, cluster, _CLUSTERS)
            elif cluster in clusters[:index]:
                yield duplicate(at, cluster)
            elif field == "autoEnable" and cluster not in resource.cluster_compatibility:
                yield forbidden(at, "autoEnable must be a subset of clusterCompatibility")


def _lifecycle(lifecycle: Lifecycle, path: str) -> Iterator[Cause]:
    strategies = {
        "reconcile": (lifecycle.reconcile, (*_AROUND_SERVER, "AfterWorker")),
        "delete": (lifecycle.delete, _AROUND_SERVER),
        "migrate": (lifecycle.migrate, _AROUND_SERVER),
    }
    for field, (value, supported) in strategies.items():
        if value is not None and value not in supported:
            yield unsupported(f"{path}.{field}", value, supported)
