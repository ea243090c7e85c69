"""The identities of all observability objects match existing landscapes (§16.8)."""

import re
from typing import Final

from pergola.api.objects import JsonObject, Key, map_at
from pergola.garden.components.component import Managed, Target
from pergola.garden.components.observability.catalog import OBSERVABILITY
from tests.support.garden import landscape

WILDCARD: Final[JsonObject] = {
    "metadata": {"name": "wildcard", "namespace": "garden"},
    "data": {"tls.crt": "Y3J0", "tls.key": "a2V5"},
}
IDENTITIES: Final = {
    "fluent-operator": {
        "ClusterRole gardener.cloud:logging:fluent-operator",
        "ClusterRoleBinding fluent-operator",
        "Deployment garden/fluent-operator",
        "Role garden/gardener.cloud:logging:fluent-operator",
        "RoleBinding garden/gardener.cloud:logging:fluent-operator",
        "ServiceAccount garden/fluent-operator",
        "VerticalPodAutoscaler garden/fluent-operator",
    },
    "fluent-operator-custom-resources-garden": {
        "ClusterFilter addons-nginx-ingress-controller",
        "ClusterFilter etcd--backup-restore",
        "ClusterFilter etcd--etcd",
        "ClusterFilter gardener-resource-manager",
        "ClusterFilter kube-apiserver--kube-apiserver",
        "ClusterFilter kube-controller-manager",
        "ClusterFilter kube-state-metrics",
        "ClusterFilter systemd-containerd",
        "ClusterFilter systemd-kubelet",
        "ClusterFilter vali--curator",
        "ClusterFilter vali--vali",
        "ClusterFilter victoria-logs--vlsingle",
        "ClusterFilter virtual-garden-istio-basic-auth-server",
        "ClusterFilter vpa",
        "ClusterInput systemd-containerd",
        "ClusterInput systemd-kubelet",
        "ClusterOutput opentelemetry",
        "ClusterParser backup-restore-parser",
        "ClusterParser curator-parser",
        "ClusterParser etcd-parser",
        "ClusterParser gardener-resource-manager-parser",
        "ClusterParser kube-apiserver-parser",
        "ClusterParser kube-controller-manager-parser",
        "ClusterParser kube-state-metrics-parser",
        "ClusterParser vali-parser",
        "ClusterParser virtual-garden-istio-basic-auth-server-parser",
        "ClusterParser vlsingle-parser",
        "ClusterParser vpa-parser",
    },
    "fluent-bit": {
        "ClusterFilter 01-systemd",
        "ClusterFilter 02-add-tag-to-record",
        "ClusterFilter zz-modify-severity",
        "ClusterFluentBitConfig fluent-bit-config",
        "ClusterInput tail-kubernetes",
        "ClusterOutput systemd",
        "ClusterParser containerd-parser",
        "ConfigMap garden/fluent-bit-lua-config",
        "FluentBit garden/fluent-bit-c6dcd",
        "PrometheusRule garden/aggregate-fluent-bit",
        "ServiceMonitor garden/aggregate-fluent-bit",
        "ServiceMonitor garden/aggregate-fluent-bit-output-plugin",
    },
    "vali": {
        "ConfigMap garden/vali-config-*",
        "PrometheusRule garden/aggregate-vali",
        "Service garden/logging",
        "ServiceMonitor garden/aggregate-vali",
        "StatefulSet garden/vali",
        "VerticalPodAutoscaler garden/vali-vpa",
    },
    "prometheus-operator": {
        "ClusterRole prometheus",
        "ClusterRole prometheus-operator",
        "ClusterRoleBinding prometheus-operator",
        "Deployment garden/prometheus-operator",
        "Role garden/prometheus-shoot",
        "Service garden/prometheus-operator",
        "ServiceAccount garden/prometheus-operator",
        "VerticalPodAutoscaler garden/prometheus-operator",
    },
    "opentelemetry-operator": {
        "ClusterRole opentelemetry-operator",
        "ClusterRoleBinding opentelemetry-operator",
        "Deployment garden/opentelemetry-operator",
        "Role garden/opentelemetry-operator",
        "RoleBinding garden/opentelemetry-operator",
        "ServiceAccount garden/opentelemetry-operator",
        "VerticalPodAutoscaler garden/opentelemetry-operator",
    },
    "opentelemetry-collector": {
        "OpenTelemetryCollector garden/opentelemetry-collector",
        "ServiceAccount garden/opentelemetry-collector",
        "ServiceMonitor garden/garden-opentelemetry-collector",
        "VerticalPodAutoscaler garden/opentelemetry-collector",
    },
    "perses-operator": {
        "ClusterRole perses-operator",
        "ClusterRoleBinding perses-operator",
        "Deployment garden/perses-operator",
        "ServiceAccount garden/perses-operator",
        "VerticalPodAutoscaler garden/perses-operator",
    },
    "victoria-operator": {
        "ClusterRole victoria-operator",
        "ClusterRoleBinding victoria-operator",
        "Deployment garden/victoria-operator",
        "PodDisruptionBudget garden/victoria-operator",
        "ServiceAccount garden/victoria-operator",
        "VerticalPodAutoscaler garden/victoria-operator",
    },
    "alertmanager-garden": {
        "Alertmanager garden/garden",
        "DestinationRule garden/virtual-garden-alertmanager-garden",
        "Gateway garden/virtual-garden-alertmanager-garden",
        "PodDisruptionBudget garden/alertmanager-garden",
        "Secret virtual-garden-istio-ingress/garden-alertmanager-garden-wildcard",
        "Service garden/alertmanager-garden",
        "VerticalPodAutoscaler garden/alertmanager-garden",
        "VirtualService garden/virtual-garden-alertmanager-garden",
    },
    "prometheus-garden": {
        "ClusterRoleBinding prometheus-garden",
        "DestinationRule garden/virtual-garden-prometheus-garden",
        "Gateway garden/virtual-garden-prometheus-garden",
        "PodDisruptionBudget garden/prometheus-garden",
        "Prometheus garden/garden",
        "PrometheusRule garden/garden-auditlog",
        "PrometheusRule garden/garden-etcd",
        "PrometheusRule garden/garden-garden",
        "PrometheusRule garden/garden-healthcheck",
        "PrometheusRule garden/garden-metering-meta",
        "PrometheusRule garden/garden-recording",
        "PrometheusRule garden/garden-seed",
        "PrometheusRule garden/garden-shoot",
        "ScrapeConfig garden/garden-prometheus-garden",
        "Secret garden/prometheus-garden-additional-scrape-configs",
        "Secret virtual-garden-istio-ingress/garden-prometheus-garden-wildcard",
        "Service garden/prometheus-garden",
        "ServiceAccount garden/prometheus-garden",
        "ServiceMonitor garden/garden-alertmanager-garden",
        "VerticalPodAutoscaler garden/prometheus-garden",
        "VirtualService garden/virtual-garden-prometheus-garden",
    },
    "prometheus-garden-target": {
        "ClusterRole gardener.cloud:monitoring:prometheus-garden",
        "ClusterRoleBinding gardener.cloud:monitoring:prometheus-garden",
    },
    "prometheus-longterm": {
        "ClusterRoleBinding prometheus-longterm",
        "ConfigMap garden/prometheus-longterm-cortex-*",
        "DestinationRule garden/virtual-garden-prometheus-longterm",
        "Gateway garden/virtual-garden-prometheus-longterm",
        "PodDisruptionBudget garden/prometheus-longterm",
        "Prometheus garden/longterm",
        "PrometheusRule garden/longterm-healthcheck",
        "PrometheusRule garden/longterm-recording",
        "PrometheusRule garden/longterm-sla",
        "ScrapeConfig garden/longterm-cortex-frontend",
        "ScrapeConfig garden/longterm-prometheus-garden",
        "ScrapeConfig garden/longterm-prometheus-longterm",
        "Secret garden/prometheus-longterm-additional-scrape-configs",
        "Secret virtual-garden-istio-ingress/garden-prometheus-longterm-wildcard",
        "Service garden/prometheus-longterm",
        "ServiceAccount garden/prometheus-longterm",
        "VerticalPodAutoscaler garden/prometheus-longterm",
        "VirtualService garden/virtual-garden-prometheus-longterm",
    },
    "blackbox-exporter": {
        "ConfigMap garden/blackbox-exporter-config-*",
        "Deployment garden/blackbox-exporter",
        "PodDisruptionBudget garden/blackbox-exporter",
        "ScrapeConfig garden/garden-blackbox-apiserver",
        "ScrapeConfig garden/garden-blackbox-dashboard",
        "ScrapeConfig garden/garden-blackbox-gardener-apiserver",
        "Service garden/blackbox-exporter",
        "ServiceAccount garden/blackbox-exporter",
        "VerticalPodAutoscaler garden/blackbox-exporter",
    },
    "kube-state-metrics-runtime": {
        "ClusterRole gardener.cloud:monitoring:kube-state-metrics-runtime",
        "ClusterRoleBinding gardener.cloud:monitoring:kube-state-metrics-runtime",
        "ConfigMap garden/kube-state-metrics-custom-resource-state-*",
        "Deployment garden/kube-state-metrics-runtime",
        "PodDisruptionBudget garden/kube-state-metrics-pdb-runtime",
        "ScrapeConfig garden/garden-kube-state-metrics",
        "Service garden/kube-state-metrics-runtime",
        "ServiceAccount garden/kube-state-metrics-runtime",
        "VerticalPodAutoscaler garden/kube-state-metrics-vpa-runtime",
    },
    "plutono": {
        "ConfigMap garden/plutono-dashboard-providers-*",
        "ConfigMap garden/plutono-datasources",
        "Deployment garden/plutono",
        "DestinationRule garden/virtual-garden-plutono-garden",
        "Gateway garden/virtual-garden-plutono-garden",
        "Role garden/plutono-data-refresher",
        "RoleBinding garden/plutono-data-refresher",
        "Secret garden/plutono-config-*",
        "Secret virtual-garden-istio-ingress/garden-plutono-wildcard",
        "Service garden/plutono",
        "ServiceAccount garden/plutono",
        "VirtualService garden/virtual-garden-plutono-garden",
    },
}
"""By ManagedResource; a hash at the end of a name is a `*`."""


def managed() -> dict[str, Managed]:
    shared = landscape(wildcard_certificate=WILDCARD)
    present = [each for each in OBSERVABILITY if each.absent(shared) is None]
    found = (each for one in present for each in one.objects(shared).managed)
    return {each.name: each for each in found}


def identity(obj: JsonObject) -> str:
    key = Key.of(obj)
    name = re.sub(r"-[0-9a-f]{8}$", "-*", key.name)
    return f"{obj['kind']} {key.namespace}/{name}" if key.namespace else f"{obj['kind']} {name}"


def test_objects_have_the_identities_of_existing_landscapes() -> None:
    found = {name: {identity(obj) for obj in each.objects} for name, each in managed().items()}
    assert found == IDENTITIES


def test_only_the_role_of_the_garden_prometheus_is_in_the_virtual_cluster() -> None:
    virtual = [name for name, each in managed().items() if each.target is Target.VIRTUAL]
    assert virtual == ["prometheus-garden-target"]


def test_all_but_two_managed_resources_count_for_the_observability_condition() -> None:
    others = {name for name, each in managed().items() if not each.condition}
    assert others == {"fluent-operator", "opentelemetry-operator"}


def test_all_pods_have_the_lowest_priority() -> None:
    for each in managed().values():
        for obj in each.objects:
            if obj["kind"] in {"Deployment", "StatefulSet"}:
                pod = map_at(obj, "spec", "template", "spec")
                assert pod["priorityClassName"] == "gardener-garden-system-100"
            if obj["kind"] in {"Prometheus", "Alertmanager", "FluentBit"}:
                assert map_at(obj, "spec")["priorityClassName"] == "gardener-garden-system-100"
