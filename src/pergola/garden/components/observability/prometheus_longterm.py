"""The long-term Prometheus: keeps series for billing and monthly reports (spec 20 §16.8).

Cortex splits and caches the queries of its users. The rules compute the unavailability of Shoots'
API servers as a share of time: `probe_failure` is 1 while an API server is unavailable. Its sum
over time is kept both for fixed periods, in which a label with the period's number starts a new
series, and for moving windows.
"""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import to_service, volume_size
from pergola.garden.components.monitoring import (
    LONGTERM,
    job,
    keep,
    rule_file,
    scrape_config,
    services_of,
    static,
)
from pergola.garden.components.observability.conventions import host_credentials, managed
from pergola.garden.components.observability.prometheus import (
    PORT,
    Prometheus,
    health,
    problem,
    prometheus_objects,
)
from pergola.garden.components.observability.prometheus_garden.component import (
    NAME as GARDEN_PROMETHEUS,
)
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.kube.yaml import dump
from pergola.manifests import (
    config_map_volume,
    manifest,
    mount,
    port,
    requests,
    service_port,
)

NAME: Final = "prometheus-longterm"

_SIZE: Final = "100Gi"
_CORTEX: Final = "cortex"
_CORTEX_PORT: Final = 9091
_CORTEX_SERVICE_PORT: Final = 81
_CORTEX_VOLUME: Final = "cortex-config"
_CORTEX_PATH: Final = "/etc/cortex/config"
_CORTEX_TARGET: Final = "query-frontend"
_FILE: Final = "config.yaml"
_METERED: Final = (
    "cpu_requests|memory_requests|network|persistent_volume_claims|disk_usage_seconds|"
    "memory_usage_seconds"
)
_SHOOT_CONDITIONS: Final = "APIServerAvailable|SystemComponentsHealthy"
_SEED_CONDITIONS: Final = "SeedSystemComponentsHealthy|GardenletReady"
_FEDERATED: Final = (
    '{__name__="garden_shoot_info"}',
    '{__name__="garden_seed_info"}',
    '{__name__=~"garden_shoot_info:timestamp:this_month"}',
    f'{{__name__=~"metering:({_METERED}).*:this_month"}}',
    '{__name__="garden_shoot_node_info"}',
    f'{{__name__="garden_shoot_condition", condition=~"({_SHOOT_CONDITIONS})"}}',
    f'{{__name__="garden_seed_condition", condition=~"({_SEED_CONDITIONS})"}}',
    '{__name__="garden_seed_usage"}',
    '{__name__="garden_seed_capacity"}',
    '{__name__="etcdbr_snapshot_duration_seconds_count"}',
    '{__name__="apiserver_request_total", job="virtual-garden-kube-apiserver"}',
    '{__name__="shoot:node_operating_system:sum"}',
)


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificate of the host."""
    yield from host_credentials(landscape, NAME, NAME)


def render(landscape: Landscape) -> Rendered:
    """Return the Prometheus, the configuration of Cortex, the scrapes and the rules."""
    config = make_unique(_cortex_config(landscape))
    objects = (
        config,
        *prometheus_objects(_instance(landscape, name_of(config)), landscape),
        *_scrapes(),
        rule_file(LONGTERM, "recording"),
        rule_file(LONGTERM, "sla"),
        health(LONGTERM, problem("federate:absent", "absent(apiserver_request_total)")),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _instance(landscape: Landscape, config: str) -> Prometheus:
    return Prometheus(
        label=LONGTERM,
        size=_SIZE,
        retention_size="80GB",
        pod_labels=to_service(GARDEN_PROMETHEUS, PORT),
        spec={
            "containers": [_cortex(landscape)],
            "volumes": [config_map_volume(_CORTEX_VOLUME, config)],
        },
        users_port=_CORTEX_SERVICE_PORT,
        ports=[service_port(_CORTEX, _CORTEX_SERVICE_PORT, _CORTEX_PORT)],
    )


def _cortex(landscape: Landscape) -> JsonObject:
    return {
        "name": _CORTEX,
        "image": landscape.image(_CORTEX),
        "imagePullPolicy": "IfNotPresent",
        "args": [f"-target={_CORTEX_TARGET}", f"-config.file={_CORTEX_PATH}/{_FILE}"],
        "ports": [port("frontend", _CORTEX_PORT)],
        "resources": requests(cpu="100m", memory="300Mi"),
        "securityContext": {"allowPrivilegeEscalation": False, "readOnlyRootFilesystem": True},
        "volumeMounts": [mount(_CORTEX_VOLUME, _CORTEX_PATH, readOnly=True)],
    }


def _cortex_config(landscape: Landscape) -> JsonObject:
    return manifest(
        "v1",
        "ConfigMap",
        f"{NAME}-{_CORTEX}",
        namespace=NAMESPACE,
        labels={"app": "prometheus", "name": LONGTERM, "role": "monitoring"},
        data={_FILE: dump(cortex_settings(volume_size(landscape, _SIZE)))},
    )


def cortex_settings(size: str) -> JsonObject:
    """Return the configuration file of Cortex: queries split by day, results cached for a week.

    Args:
        size: The maximum size of the cache.
    """
    cache = {"enable_fifocache": True, "fifocache": {"max_size_bytes": size, "validity": "168h"}}
    return {
        "target": _CORTEX_TARGET,
        "auth_enabled": False,
        "http_prefix": None,
        "api": {"response_compression_enabled": True},
        "server": {"http_listen_port": _CORTEX_PORT},
        "frontend": {
            "downstream_url": f"http://localhost:{PORT}",
            "log_queries_longer_than": "-1s",
        },
        "query_range": {
            "split_queries_by_interval": "24h",
            "align_queries_with_step": True,
            "cache_results": True,
            "results_cache": {"cache": cache},
        },
    }


def _scrapes() -> list[JsonObject]:
    return [
        _local(NAME, NAME, PORT),
        _local("cortex-frontend", "cortex-frontend", _CORTEX_PORT),
        scrape_config(LONGTERM, GARDEN_PROMETHEUS, _federation()),
    ]


def _local(name: str, jobs: str, number: int) -> JsonObject:
    spec = {"staticConfigs": static(f"localhost:{number}"), "relabelings": [job(jobs)]}
    return scrape_config(LONGTERM, name, spec)


def _federation() -> JsonObject:
    return {
        "honorLabels": False,
        "honorTimestamps": True,
        "kubernetesSDConfigs": services_of(NAMESPACE),
        "metricsPath": "/federate",
        "params": {"match[]": list(_FEDERATED)},
        "relabelings": [
            keep(
                f"{GARDEN_PROMETHEUS};web",
                "__meta_kubernetes_service_name",
                "__meta_kubernetes_service_port_name",
            ),
            job(GARDEN_PROMETHEUS),
        ],
    }


PROMETHEUS_LONGTERM: Final = Component(
    name=NAME,
    deploy="Deploying long-term Prometheus",
    wait="Waiting until long-term Prometheus is ready",
    after=(task_names.GARDEN_PROMETHEUS,),
    credentials=credentials,
    render=render,
)
