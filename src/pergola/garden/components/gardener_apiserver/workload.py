"""The workload of gardener-apiserver in the runtime cluster."""

from collections.abc import Iterator
from typing import Final

from pergola.api.durations import format_duration
from pergola.api.objects import JsonObject
from pergola.garden.components import monitoring
from pergola.garden.components.api_server.admission import admission
from pergola.garden.components.api_server.audit import audit
from pergola.garden.components.api_server.encryption import encryption
from pergola.garden.components.api_server.part import ApiServer, Part
from pergola.garden.components.api_server.serving import serving
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    WEBHOOK_TARGETS,
    nearest_first,
    open_ports,
    to_service,
)
from pergola.garden.components.etcds import access
from pergola.garden.components.gardener_program import (
    Program,
    autoscaler,
    budget,
    deployment,
    gardener_labels,
)
from pergola.garden.components.priority_classes import P500
from pergola.garden.components.virtual_access import KUBECONFIG_PATH
from pergola.garden.components.workload_identity import KEY, issuer
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.encryption_at_rest import ALWAYS_BY_GARDENER
from pergola.manifests import https_probe, mount, port, requests, service

NAME: Final = "gardener-apiserver"
CERTIFICATE: Final = NAME
PORT: Final = 8443
PROGRAM: Final = Program(
    name=NAME,
    labels=gardener_labels("apiserver"),
    priority=P500,
    to={
        **TO_PUBLIC_NETWORKS,
        **TO_PRIVATE_NETWORKS,
        "networking.resources.gardener.cloud/to-all-webhook-targets": "allowed",
        **to_service(access.client_service(access.MAIN), access.CLIENT_PORT),
    },
)

_REPLICAS: Final = 2
_HIGHLY_AVAILABLE: Final = 3
_DEBUG_ABOVE: Final = 2
_KEY_VOLUME: Final = f"{NAME}-workload-identity"
_KEY_PATH: Final = f"/etc/{NAME}/workload-identity/signing"
_KEY_FILE: Final = "key.pem"
_METRICS: Final = (
    "apiserver_admission_controller_admission_duration_seconds_.+",
    "apiserver_admission_step_admission_duration_seconds_.+",
    "apiserver_admission_webhook_admission_duration_seconds_.+",
    "apiserver_admission_webhook_rejection_count",
    "apiserver_audit_error_total",
    "apiserver_audit_event_total",
    "apiserver_audit_requests_rejected_total",
    "apiserver_cache_list_.+",
    "apiserver_current_inflight_requests",
    "apiserver_current_inqueue_requests",
    "apiserver_init_events_total",
    "apiserver_latency_seconds",
    "apiserver_registered_watchers",
    "apiserver_request_duration_seconds_.+",
    "apiserver_request_terminations_total",
    "apiserver_request_total",
    "apiserver_response_sizes_.+",
    "apiserver_storage_list_.+",
    "apiserver_storage_objects",
    "apiserver_storage_transformation_duration_seconds_.+",
    "apiserver_storage_transformation_operations_total",
    "apiserver_watch_events_sizes_.+",
    "apiserver_watch_events_total",
    "authenticated_user_requests",
    "authentication_attempts",
    "etcd_request_duration_seconds_.+",
    "go_.+",
    "watch_cache_capacity",
    "watch_cache_capacity_decrease_total",
    "watch_cache_capacity_increase_total",
)


def api_server(landscape: Landscape) -> ApiServer:
    """Return the properties that gardener-apiserver shares with kube-apiserver."""
    return ApiServer(
        name=NAME,
        deployment=NAME,
        audit_policy=f"{NAME}-audit-policy-config",
        settings=landscape.virtual.gardener.api_server,
        always_encrypted=ALWAYS_BY_GARDENER,
    )


def shared_parts(landscape: Landscape) -> Part:
    """Return the flags and files of the pods, with their Secrets and ConfigMaps."""
    server = api_server(landscape)
    return (
        _signing_key(landscape)
        + serving(landscape, server, CERTIFICATE)
        + audit(landscape, server)
        + admission(landscape, server)
        + encryption(landscape, server)
    )


def _signing_key(landscape: Landscape) -> Part:
    source: JsonObject = {
        "secretName": landscape.credentials.name(KEY),
        "items": [{"key": "id_rsa", "path": _KEY_FILE}],
    }
    return Part(
        args=(
            f"--workload-identity-token-issuer={issuer(landscape)}",
            f"--workload-identity-signing-key-file={_KEY_PATH}/{_KEY_FILE}",
        ),
        mounts=(mount(_KEY_VOLUME, _KEY_PATH),),
        volumes=({"name": _KEY_VOLUME, "secret": source},),
    )


def workload(landscape: Landscape, part: Part) -> tuple[JsonObject, ...]:
    """Return the objects of the runtime cluster.

    Args:
        part: The result of `shared_parts`.
    """
    return (
        _deployment(landscape, part),
        budget(PROGRAM),
        _service(landscape),
        _service_monitor(),
        autoscaler(PROGRAM, {"cpu": "12", "memory": "48G"}, memory="200M"),
    )


def _deployment(landscape: Landscape, part: Part) -> JsonObject:
    replicas = _HIGHLY_AVAILABLE if landscape.is_highly_available else _REPLICAS
    return deployment(
        PROGRAM,
        landscape,
        _container(landscape, part),
        part.volumes,
        replicas=replicas,
        minReadySeconds=30,
        strategy={
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0},
        },
    )


def _container(landscape: Landscape, part: Part) -> JsonObject:
    timing = {
        "initialDelaySeconds": 15,
        "periodSeconds": 10,
        "timeoutSeconds": 15,
        "successThreshold": 1,
        "failureThreshold": 3,
    }
    return {
        "image": landscape.gardener_image(NAME),
        "args": [*_flags(landscape), *part.args],
        "ports": [port("https", PORT)],
        "resources": requests(cpu="600m", memory="512Mi"),
        "livenessProbe": https_probe("/livez", PORT, **timing),
        "readinessProbe": https_probe("/readyz", PORT, **timing),
        "volumeMounts": list(part.mounts),
    }


def _flags(landscape: Landscape) -> Iterator[str]:
    gardener = landscape.virtual.gardener
    settings = gardener.api_server
    yield "--authorization-always-allow-paths=/healthz"
    yield f"--cluster-identity={gardener.cluster_identity}"
    for prefix in ("authentication-", "authorization-", ""):
        yield f"--{prefix}kubeconfig={KUBECONFIG_PATH}"
    yield f"--log-level={_log_level(landscape)}"
    yield "--log-format=json"
    yield f"--secure-port={PORT}"
    if settings.shoot_admin_kubeconfig_max_expiration is not None:
        longest = format_duration(settings.shoot_admin_kubeconfig_max_expiration)
        yield f"--shoot-admin-kubeconfig-max-expiration={longest}"
    if settings.go_away_chance is not None:
        yield f"--goaway-chance={settings.go_away_chance:f}"


def _log_level(landscape: Landscape) -> str:
    logging = landscape.virtual.gardener.api_server.logging
    verbosity = logging.verbosity if logging else None
    return "debug" if (verbosity or 0) > _DEBUG_ABOVE else "info"


def _service(landscape: Landscape) -> JsonObject:
    return service(
        NAME,
        NAMESPACE,
        PROGRAM.labels,
        {"port": 443, "protocol": "TCP", "targetPort": PORT},
        labels=PROGRAM.labels,
        annotations={**open_ports(GARDEN_SCRAPES, PORT), **open_ports(WEBHOOK_TARGETS, PORT)},
        **nearest_first(landscape),
    )


def _service_monitor() -> JsonObject:
    scraped = monitoring.endpoint(PORT, metrics=monitoring.kept_metrics(*_METRICS))
    return monitoring.service_monitor(
        monitoring.GARDEN, NAME, PROGRAM.labels, monitoring.authenticated(scraped)
    )
