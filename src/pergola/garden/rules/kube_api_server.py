"""Rules about `spec.virtualCluster.kubernetes.kubeAPIServer` (spec 21 §7.4.1)."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from pergola.api.durations import format_duration
from pergola.api.field_errors import Cause, duplicate, forbidden, invalid, unsupported
from pergola.api.known.feature_gate_rules import check_kubernetes_feature_gates
from pergola.api.known.kubernetes_apis import (
    has_resource,
    is_api_name,
    required_by,
    versions_of_api,
)
from pergola.api.known.kubernetes_versions import Minor, Version, tabled
from pergola.api.operator_v1alpha1 import GardenSpec
from pergola.api.operator_v1alpha1.kube_api_server import KubeApiServer, ServiceAccountConfig
from pergola.garden.rules.admission_plugins import check_kubernetes_plugins
from pergola.garden.rules.amounts import check_autoscaling, check_not_negative
from pergola.garden.rules.api_servers import (
    check_audit,
    check_logging,
    check_requests,
    check_watch_caches,
)
from pergola.garden.rules.authentication import (
    check_authentication,
    check_service_accounts,
)
from pergola.garden.rules.names import check_subdomain, matches_pattern

PATH: Final = "spec.virtualCluster.kubernetes.kubeAPIServer"
WITHOUT_DEFAULTS: Final = Minor(1, 35)
"""The version from which deprecated settings with a replacement are rejected."""
_LONGEST_TTL: Final = timedelta(hours=24)
_TLS: Final = ("VersionTLS12", "VersionTLS13")
_LEAST: Final = {"cpu": "20m", "memory": "200M"}


def check_kube_api_server(
    spec: GardenSpec, version: Version, before: ServiceAccountConfig | None
) -> Iterator[Cause]:
    """Yield the findings about the settings of the kube-apiserver.

    Args:
        before: The stored settings of ServiceAccount tokens, if the Garden exists.
    """
    server = spec.virtual_cluster.kubernetes.kube_api_server
    yield from _outdated(server, version)
    yield from check_kubernetes_plugins(
        server.admission_plugins, version, f"{PATH}.admissionPlugins"
    )
    yield from _runtime_config(server.runtime_config, version, f"{PATH}.runtimeConfig")
    yield from check_kubernetes_feature_gates(server.feature_gates, version, f"{PATH}.featureGates")
    yield from check_audit(server.audit_config, server.audit_webhook, PATH)
    yield from check_authentication(server, PATH)
    accepted = before.accepted_issuers if before else []
    accounts = server.service_account_config
    yield from check_service_accounts(accounts, accepted, f"{PATH}.serviceAccountConfig")
    yield from _limits(server)
    yield from _audiences(server.api_audiences, f"{PATH}.apiAudiences")
    yield from _sni(spec, f"{PATH}.sni")


def _outdated(server: KubeApiServer, version: Version) -> Iterator[Cause]:
    if version.of_minor < WITHOUT_DEFAULTS:
        return
    if server.enable_anonymous_authentication is not None:
        yield forbidden(
            f"{PATH}.enableAnonymousAuthentication",
            "for Kubernetes versions >= 1.35, enableAnonymousAuthentication field is no longer "
            "supported, configure anonymous access in structuredAuthentication instead",
        )
    if server.watch_cache_sizes is not None and server.watch_cache_sizes.default is not None:
        yield forbidden(
            f"{PATH}.watchCacheSizes.default",
            "for Kubernetes versions >= 1.35, watchCacheSizes.default field is no longer "
            "supported, the sizes adapt automatically",
        )


def _runtime_config(config: Mapping[str, bool], version: Version, path: str) -> Iterator[Cause]:
    for name, is_enabled in config.items():
        at = f"{path}[{name}]"
        versions = versions_of_api(name)
        if not is_api_name(name):
            yield invalid(at, name, f'invalid API Group format "{name}"')
        elif versions is None:
            what = "group version resource" if has_resource(name) else "group version"
            yield invalid(at, name, f'unknown API {what} "{name}"')
        elif tabled(version) not in versions:
            text = ".".join(map(str, version))
            problem = f'api "{name}" is not supported in Kubernetes version {text}'
            yield forbidden(at, f"{problem}, only supported in {versions}")
        elif not is_enabled and (lost := required_by(name)) is not None:
            yield forbidden(at, f'api "{lost}" cannot be disabled for workerless clusters')


def _limits(server: KubeApiServer) -> Iterator[Cause]:
    yield from check_watch_caches(server.watch_cache_sizes, f"{PATH}.watchCacheSizes")
    yield from check_logging(server.logging, f"{PATH}.logging")
    yield from check_requests(server.requests, f"{PATH}.requests")
    yield from check_autoscaling(server.autoscaling, _LEAST, f"{PATH}.autoscaling")
    tolerations = {
        "defaultNotReadyTolerationSeconds": server.default_not_ready_toleration_seconds,
        "defaultUnreachableTolerationSeconds": server.default_unreachable_toleration_seconds,
    }
    for field, seconds in tolerations.items():
        yield from check_not_negative(seconds, f"{PATH}.{field}")
    ttl = server.event_ttl
    if ttl < timedelta():
        yield invalid(f"{PATH}.eventTTL", format_duration(ttl), "can not be negative")
    if ttl > _LONGEST_TTL:
        yield invalid(f"{PATH}.eventTTL", format_duration(ttl), "can not be longer than 24h")
    if server.tls_min_version is not None and server.tls_min_version not in _TLS:
        yield unsupported(f"{PATH}.tlsMinVersion", server.tls_min_version, _TLS)


def _audiences(audiences: list[str], path: str) -> Iterator[Cause]:
    for index, audience in enumerate(audiences):
        if audience in audiences[:index]:
            yield duplicate(f"{path}[{index}]", audience)
        if "," in audience:
            yield invalid(f"{path}[{index}]", audience, "audience must not contain commas")


def _sni(spec: GardenSpec, path: str) -> Iterator[Cause]:
    """Check SNI; gardenlets rely on the garden's own certificate for the first name."""
    sni, domains = spec.virtual_cluster.kubernetes.kube_api_server.sni, spec.virtual_cluster.dns
    if sni is None:
        return
    if sni.secret_name is not None:
        yield from check_subdomain(sni.secret_name, f"{path}.secretName")
    first = f"api.{domains.domains[0].name}" if domains.domains else ""
    for index, pattern in enumerate(sni.domain_patterns):
        at = f"{path}.domainPatterns[{index}]"
        yield from check_subdomain(pattern.removeprefix("*."), at)
        if first and matches_pattern(first, pattern):
            yield forbidden(
                at,
                "domain patterns of SNI must not match the first API server domain of the "
                f"virtual cluster configuration ({first})",
            )
