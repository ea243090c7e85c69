"""Rules about `spec.virtualCluster.gardener` (spec 21 §7.4)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pergola.api.core_v1 import Subject
from pergola.api.core_v1_validation import is_dns_label, selector_findings
from pergola.api.durations import format_duration
from pergola.api.field_errors import Cause, invalid, required, unsupported
from pergola.api.operator_v1alpha1 import GardenSpec
from pergola.api.operator_v1alpha1.gardener import (
    Gardener,
    GardenerApiServer,
    ResourceAdmissionConfiguration,
    ResourceLimit,
)
from pergola.garden.rules.admission_plugins import check_gardener_plugins
from pergola.garden.rules.amounts import check_not_negative, check_quantity
from pergola.garden.rules.api_servers import (
    check_audit,
    check_logging,
    check_requests,
    check_watch_caches,
)
from pergola.garden.rules.feature_gates import check_gardener_feature_gates

_PATH: Final = "spec.virtualCluster.gardener"
_MODES: Final = ("block", "log")
_RBAC: Final = "rbac.authorization.k8s.io"
_KINDS: Final = ("User", "Group", "ServiceAccount")
_SHORTEST: Final = timedelta(hours=1)
_LONGEST: Final = timedelta(seconds=2**32)


def check_gardener(spec: GardenSpec) -> Iterator[Cause]:
    """Yield the findings about Gardener's components, except dashboard and discovery server."""
    gardener = spec.virtual_cluster.gardener
    yield from _api_server(gardener.api_server, f"{_PATH}.gardenerAPIServer")
    limits = gardener.admission_controller.resource_admission_configuration
    if limits is not None:
        at = f"{_PATH}.gardenerAdmissionController.resourceAdmissionConfiguration"
        yield from _resource_admission(limits, at)
    yield from _controllers(gardener)
    namespaces = gardener.resource_manager.additional_target_namespaces
    for index, namespace in enumerate(namespaces):
        if not is_dns_label(namespace):
            at = f"{_PATH}.gardenerResourceManager.additionalTargetNamespaces[{index}]"
            yield invalid(at, namespace, "must be the name of a namespace")


def _api_server(server: GardenerApiServer, path: str) -> Iterator[Cause]:
    yield from check_gardener_feature_gates(server.feature_gates, f"{path}.featureGates")
    yield from check_gardener_plugins(server.admission_plugins, f"{path}.admissionPlugins")
    yield from check_audit(server.audit_config, server.audit_webhook, path)
    yield from check_watch_caches(server.watch_cache_sizes, f"{path}.watchCacheSizes")
    yield from check_logging(server.logging, f"{path}.logging")
    yield from check_requests(server.requests, f"{path}.requests")
    expiration = server.shoot_admin_kubeconfig_max_expiration
    if expiration is not None and not _SHORTEST <= expiration <= _LONGEST:
        yield invalid(
            f"{path}.shootAdminKubeconfigMaxExpiration",
            format_duration(expiration),
            "must be between 1h and 2^32 seconds",
        )


def _resource_admission(config: ResourceAdmissionConfiguration, path: str) -> Iterator[Cause]:
    if config.operation_mode is not None and config.operation_mode not in _MODES:
        yield unsupported(f"{path}.operationMode", config.operation_mode, _MODES)
    for index, subject in enumerate(config.unrestricted_subjects):
        yield from _subject(subject, f"{path}.unrestrictedSubjects[{index}]")
    for index, limit in enumerate(config.limits):
        yield from _limit(limit, f"{path}.limits[{index}]")


def _subject(subject: Subject, path: str) -> Iterator[Cause]:
    if subject.kind not in _KINDS:
        yield unsupported(f"{path}.kind", subject.kind, _KINDS)
    if not subject.name:
        yield invalid(f"{path}.name", subject.name, "name must not be empty")
    if subject.kind == "ServiceAccount":
        if not subject.namespace:
            yield invalid(f"{path}.namespace", subject.namespace, "must not be empty")
        if subject.api_group:
            yield invalid(f"{path}.apiGroup", subject.api_group, "apiGroup must be empty")
    elif subject.kind in _KINDS:
        if subject.namespace:
            yield invalid(f"{path}.namespace", subject.namespace, "must be empty")
        if subject.api_group != _RBAC:
            yield unsupported(f"{path}.apiGroup", subject.api_group, [_RBAC])


def _limit(limit: ResourceLimit, path: str) -> Iterator[Cause]:
    lists = {
        "apiGroups": limit.api_groups,
        "apiVersions": limit.api_versions,
        "resources": limit.resources,
    }
    for field, values in lists.items():
        if not values:
            yield invalid(f"{path}.{field}", [], "must at least have one element")
        for index, value in enumerate(values):
            if not value and field != "apiGroups":  # "" is the core group
                yield invalid(f"{path}.{field}[{index}]", value, "must not be empty")
    if limit.size is None and limit.count is None:
        yield required(path, "must have a size or a count")
    if limit.size is not None:
        yield from check_quantity(limit.size, f"{path}.size")
    yield from check_not_negative(limit.count, f"{path}.count")


def _controllers(gardener: Gardener) -> Iterator[Cause]:
    manager, scheduler = gardener.controller_manager, gardener.scheduler
    at = f"{_PATH}.gardenerControllerManager"
    yield from check_gardener_feature_gates(manager.feature_gates, f"{at}.featureGates")
    for index, quota in enumerate(manager.default_project_quotas):
        if quota.project_selector is not None:
            path = f"{at}.defaultProjectQuotas[{index}].projectSelector"
            for finding in selector_findings(quota.project_selector, path):
                yield Cause("FieldValueInvalid", f"Invalid value: {finding.problem}", finding.path)
    at = f"{_PATH}.gardenerScheduler.featureGates"
    yield from check_gardener_feature_gates(scheduler.feature_gates, at)
