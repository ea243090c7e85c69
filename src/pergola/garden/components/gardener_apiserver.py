"""gardener-apiserver: serves the API groups of Gardener (spec 20 §16.2)."""

import base64
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

from pergola.api.durations import format_duration
from pergola.api.kinds import SERVICE
from pergola.api.objects import JsonObject, Key, map_at
from pergola.bundle.versions import Version
from pergola.garden.components import authorities, monitoring, task_names
from pergola.garden.components.api_server.admission import admission
from pergola.garden.components.api_server.audit import audit
from pergola.garden.components.api_server.encryption import encryption, encryption_key
from pergola.garden.components.api_server.part import ApiServer, Part
from pergola.garden.components.api_server.roll_out import learn_encryption, second_stage
from pergola.garden.components.api_server.serving import serving
from pergola.garden.components.component import Clusters, Component, Rendered, Stage
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
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.components.workload_identity import KEY, issuer, signing_key
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.garden.landscape.encryption_at_rest import ALWAYS_BY_GARDENER
from pergola.manifests import (
    KUBE_SYSTEM,
    cluster_role,
    https_probe,
    manifest,
    mount,
    port,
    requests,
    rule,
    service,
)
from pergola.manifests.shoot_access import KUBECONFIG_PATH

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


APIS: Final = (
    ("core", "v1"),
    ("core", "v1beta1"),
    ("operations", "v1alpha1"),
    ("security", "v1alpha1"),
    ("seedmanagement", "v1alpha1"),
)
"""The API groups, without `.gardener.cloud`, and their versions."""

_ROLE: Final = "gardener.cloud:system:apiserver"
_DELEGATOR: Final = "gardener.cloud:apiserver:auth-delegator"
_READER: Final = "gardener.cloud:apiserver:auth-reader"
_RBAC: Final = "rbac.authorization.k8s.io"
_SERVICE_PORT: Final = 443
_GROUP_PRIORITY: Final = 10000
_VERSION_PRIORITY: Final = 20
# From 1.33 on kube-apiserver reads EndpointSlices; from 1.34 on it warns about Endpoints.
_SLICES_SINCE: Final = Version(1, 33)
_NO_ENDPOINTS_SINCE: Final = Version(1, 34)


def registration(landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return the objects of the virtual cluster."""
    return (
        *(_api_service(landscape, group, version) for group, version in APIS),
        *_permissions(),
        _virtual_service(),
        *_endpoints(landscape),
    )


def _api_service(landscape: Landscape, group: str, version: str) -> JsonObject:
    bundle = landscape.credentials.bundle(authorities.GARDENER).data["bundle.crt"]
    return manifest(
        "apiregistration.k8s.io/v1",
        "APIService",
        f"{version}.{group}.gardener.cloud",
        labels=PROGRAM.labels,
        spec={
            "group": f"{group}.gardener.cloud",
            "version": version,
            "service": {"name": NAME, "namespace": KUBE_SYSTEM},
            "caBundle": base64.b64encode(bundle).decode(),
            "groupPriorityMinimum": _GROUP_PRIORITY,
            "versionPriority": _VERSION_PRIORITY,
        },
    )


def _permissions() -> list[JsonObject]:
    everything = [rule("*", ["*"], ["*"])]
    return [
        *cluster_role(_ROLE, everything, PROGRAM.account(), labels=PROGRAM.labels),
        _binding("ClusterRole", _DELEGATOR, "system:auth-delegator"),
        _binding("Role", _READER, "extension-apiserver-authentication-reader", KUBE_SYSTEM),
    ]


def _binding(kind: str, name: str, role: str, namespace: str = "") -> JsonObject:
    """Return a binding to a built-in role of Kubernetes."""
    return manifest(
        f"{_RBAC}/v1",
        f"{kind}Binding",
        name,
        namespace=namespace,
        labels=PROGRAM.labels,
        roleRef={"apiGroup": _RBAC, "kind": kind, "name": role},
        subjects=[PROGRAM.account()],
    )


def _virtual_service() -> JsonObject:
    port = {"port": _SERVICE_PORT, "protocol": "TCP", "targetPort": PORT}
    return service(NAME, KUBE_SYSTEM, PROGRAM.labels, port, labels=PROGRAM.labels)


def _endpoints(landscape: Landscape) -> Iterator[JsonObject]:
    address = landscape.gardener_api_server_address
    ports = [{"port": _SERVICE_PORT, "protocol": "TCP"}]
    if landscape.version < _NO_ENDPOINTS_SINCE:
        subset = {"addresses": [{"ip": address}], "ports": ports}
        yield manifest(
            "v1",
            "Endpoints",
            NAME,
            namespace=KUBE_SYSTEM,
            labels=PROGRAM.labels,
            subsets=[subset],
        )
    if landscape.version >= _SLICES_SINCE:
        yield manifest(
            "discovery.k8s.io/v1",
            "EndpointSlice",
            NAME,
            namespace=KUBE_SYSTEM,
            labels={**PROGRAM.labels, "kubernetes.io/service-name": NAME},
            addressType="IPv6" if ":" in address else "IPv4",
            endpoints=[{"addresses": [address]}],
            ports=ports,
        )


_SERVICE: Final = Key(NAMESPACE, NAME)
_SERVICE_LIMIT: Final = 30.0


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield its certificate, the key for etcd and the key that signs workload identities."""
    hosts = (
        *authorities.service_hosts(NAME, NAMESPACE),
        *authorities.service_hosts(NAME, KUBE_SYSTEM),
    )
    yield authorities.gardener_server(CERTIFICATE, *dict.fromkeys(hosts))
    yield encryption_key(landscape, api_server(landscape))
    yield signing_key(landscape)


def render(landscape: Landscape) -> Rendered:
    """Return the workload, and its registration once the address of its Service is known.

    Every pod must serve the new certificate before the old authority leaves the bundle. The flow
    therefore waits until the rollout has finished.
    """
    part = shared_parts(landscape)
    runtime = PROGRAM.runtime(*workload(landscape, part), is_awaited=True)
    direct = (access_secret(NAME), *part.objects)
    if not landscape.gardener_api_server_address:
        return Rendered(managed=(runtime,), direct=direct)
    virtual = PROGRAM.virtual(*registration(landscape))
    return Rendered(managed=(runtime, virtual), direct=direct)


async def learn(landscape: Landscape, clusters: Clusters) -> Landscape:
    """Learn how it encrypts now, and the address of its Service if it has one.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    landscape = await learn_encryption(landscape, clusters, api_server(landscape))
    service = await clusters.client.find(SERVICE, _SERVICE)
    return replace(landscape, gardener_api_server_address=_cluster_ip(service))


async def learn_address(landscape: Landscape, clusters: Clusters) -> Landscape | None:
    """Learn the address of its Service; None if it is the one that was rendered.

    Raises:
        NotReady: The Service has no address.
    """
    service = await clusters.wait(SERVICE, _SERVICE, _address_problem, _SERVICE_LIMIT)
    address = _cluster_ip(service)
    if address == landscape.gardener_api_server_address:
        return None
    return replace(landscape, gardener_api_server_address=address)


def _cluster_ip(service: JsonObject | None) -> str:
    return str(map_at(service or {}, "spec").get("clusterIP") or "")


def _address_problem(service: JsonObject | None) -> str | None:
    if service is None:
        return "it does not exist"
    return None if _cluster_ip(service) else "it has no cluster IP"


GARDENER_APISERVER: Final = Component(
    name=NAME,
    deploy="Deploying Gardener API Server",
    wait=task_names.GARDENER_API_SERVER_READY,
    after=(
        task_names.ETCDS_READY,
        task_names.API_SERVER_READY,
        task_names.VIRTUAL_RESOURCE_MANAGER_READY,
    ),
    learn=learn,
    credentials=credentials,
    render=render,
    then=(Stage(learn=learn_address, render=render), second_stage(api_server, render)),
    removable=PROGRAM.removable(),
)
