"""The Deployment of the kube-apiserver and its autoscalers (spec 20 §15.2)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import monitoring
from pergola.garden.components.api_server.part import Part
from pergola.garden.components.conventions import (
    NON_ROOT,
    TO_DNS,
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    raised,
    to_service,
)
from pergola.garden.components.etcds import access
from pergola.garden.components.kube_apiserver.flags import PORT
from pergola.garden.components.kube_apiserver.identities import probe_token
from pergola.garden.components.kube_apiserver_exposure.services import LABELS
from pergola.garden.components.priority_classes import P500
from pergola.garden.components.virtual_access import API_SERVER
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    disruption_budget,
    https_probe,
    manifest,
    port,
    selector,
    target_reference,
    vertical_pod_autoscaler,
)
from pergola.manifests.labels import HIGH_AVAILABILITY

CONTAINER: Final = "kube-apiserver"

_ALLOWED: Final = "allowed"
_CONTROL_PLANE: Final = {"gardener.cloud/role": "controlplane"}
_LEAST_REPLICAS: Final = 2
_LEAST_HIGHLY_AVAILABLE: Final = 3
_MOST_REPLICAS: Final = 6
_METRICS: Final = (
    "aggregator_unavailable_apiservice",
    "apiserver_admission_(controller|step|webhook)_admission_duration_seconds_.+",
    "apiserver_admission_webhook_(rejection_count|request_total|fail_open_count)",
    "apiserver_audit_(error|event)_total",
    "apiserver_audit_requests_rejected_total",
    "apiserver_cache_list_.+",
    "apiserver_crd_(conversion_webhook|webhook_conversion)_duration_seconds_.+",
    "apiserver_current_(inflight_requests|inqueue_requests)",
    "apiserver_flowcontrol_.+",
    "apiserver_init_events_total",
    "apiserver_latency(_seconds)?",
    "apiserver_longrunning_requests",
    "apiserver_(mutating|validating)_admission_policy_check_(total|duration_seconds_.+)",
    "apiserver_registered_watchers",
    "apiserver_request_(count|duration_seconds_.+|terminations_total|total)",
    "apiserver_response_sizes_.+",
    "apiserver_storage_(list_.+|objects|size_bytes|db_total_size_in_bytes)",
    "apiserver_storage_transformation_(duration_seconds_.+|operations_total)",
    "apiserver_watch_(duration|events_sizes_.+|events_total)",
    "authenticated_user_requests",
    "authentication_attempts",
    "etcd_(db_total_size_in_bytes|object_counts|request_duration_seconds_.+)",
    "go_.+",
    "process_(max_fds|open_fds|cpu_seconds_total|resident_memory_bytes|start_time_seconds)",
    "watch_cache_capacity(_decrease_total|_increase_total)?",
)


def workload(landscape: Landscape, part: Part) -> tuple[JsonObject, ...]:
    """Return the Deployment, its autoscalers, its budget and its ServiceMonitor.

    Args:
        part: The sum of all concerns.
    """
    target = target_reference("Deployment", API_SERVER)
    return (
        _deployment(landscape, part),
        _horizontal_autoscaler(landscape),
        vertical_pod_autoscaler(
            f"{API_SERVER}-vpa", NAMESPACE, target, CONTAINER, _least(landscape)
        ),
        disruption_budget(API_SERVER, NAMESPACE, LABELS),
        _service_monitor(),
    )


def _deployment(landscape: Landscape, part: Part) -> JsonObject:
    """Return the Deployment, without replicas: the autoscaler owns them from the start."""
    pods = {
        **LABELS,
        **_CONTROL_PLANE,
        **TO_DNS,
        **TO_PUBLIC_NETWORKS,
        **TO_PRIVATE_NETWORKS,
        "networking.resources.gardener.cloud/to-all-webhook-targets": _ALLOWED,
        "networking.resources.gardener.cloud/to-extensions-all-webhook-targets": _ALLOWED,
        **to_service(access.client_service(access.MAIN), access.CLIENT_PORT),
        **to_service(access.client_service(access.EVENTS), access.CLIENT_PORT),
    }
    return manifest(
        "apps/v1",
        "Deployment",
        API_SERVER,
        namespace=NAMESPACE,
        labels={**LABELS, **_CONTROL_PLANE, HIGH_AVAILABILITY: "server"},
        spec={
            "minReadySeconds": 30,
            "revisionHistoryLimit": 2,
            "selector": selector(LABELS),
            "strategy": {
                "type": "RollingUpdate",
                "rollingUpdate": {"maxSurge": "100%", "maxUnavailable": 0},
            },
            "template": {"metadata": {"labels": pods}, "spec": _pod(landscape, part)},
        },
    )


def _pod(landscape: Landscape, part: Part) -> JsonObject:
    return {
        "automountServiceAccountToken": False,
        "priorityClassName": P500,
        "terminationGracePeriodSeconds": 30,
        "securityContext": NON_ROOT,
        "containers": [_container(landscape, part)],
        "volumes": list(part.volumes),
    }


def _container(landscape: Landscape, part: Part) -> JsonObject:
    return {
        "name": CONTAINER,
        "image": landscape.kubernetes_image(CONTAINER),
        "imagePullPolicy": "IfNotPresent",
        "command": [f"/usr/local/bin/{CONTAINER}"],
        "args": list(part.args),
        "ports": [port("https", PORT)],
        "livenessProbe": _probe(landscape, "/livez", initialDelaySeconds=15),
        "readinessProbe": _probe(landscape, "/readyz", initialDelaySeconds=10),
        "resources": {"requests": raised({"cpu": "600m", "memory": "512Mi"}, _chosen(landscape))},
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": list(part.mounts),
    }


def _probe(landscape: Landscape, path: str, *, initialDelaySeconds: int) -> JsonObject:  # noqa: N803 - a field of Kubernetes
    bearer = {"name": "Authorization", "value": f"Bearer {probe_token(landscape)}"}
    probe = https_probe(
        path,
        PORT,
        initialDelaySeconds=initialDelaySeconds,
        periodSeconds=10,
        timeoutSeconds=15,
        successThreshold=1,
        failureThreshold=3,
    )
    return {**probe, "httpGet": {**probe["httpGet"], "httpHeaders": [bearer]}}


def _horizontal_autoscaler(landscape: Landscape) -> JsonObject:
    least = _LEAST_HIGHLY_AVAILABLE if landscape.is_highly_available else _LEAST_REPLICAS
    return manifest(
        "autoscaling/v2",
        "HorizontalPodAutoscaler",
        API_SERVER,
        namespace=NAMESPACE,
        labels={HIGH_AVAILABILITY: "server"},
        spec={
            "scaleTargetRef": target_reference("Deployment", API_SERVER),
            "minReplicas": least,
            "maxReplicas": _MOST_REPLICAS,
            "metrics": [_average("cpu", "6"), _average("memory", "24G")],
            "behavior": {
                "scaleUp": _policy("Percent", 100, each=60, window=60),
                "scaleDown": _policy("Pods", 1, each=300, window=1800),
            },
        },
    )


def _average(resource: str, value: str) -> JsonObject:
    target = {"type": "AverageValue", "averageValue": value}
    return {"type": "Resource", "resource": {"name": resource, "target": target}}


def _policy(kind: str, value: int, *, each: int, window: int) -> JsonObject:
    return {
        "policies": [{"type": kind, "value": value, "periodSeconds": each}],
        "selectPolicy": "Max",
        "stabilizationWindowSeconds": window,
    }


def _least(landscape: Landscape) -> dict[str, int | str]:
    return {"cpu": "20m", "memory": "200M", **_chosen(landscape)}


def _chosen(landscape: Landscape) -> dict[str, int | str]:
    chosen = landscape.api_server.autoscaling
    return {name: str(amount) for name, amount in chosen.min_allowed.items()} if chosen else {}


def _service_monitor() -> JsonObject:
    scraped = monitoring.endpoint(
        PORT, targets=[monitoring.SERVICE_LABELS], metrics=monitoring.kept_metrics(*_METRICS)
    )
    services = {**LABELS, "metrics-scrape-target": "true"}
    return monitoring.service_monitor(
        monitoring.GARDEN, API_SERVER, services, monitoring.authenticated(scraped)
    )
