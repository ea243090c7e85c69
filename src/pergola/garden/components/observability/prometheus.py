"""The objects that every Prometheus of the garden consists of (spec 20 §16.8)."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    SEED_SCRAPES,
    TO_DNS,
    TO_RUNTIME_API_SERVER,
    open_ports,
)
from pergola.garden.components.istio import EXPORTED
from pergola.garden.components.monitoring import prometheus_rule, record, rules
from pergola.garden.components.observability.conventions import (
    UNKNOWN_VERSION,
    application,
    exposed,
    host,
    volume_claim,
)
from pergola.garden.components.observability.prometheus_operator import PROMETHEUS_ROLE
from pergola.garden.components.priority_classes import P100
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import (
    account,
    disruption_budget,
    manifest,
    requests,
    selector,
    service,
    service_account,
    service_port,
    vertical_pod_autoscaler,
)

IMAGE: Final = "prometheus"
WEB_PORT: Final = 80
"""The port of the Service."""
PORT: Final = 9090
"""The port of the pods."""
FROM_SHOOTS: Final = {
    "networking.resources.gardener.cloud/namespace-selectors": orjson.dumps(
        [selector({"gardener.cloud/role": "shoot"})]
    ).decode()
}
"""The annotation of a Service that also accepts clients from the namespaces of Shoots."""

_API: Final = "monitoring.coreos.com/v1"
_RBAC: Final = "rbac.authorization.k8s.io"
_FILE: Final = "prometheus.yaml"
_SELECTED: Final = ("serviceMonitor", "podMonitor", "probe", "scrapeConfig", "rule")
_ITS_RULES: Final = '{rule_group=~".*;healthcheck"}'


@dataclass(frozen=True, slots=True, kw_only=True)
class Prometheus:
    """A Prometheus of the garden.

    Attributes:
        label: The label value of resources that belong to it, and the suffix of its name.
        size: The size of each volume.
        retention_size: The size of the data above which the oldest is dropped.
        pod_labels: Extra labels of its pods, which select network policies.
        spec: Extra fields of its spec.
        users_port: The port of the Service behind its public host.
        ports: Extra ports of the Service.
        scrapes: Extra scrape configurations, in the format of Prometheus' configuration file.
    """

    label: str
    size: str
    retention_size: str
    pod_labels: Mapping[str, str]
    spec: JsonObject
    users_port: int = WEB_PORT
    ports: Sequence[JsonObject] = ()
    scrapes: Sequence[JsonObject] = field(default_factory=tuple)

    @property
    def name(self) -> str:
        """The name of its Service and its ServiceAccount, and the first label of its host."""
        return f"prometheus-{self.label}"

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its objects."""
        return {"app": "prometheus", "name": self.label, "role": "monitoring"}


def prometheus_objects(instance: Prometheus, landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return a Prometheus with its permissions, its host and its autoscaler."""
    name, labels = instance.name, instance.labels
    return (
        service_account(name, NAMESPACE, labels),
        _binding(instance),
        _scrapes(instance),
        _prometheus(instance, landscape),
        _service(instance),
        disruption_budget(name, NAMESPACE, labels),
        _autoscaler(instance),
        *exposed(landscape, name, name, labels, instance.users_port),
    )


def health(label: str, *problems: JsonObject) -> JsonObject:
    """Return the rules with which a Prometheus reports its own problems.

    The metric `healthcheck` has one series per problem. The metric `healthcheck:up` is 1 if there
    are none; otherwise, it is 0 for each sort of problem.

    Args:
        problems: Extra rules, built by `problem`.
    """
    iterations = f"prometheus_rule_group_iterations_total{_ITS_RULES}"
    group = rules(
        "healthcheck",
        problem("target:down", "up == 0"),
        problem("scrape_pool:empty", "prometheus_target_scrape_pool_targets == 0"),
        problem("scrape:empty", "sum by (job) (scrape_samples_post_metric_relabeling) == 0"),
        problem("rule_evaluation:unknown_status", f"absent({iterations})"),
        problem("rule_evaluation:first_cycle", f"max_over_time({iterations}[5m]) == 0"),
        *problems,
        record(
            "healthcheck:up",
            "count by (task, job, scrape_job) (healthcheck) * 0 or on () vector(1)",
        ),
        interval="5s",
    )
    return prometheus_rule(label, "healthcheck", group)


def problem(task: str, expr: str) -> JsonObject:
    """Return a rule that reports a problem as long as its expression returns series."""
    return record("healthcheck", expr, task=task)


def _binding(instance: Prometheus) -> JsonObject:
    return manifest(
        f"{_RBAC}/v1",
        "ClusterRoleBinding",
        instance.name,
        labels=instance.labels,
        annotations={"resources.gardener.cloud/delete-on-invalid-update": "true"},
        roleRef={"apiGroup": _RBAC, "kind": "ClusterRole", "name": PROMETHEUS_ROLE},
        subjects=[account(instance.name, NAMESPACE)],
    )


def _scrapes(instance: Prometheus) -> JsonObject:
    content = dump(list(instance.scrapes)) if instance.scrapes else ""
    return manifest(
        "v1",
        "Secret",
        _scrapes_name(instance),
        namespace=NAMESPACE,
        labels=instance.labels,
        type="Opaque",
        data={_FILE: base64.b64encode(content.encode()).decode()},
    )


def _scrapes_name(instance: Prometheus) -> str:
    return f"{instance.name}-additional-scrape-configs"


def _prometheus(instance: Prometheus, landscape: Landscape) -> JsonObject:
    return manifest(
        _API,
        "Prometheus",
        instance.label,
        namespace=NAMESPACE,
        labels={**instance.labels, "health-check-by": "gardener-operator"},
        spec={**_spec(instance, landscape), **_selectors(instance), **instance.spec},
    )


def _spec(instance: Prometheus, landscape: Landscape) -> JsonObject:
    pod_labels = {
        **TO_DNS,
        **TO_RUNTIME_API_SERVER,
        **application(instance.name),
        **instance.pod_labels,
    }
    return {
        "additionalScrapeConfigs": {"name": _scrapes_name(instance), "key": _FILE},
        "evaluationInterval": "1m",
        "externalUrl": f"https://{host(landscape, instance.name)}",
        "image": landscape.image(IMAGE),
        "imagePullPolicy": "IfNotPresent",
        "podMetadata": {"labels": pod_labels},
        "priorityClassName": P100,
        "reloadStrategy": "HTTP",
        "replicas": 2,
        "resources": requests(cpu="300m", memory="1000Mi"),
        "retentionSize": instance.retention_size,
        "scrapeInterval": "1m",
        "scrapeTimeout": "50s",
        "securityContext": {"runAsUser": 0},
        "serviceAccountName": instance.name,
        "shards": 1,
        "storage": {"volumeClaimTemplate": volume_claim(landscape, "prometheus-db", instance.size)},
        "version": landscape.image_version(IMAGE) or UNKNOWN_VERSION,
        "web": {"maxConnections": 1024},
    }


def _selectors(instance: Prometheus) -> JsonObject:
    """Return the selectors of resources with the instance's label, in all namespaces."""
    labelled = selector({"prometheus": instance.label})
    return {
        **{f"{kind}Selector": labelled for kind in _SELECTED},
        **{f"{kind}NamespaceSelector": {} for kind in _SELECTED},
    }


def _service(instance: Prometheus) -> JsonObject:
    annotations = {
        **EXPORTED,
        **open_ports(GARDEN_SCRAPES, PORT),
        **open_ports(SEED_SCRAPES, PORT),
        **FROM_SHOOTS,
    }
    return service(
        instance.name,
        NAMESPACE,
        {"prometheus": instance.label},
        service_port("web", WEB_PORT, PORT),
        *instance.ports,
        labels=instance.labels,
        annotations=annotations,
    )


def _autoscaler(instance: Prometheus) -> JsonObject:
    return vertical_pod_autoscaler(
        instance.name,
        NAMESPACE,
        {"apiVersion": _API, "kind": "Prometheus", "name": instance.label},
        "prometheus",
        {"memory": "100M"},
        labels={**instance.labels, **application(instance.name)},
    )
