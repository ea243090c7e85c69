"""Rules that both API servers share: audit, logs, requests, caches (spec 21 §7.4.1)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.core_v1_validation import is_dns_label
from pergola.api.field_errors import Cause, invalid, required
from pergola.api.operator_v1alpha1.api_server import (
    AuditConfig,
    AuditWebhook,
    Logging,
    Requests,
    ResourceWatchCacheSize,
    WatchCacheSizes,
)
from pergola.garden.rules.amounts import check_not_negative
from pergola.garden.rules.names import check_subdomain

_MOST_READING: Final = 5000
_MOST_WRITING: Final = 2500
_NOT_IN_RESOURCES: Final = ",. #"
_NOT_IN_GROUPS: Final = ", #"


def check_audit(
    config: AuditConfig | None, webhook: AuditWebhook | None, path: str
) -> Iterator[Cause]:
    """Yield the findings about audit logging; a webhook without a policy has no effect."""
    policy = config.audit_policy if config else None
    reference = policy.config_map_ref if policy else None
    at = f"{path}.auditConfig.auditPolicy.configMapRef"
    if reference is None:
        if webhook is not None:
            yield required(at, "auditWebhook has no effect without an audit policy")
        return
    if not reference.name:
        yield required(f"{at}.name", "must provide a name")
    else:
        yield from check_subdomain(reference.name, f"{at}.name")
    if reference.namespace and not is_dns_label(reference.namespace):
        yield invalid(f"{at}.namespace", reference.namespace, "must be the name of a namespace")


def check_logging(logging: Logging | None, path: str) -> Iterator[Cause]:
    """Yield the findings about the verbosity of logs."""
    if logging is not None:
        yield from check_not_negative(logging.verbosity, f"{path}.verbosity")
        yield from check_not_negative(logging.http_access_verbosity, f"{path}.httpAccessVerbosity")


def check_requests(requests: Requests | None, path: str) -> Iterator[Cause]:
    """Yield the findings about the limits of concurrent requests."""
    if requests is None:
        return
    limits = {
        "maxNonMutatingInflight": (requests.max_non_mutating_inflight, _MOST_READING),
        "maxMutatingInflight": (requests.max_mutating_inflight, _MOST_WRITING),
    }
    for field, (value, most) in limits.items():
        yield from check_not_negative(value, f"{path}.{field}")
        if value is not None and value > most:
            yield invalid(f"{path}.{field}", value, f"cannot set higher than {most}")


def check_watch_caches(sizes: WatchCacheSizes | None, path: str) -> Iterator[Cause]:
    """Yield the findings about the sizes of watch caches."""
    if sizes is None:
        return
    yield from check_not_negative(sizes.default, f"{path}.default")
    for index, size in enumerate(sizes.resources):
        yield from _watch_cache(size, f"{path}.resources[{index}]")


def _watch_cache(size: ResourceWatchCacheSize, path: str) -> Iterator[Cause]:
    if not size.resource:
        yield required(f"{path}.resource", "must not be empty")
    yield from _spelling(size.resource, _NOT_IN_RESOURCES, f"{path}.resource")
    yield from _spelling(size.api_group or "", _NOT_IN_GROUPS, f"{path}.apiGroup")
    yield from check_not_negative(size.size, f"{path}.size")


def _spelling(name: str, excluded: str, path: str) -> Iterator[Cause]:
    if name.lower() != name:
        yield invalid(path, name, "must be lower case")
    if any(character in name for character in excluded):
        problem = f'must not contain any of the following characters: "{excluded}"'
        yield invalid(path, name, problem)
