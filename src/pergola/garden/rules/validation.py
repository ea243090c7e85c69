"""All rules about a Garden, in the order of their findings (spec 21 §7.4).

They assume that the Garden matches its schema, which an API server checks first.
"""

from collections.abc import Iterator
from typing import NamedTuple

from pergola.api.field_errors import Cause
from pergola.api.known.kubernetes_versions import parse_version
from pergola.api.operator_v1alpha1 import Garden
from pergola.api.operator_v1alpha1.kube_api_server import ServiceAccountConfig
from pergola.garden.rules.annotations import check_annotations
from pergola.garden.rules.changes import check_changes
from pergola.garden.rules.dashboard import check_dashboard
from pergola.garden.rules.encryption import check_encryption
from pergola.garden.rules.gardener import check_gardener
from pergola.garden.rules.kube_api_server import check_kube_api_server
from pergola.garden.rules.names import check_providers
from pergola.garden.rules.operations import check_operations
from pergola.garden.rules.references import check_extensions, check_resources
from pergola.garden.rules.runtime_cluster import check_runtime_cluster
from pergola.garden.rules.virtual_cluster import (
    check_controller_manager,
    check_kubernetes_version,
    check_virtual_cluster,
)


class Facts(NamedTuple):
    """Facts from outside the Garden that the rules need.

    Attributes:
        extension_types: The types of Extension that registered extensions serve for a garden.
        any_version: Whether to accept unsupported versions of Kubernetes.
    """

    extension_types: frozenset[str] = frozenset()
    any_version: bool = False


def check_garden(garden: Garden, facts: Facts) -> Iterator[Cause]:
    """Yield all findings about a new Garden."""
    yield from check_annotations(garden)
    yield from _check(garden, facts, None)


def check_garden_update(garden: Garden, old: Garden, facts: Facts) -> Iterator[Cause]:
    """Yield all findings about a changed Garden, including those about its changes."""
    yield from check_annotations(garden, old)
    yield from check_changes(garden, old)
    server = old.spec.virtual_cluster.kubernetes.kube_api_server
    yield from _check(garden, facts, server.service_account_config)


def _check(garden: Garden, facts: Facts, before: ServiceAccountConfig | None) -> Iterator[Cause]:
    """Apply all rules, except those that depend on the Kubernetes version if it is unreadable."""
    spec, kubernetes = garden.spec, garden.spec.virtual_cluster.kubernetes
    version = parse_version(kubernetes.version)
    yield from check_operations(garden, version)
    yield from check_providers(spec.dns, "spec.dns")
    yield from check_extensions(spec.extensions, facts.extension_types)
    yield from check_resources(spec.resources, "spec.resources")
    yield from check_runtime_cluster(spec)
    yield from check_virtual_cluster(spec)
    if version is None or not facts.any_version:
        yield from check_kubernetes_version(kubernetes.version)
    if version is not None:
        yield from check_kube_api_server(spec, version, before)
        yield from check_controller_manager(kubernetes.kube_controller_manager, version)
    yield from check_encryption(spec, version)
    yield from check_gardener(spec)
    yield from check_dashboard(spec)
