"""The image names that a Garden's manifests use, and the images that they resolve to."""

import pytest

from pergola.sandbox.images.catalogue import CATALOGUE, resolve

RELEASES = "europe-docker.pkg.dev/gardener-project/releases"
PUBLIC = "europe-docker.pkg.dev/gardener-project/public"
REAL = {
    f"{RELEASES}/gardener/admission-controller:v1.130.0": "gardener-admission-controller",
    f"{RELEASES}/gardener/apiserver:v1.130.0": "gardener-apiserver",
    f"{RELEASES}/gardener/controller-manager:v1.130.0": "gardener-controller-manager",
    f"{RELEASES}/gardener/etcd-druid:v0.38.1": "etcd-druid",
    f"{RELEASES}/gardener/scheduler:v1.130.0": "gardener-scheduler",
    f"{RELEASES}/gardener/terminal-controller-manager:v0.39.0": "terminal-controller-manager",
    f"{PUBLIC}/gardener/etcdbrctl:v0.44.1": "etcd-backup-restore",
    "docker.io/envoyproxy/envoy:v1.37.0": "envoy",
    "quay.io/brancz/kube-rbac-proxy:v0.19.1": "kube-rbac-proxy",
    "quay.io/prometheus-operator/prometheus-config-reloader:v0.93.1": "prometheus-config-reloader",
    "quay.io/prometheus-operator/prometheus-operator:v0.93.1": "prometheus-operator",
    "quay.io/prometheus/alertmanager:v0.34.0": "alertmanager",
    "quay.io/prometheus/blackbox-exporter:v0.28.0": "blackbox-exporter",
    "quay.io/prometheus/prometheus:v3.14.0": "prometheus",
    "registry.k8s.io/autoscaling/vpa-admission-controller:1.7.1": "vpa-admission-controller",
    "registry.k8s.io/autoscaling/vpa-recommender:1.7.1": "vpa-recommender",
    "registry.k8s.io/autoscaling/vpa-updater:1.7.1": "vpa-updater",
    "registry.k8s.io/kube-apiserver:v1.31.1": "kube-apiserver",
    "registry.k8s.io/kube-controller-manager:v1.31.1": "kube-controller-manager",
    "registry.k8s.io/kube-state-metrics/kube-state-metrics:v2.20.0": "kube-state-metrics",
}
STAND_INS = {
    "gcr.io/istio-release/pilot:1.29.6-distroless": "istiod",
    "gcr.io/istio-release/proxyv2:1.29.6-distroless": "istio-proxy",
    f"{RELEASES}/gardener/resource-manager:v1.130.0": "gardener-resource-manager",
    f"{PUBLIC}/gardener/etcd-wrapper:v0.8.1": "etcd-wrapper",
    f"{PUBLIC}/3rd/alpine:3.21.3": "chown",
    f"{RELEASES}/3rd/credativ/plutono:v7.5.50": "plutono",
    f"{RELEASES}/3rd/credativ/vali:v2.2.36": "vali",
    f"{RELEASES}/3rd/fluent-operator/fluent-bit:v4.2.3": "fluent-bit",
    f"{RELEASES}/3rd/fluent-operator/fluent-operator:v3.7.0": "fluent-operator",
    f"{RELEASES}/3rd/opentelemetry-operator/opentelemetry-operator:v0.156.0": (
        "opentelemetry-operator"
    ),
    f"{RELEASES}/3rd/persesdev/perses-operator:v0.5.0": "perses-operator",
    f"{RELEASES}/3rd/victoriametrics/operator:v0.73.1": "victoria-operator",
    f"{RELEASES}/gardener/dashboard:1.85.0": "gardener-dashboard",
    f"{RELEASES}/gardener/ext-authz-server:v0.3.0": "ext-authz-server",
    f"{RELEASES}/gardener/fluent-bit-plugin:v1.6.0": "fluent-bit-plugin",
    f"{RELEASES}/gardener/gardener-discovery-server:v0.12.0": "gardener-discovery-server",
    f"{RELEASES}/gardener/metrics-exporter:0.45.0": "gardener-metrics-exporter",
    f"{RELEASES}/gardener/observability/opentelemetry-collector:v0.0.1": (
        "opentelemetry-collector"
    ),
    f"{RELEASES}/gardener/tune2fs:v0.71.0": "tune2fs",
    f"{RELEASES}/gardener/vali-curator:v0.71.0": "vali-curator",
    "busybox:latest": "busybox",
    "quay.io/cortexproject/cortex:v1.21.1": "cortex",
    "quay.io/kiwigrid/k8s-sidecar:2.10.1": "plutono-sidecar",
}


@pytest.mark.parametrize("image", REAL)
def test_an_image_of_a_garden_has_its_real_program(image: str) -> None:
    offer = resolve(image)

    assert offer is not None
    assert (offer.name, offer.stand_in) == (REAL[image], "")


@pytest.mark.parametrize("image", STAND_INS)
def test_an_image_without_its_real_program_has_a_description(image: str) -> None:
    offer = resolve(image)

    assert offer is not None
    assert offer.name == STAND_INS[image]
    assert len(offer.stand_in.split()) > 2


def test_every_image_has_a_version_and_a_source() -> None:
    assert all(offer.version.startswith("v") and offer.source for offer in CATALOGUE)
