"""Images that observe a Garden: Prometheus with its operator, exporters and proxies."""

from typing import Final

from pergola.sandbox.images.offer import Offer, Program
from pergola.sandbox.on_demand import (
    ALERTING,
    ALERTMANAGER,
    BLACKBOX_EXPORTER,
    KUBE_RBAC_PROXY,
    KUBE_STATE_METRICS,
    MONITORING,
    MONITORING_OPERATOR,
    PROBING,
    PROMETHEUS,
    PROMETHEUS_CONFIG_RELOADER,
    PROMETHEUS_OPERATOR,
    RBAC_PROXY,
    STATE_METRICS,
)

OBSERVERS: Final[tuple[Offer, ...]] = (
    Program(
        PROMETHEUS_OPERATOR,
        "quay.io/prometheus-operator/prometheus-operator",
        MONITORING_OPERATOR,
    ),
    Program(
        PROMETHEUS_CONFIG_RELOADER,
        "quay.io/prometheus-operator/prometheus-config-reloader",
        MONITORING_OPERATOR,
        also=(f"bin/{PROMETHEUS_CONFIG_RELOADER}",),
    ),
    Program(
        PROMETHEUS,
        "quay.io/prometheus/prometheus",
        MONITORING,
        aliases=("docker.io/prom/prometheus",),
        also=(f"bin/{PROMETHEUS}",),
    ),
    Program(
        ALERTMANAGER,
        "quay.io/prometheus/alertmanager",
        ALERTING,
        aliases=("docker.io/prom/alertmanager",),
        also=(f"bin/{ALERTMANAGER}",),
    ),
    Program(
        BLACKBOX_EXPORTER,
        "quay.io/prometheus/blackbox-exporter",
        PROBING,
        aliases=("docker.io/prom/blackbox-exporter",),
    ),
    Program(
        KUBE_STATE_METRICS, "registry.k8s.io/kube-state-metrics/kube-state-metrics", STATE_METRICS
    ),
    Program(
        KUBE_RBAC_PROXY,
        "quay.io/brancz/kube-rbac-proxy",
        RBAC_PROXY,
        aliases=("registry.k8s.io/kubebuilder/kube-rbac-proxy",),
    ),
)
