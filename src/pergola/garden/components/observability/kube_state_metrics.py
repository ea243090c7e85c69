"""kube-state-metrics: metrics about the objects of the runtime cluster (spec 20 §16.8)."""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Rendered
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    SEED_SCRAPES,
    TO_DNS,
    TO_RUNTIME_API_SERVER,
    open_ports,
)
from pergola.garden.components.monitoring import (
    GARDEN,
    drop,
    job,
    keep,
    scrape_config,
    services_of,
)
from pergola.garden.components.observability.conventions import managed
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import (
    account,
    cluster_role,
    config_map_volume,
    disruption_budget,
    http_probe,
    manifest,
    mount,
    port,
    requests,
    rule,
    selector,
    service,
    service_account,
    service_port,
    target_reference,
    vertical_pod_autoscaler,
)

_GARDENER: Final = "operator.gardener.cloud"
_PREFIX: Final = "garden"
_CONDITION_STATES: Final = ("Progressing", "True", "False", "Unknown")
_OPERATION_STATES: Final = ("Processing", "Succeeded", "Error", "Failed", "Pending", "Aborted")
_UPDATE_MODES: Final = ("Off", "Initial", "Recreate", "InPlaceOrRecreate", "Auto")
_UNITS: Final = {"cpu": "core", "memory": "byte"}
_RECOMMENDED: Final = ("status", "recommendation", "containerRecommendations")
_BOUNDED: Final = ("spec", "resourcePolicy", "containerPolicies")
_AMOUNTS: Final = {
    "target": (_RECOMMENDED, "The {0} that is recommended for a container."),
    "uncappedTarget": (_RECOMMENDED, "The {0} that would be recommended without bounds."),
    "upperBound": (_RECOMMENDED, "The {0} above which a container is resized."),
    "lowerBound": (_RECOMMENDED, "The {0} below which a container is resized."),
    "minAllowed": (_BOUNDED, "The least {0} that may be recommended for a container."),
    "maxAllowed": (_BOUNDED, "The most {0} that may be recommended for a container."),
}
_UPDATE_MODE: Final = ("spec", "updatePolicy", "updateMode")
_AUTOSCALER_LABELS: Final = {
    "verticalpodautoscaler": ("metadata", "name"),
    "namespace": ("metadata", "namespace"),
    "target_api_version": ("spec", "targetRef", "apiVersion"),
    "target_kind": ("spec", "targetRef", "kind"),
    "target_name": ("spec", "targetRef", "name"),
}


def custom_resource_metrics() -> JsonObject:
    """Return the configuration file of kube-state-metrics for custom resources."""
    named = {"name": ("metadata", "name")}
    operation = _garden_operation()
    resources = [
        _resource(
            "autoscaling.k8s.io",
            "v1",
            "VerticalPodAutoscaler",
            _AUTOSCALER_LABELS,
            *_amounts(),
            _update_mode(),
        ),
        _resource(_GARDENER, "v1alpha1", "Garden", named, _condition("garden"), operation),
        _resource(_GARDENER, "v1alpha1", "Extension", named, _condition("extension")),
    ]
    return {"kind": "CustomResourceStateMetrics", "spec": {"resources": resources}}


def metric_names() -> list[str]:
    """Return the names of these metrics as the exporter serves them, with prefix."""
    return [
        *(f"kube_customresource_{metric['name']}" for metric in (*_amounts(), _update_mode())),
        f"{_PREFIX}_garden_condition",
        f"{_PREFIX}_garden_last_operation",
        f"{_PREFIX}_extension_condition",
    ]


def _resource(
    group: str, version: str, kind: str, labels: Mapping[str, tuple[str, ...]], *metrics: JsonObject
) -> JsonObject:
    prefix = {"metricNamePrefix": _PREFIX} if group == _GARDENER else {}
    return {
        "groupVersionKind": {"group": group, "version": version, "kind": kind},
        **prefix,
        "labelsFromPath": {label: list(path) for label, path in labels.items()},
        "metrics": list(metrics),
    }


def _condition(kind: str) -> JsonObject:
    states = _states(("status", "conditions"), "status", _CONDITION_STATES, {"condition": "type"})
    return {
        "name": f"{kind}_condition",
        "help": f"The status of each condition of a {kind.capitalize()}.",
        "each": states,
    }


def _garden_operation() -> JsonObject:
    states = _states(("status", "lastOperation"), "state", _OPERATION_STATES, {"type": "type"})
    return {
        "name": "garden_last_operation",
        "help": "The state of the last operation of a Garden.",
        "each": states,
    }


def _states(
    path: tuple[str, ...], field: str, states: tuple[str, ...], labels: Mapping[str, str]
) -> JsonObject:
    """Return a metric with one series per state: 1 for the current state, 0 for the others."""
    state_set: JsonObject = {
        "path": list(path),
        "labelName": field,
        "valueFrom": [field],
        "list": list(states),
        "labelsFromPath": {label: [name] for label, name in labels.items()},
    }
    return {"type": "StateSet", "stateSet": state_set}


def _amounts() -> Iterator[JsonObject]:
    for field, (path, text) in _AMOUNTS.items():
        for resource, unit in _UNITS.items():
            gauge: JsonObject = {
                "path": list(path),
                "labelsFromPath": {"container": ["containerName"]},
                "valueFrom": [field, resource],
                "nilIsZero": True,
            }
            yield {
                "name": _name(*path, field, resource),
                "help": text.format(resource),
                "commonLabels": {"unit": unit},
                "each": {"type": "Gauge", "gauge": gauge},
            }


def _update_mode() -> JsonObject:
    state_set = {
        "path": list(_UPDATE_MODE),
        "labelName": "update_mode",
        "list": list(_UPDATE_MODES),
    }
    return {
        "name": _name(*_UPDATE_MODE),
        "help": "How recommendations are applied.",
        "each": {"type": "StateSet", "stateSet": state_set},
    }


def _name(*path: str) -> str:
    return "_".join(("verticalpodautoscaler", *path)).lower()


NAME: Final = "kube-state-metrics-runtime"

_IMAGE: Final = "kube-state-metrics"
_JOB: Final = "kube-state-metrics"
_ROLE: Final = "gardener.cloud:monitoring:kube-state-metrics-runtime"
_LABELS: Final = {"component": NAME, "type": "seed"}
_ALL_LABELS: Final = {**_LABELS, "role": "monitoring"}
_PORT: Final = 8080
_TELEMETRY_PORT: Final = 8081
_PATH: Final = "/config"
_FILE: Final = "custom-resource-state.yaml"
_KINDS: Final = (
    "deployments",
    "pods",
    "statefulsets",
    "nodes",
    "horizontalpodautoscalers",
    "persistentvolumeclaims",
    "replicasets",
    "namespaces",
)
_METRICS: Final = (
    "kube_pod_container_status_restarts_total",
    "kube_pod_info",
    "kube_pod_status_phase",
)
_CORE: Final = (
    "nodes",
    "pods",
    "services",
    "resourcequotas",
    "replicationcontrollers",
    "limitranges",
    "persistentvolumeclaims",
    "namespaces",
)
_WATCH: Final = ("list", "watch")


def render(landscape: Landscape) -> Rendered:
    """Return the exporter, its permissions and its ScrapeConfig."""
    config = make_unique(_config_map())
    objects = (
        service_account(NAME, NAMESPACE, _LABELS),
        *_permissions(),
        config,
        _deployment(landscape, name_of(config)),
        _service(),
        disruption_budget("kube-state-metrics-pdb-runtime", NAMESPACE, _LABELS),
        _autoscaler(),
        scrape_config(GARDEN, _JOB, _scrape()),
    )
    return Rendered(managed=(managed(NAME, *objects),))


def _permissions() -> list[JsonObject]:
    role, binding = cluster_role(_ROLE, _rules(), account(NAME, NAMESPACE), labels=_LABELS)
    recreated = {"resources.gardener.cloud/delete-on-invalid-update": "true"}
    return [role, {**binding, "metadata": {**binding["metadata"], "annotations": recreated}}]


def _rules() -> list[JsonObject]:
    workloads = ["daemonsets", "deployments", "replicasets", "statefulsets"]
    return [
        rule("", _CORE, _WATCH),
        {"apiGroups": ["apps", "extensions"], "resources": workloads, "verbs": list(_WATCH)},
        rule("batch", ["cronjobs", "jobs"], _WATCH),
        rule("apiextensions.k8s.io", ["customresourcedefinitions"], _WATCH),
        rule("autoscaling.k8s.io", ["verticalpodautoscalers"], _WATCH),
        rule("operator.gardener.cloud", ["gardens", "extensions"], _WATCH),
        rule("autoscaling", ["horizontalpodautoscalers"], _WATCH),
    ]


def _config_map() -> JsonObject:
    return manifest(
        "v1",
        "ConfigMap",
        "kube-state-metrics-custom-resource-state",
        namespace=NAMESPACE,
        data={_FILE: dump(custom_resource_metrics())},
    )


def _deployment(landscape: Landscape, config: str) -> JsonObject:
    pod_labels = {**_ALL_LABELS, **TO_DNS, **TO_RUNTIME_API_SERVER}
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=NAMESPACE,
        labels=_ALL_LABELS,
        spec={
            "replicas": 2,
            "revisionHistoryLimit": 2,
            "selector": selector(_LABELS),
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 1}},
            "template": {
                "metadata": {"labels": pod_labels},
                "spec": {
                    "priorityClassName": P100,
                    "serviceAccountName": NAME,
                    "containers": [_container(landscape, config)],
                    "volumes": [config_map_volume(config, config)],
                },
            },
        },
    )


def _container(landscape: Landscape, volume: str) -> JsonObject:
    return {
        "name": _IMAGE,
        "image": landscape.image(_IMAGE),
        "imagePullPolicy": "IfNotPresent",
        "args": _arguments(),
        "ports": [port("metrics", _PORT)],
        "livenessProbe": http_probe("/healthz", _PORT, initialDelaySeconds=5, timeoutSeconds=5),
        "readinessProbe": http_probe(
            "/healthz",
            _PORT,
            initialDelaySeconds=5,
            periodSeconds=30,
            successThreshold=1,
            failureThreshold=3,
            timeoutSeconds=5,
        ),
        "resources": requests(cpu="10m", memory="32Mi"),
        "securityContext": {"allowPrivilegeEscalation": False},
        "volumeMounts": [mount(volume, _PATH, readOnly=True)],
    }


def _arguments() -> list[str]:
    names = ",".join(f"^{name}$" for name in (*_METRICS, *metric_names()))
    return [
        f"--port={_PORT}",
        f"--telemetry-port={_TELEMETRY_PORT}",
        f"--resources={','.join(_KINDS)}",
        "--metric-labels-allowlist=nodes=[*],pods=[origin]",
        "--metric-annotations-allowlist=namespaces=[shoot.gardener.cloud/uid]",
        f"--metric-allowlist={names}",
        f"--custom-resource-state-config-file={_PATH}/{_FILE}",
    ]


def _service() -> JsonObject:
    return service(
        NAME,
        NAMESPACE,
        _LABELS,
        service_port("metrics", 80, _PORT),
        labels=_LABELS,
        annotations={**open_ports(GARDEN_SCRAPES, _PORT), **open_ports(SEED_SCRAPES, _PORT)},
    )


def _autoscaler() -> JsonObject:
    return vertical_pod_autoscaler(
        "kube-state-metrics-vpa-runtime",
        NAMESPACE,
        target_reference("Deployment", NAME),
        _IMAGE,
        {"memory": "32Mi"},
    )


def _scrape() -> JsonObject:
    """Return the spec of its ScrapeConfig, with the same instance label for all replicas."""
    return {
        "kubernetesSDConfigs": services_of(NAMESPACE),
        "relabelings": [
            keep(
                f"{NAME};metrics",
                "__meta_kubernetes_service_label_component",
                "__meta_kubernetes_service_port_name",
            ),
            job(_JOB),
            {"targetLabel": "instance", "replacement": _JOB},
        ],
        "metricRelabelings": [drop("shoot-.+", "namespace"), drop(r"^.+\.tf-pod.+$", "pod")],
    }


KUBE_STATE_METRICS: Final = Component(
    name=NAME,
    deploy="Deploying Kube State Metrics",
    after=task_names.SYNC_POINT,
    render=render,
)
