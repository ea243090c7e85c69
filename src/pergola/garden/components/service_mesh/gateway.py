"""The pods of the ingress gateway, and their namespace."""

import re
from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.conventions import TO_DNS, terminates_tls, to_service
from pergola.garden.components.istio import (
    BASIC_AUTH_SERVER,
    INGRESS_NAMESPACE,
    INGRESS_PODS,
)
from pergola.garden.components.priority_classes import CRITICAL
from pergola.garden.components.service_mesh.istiod import (
    DOMAIN,
    LOG_LEVEL,
    ONLY_IN_GATEWAYS,
    USER,
    XDS_PORT,
    istio_token,
)
from pergola.garden.components.service_mesh.permissions import ISTIOD
from pergola.garden.components.service_mesh.permissions import NAMESPACE as CONTROL_PLANE
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.yaml import dump
from pergola.manifests import (
    config_map_volume,
    empty_dir,
    env,
    from_pod,
    http_probe,
    manifest,
    mount,
    requests,
    restricted,
    role,
    rule,
    selector,
    service_account,
)

IMAGE: Final = "istio-proxy"
NAME: Final = "istio-ingressgateway"
PODS: Final = {"app": NAME, **INGRESS_PODS}
LISTENER: Final = 9443
"""The port of the pods behind port 443."""
METRICS_PORT: Final = 15090
SCRAPED: Final = {"metrics-scrape-target": "true"}

CONTAINER: Final = "istio-proxy"
_ACCOUNT: Final = f"{NAME}-service-account"
_CONSIDERED: Final = "high-availability-config.resources.gardener.cloud/consider"
_ZONES: Final = "high-availability-config.resources.gardener.cloud/zones"
_REPLACED: Final = {
    "resources.gardener.cloud/delete-on-invalid-update": "true",
    "resources.gardener.cloud/deletion-propagation-on-invalid-update": "Orphan",
}
"""Replaces a Deployment with another selector; its pods stay until the new ones serve."""
LEAST_PER_ZONE: Final = 2
_VERSION: Final = re.compile(r"(\d+\.\d+)\.\d+")


def per_zone(landscape: Landscape, number: int) -> int:
    """Return a number of pods per zone times the number of zones, which is at least one."""
    return number * max(1, len(landscape.runtime.provider.zones))


def versioned(landscape: Landscape) -> dict[str, str]:
    """Return the labels of the pods' companions: those of the pods, and their version."""
    version = _version(landscape)
    return {**PODS, "app.kubernetes.io/version": version[0]} if version else {**PODS}


def _version(landscape: Landscape) -> re.Match[str] | None:
    """Return the version of the image, with the minor one as its group."""
    return _VERSION.match(landscape.image_version(IMAGE))


def mesh_namespace(landscape: Landscape, name: str, kind: str, **labels: str) -> JsonObject:
    """Return a namespace of Istio.

    Args:
        kind: The value of the label `gardener.cloud/role`.
    """
    return manifest(
        "v1",
        "Namespace",
        name,
        labels={
            "gardener.cloud/role": kind,
            "istio-injection": "disabled",
            "istio-operator-managed": "Reconcile",
            "pod-security.kubernetes.io/enforce": "baseline",
            _CONSIDERED: "true",
            **labels,
        },
        annotations={_ZONES: ",".join(landscape.runtime.provider.zones)},
    )


def gateway(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the namespace of the gateway, its pods and their permissions."""
    yield mesh_namespace(landscape, INGRESS_NAMESPACE, "istio-ingress", istio="ingressgateway")
    yield service_account(_ACCOUNT, INGRESS_NAMESPACE, versioned(landscape))
    yield from role(
        f"{NAME}-sds",
        INGRESS_NAMESPACE,
        [rule("", ["secrets"], ["get", "watch", "list"])],
        {"kind": "ServiceAccount", "name": _ACCOUNT},
        labels=PODS,
    )
    yield _deployment(landscape)


def _deployment(landscape: Landscape) -> JsonObject:
    return manifest(
        "apps/v1",
        "Deployment",
        NAME,
        namespace=INGRESS_NAMESPACE,
        labels=versioned(landscape),
        annotations=_REPLACED,
        spec={
            "replicas": per_zone(landscape, LEAST_PER_ZONE),
            "revisionHistoryLimit": 2,
            "selector": selector(PODS),
            "strategy": {"rollingUpdate": {"maxSurge": 1, "maxUnavailable": 0}},
            "template": {
                "metadata": {
                    "labels": _pod_labels(landscape),
                    "annotations": _pod_annotations(),
                },
                "spec": {
                    "priorityClassName": CRITICAL,
                    "serviceAccountName": _ACCOUNT,
                    "securityContext": {
                        "fsGroup": USER,
                        "runAsGroup": USER,
                        "runAsNonRoot": True,
                        "runAsUser": USER,
                    },
                    "containers": [_proxy(landscape)],
                    "volumes": _volumes(),
                },
            },
        },
    )


def _pod_labels(landscape: Landscape) -> dict[str, str]:
    version = _version(landscape)
    revision = {"service.istio.io/canonical-revision": version[1]} if version else {}
    return {
        **PODS,
        **TO_DNS,
        **to_service(f"{CONTROL_PLANE}-{ISTIOD}", XDS_PORT),
        **to_service(f"{NAMESPACE}-{BASIC_AUTH_SERVER}", 10000),
        "service.istio.io/canonical-name": NAME,
        **revision,
    }


def _pod_annotations() -> dict[str, str]:
    config: JsonObject = {
        "protocolDetectionTimeout": "100ms",
        "runtimeValues": {
            "overload.global_downstream_max_connections": "750000",
            # Connections whose streams are mostly reset at once are closed (CVE-2023-44487).
            "overload.premature_reset_total_stream_count": "100",
            "overload.premature_reset_min_stream_lifetime_seconds": "1",
        },
    }
    return {
        **ONLY_IN_GATEWAYS,
        "sidecar.istio.io/statsEvictionInterval": "6m",
        "proxy.istio.io/config": dump(config),
    }


def _proxy(landscape: Landscape) -> JsonObject:
    owner = f"kubernetes://apis/apps/v1/namespaces/{INGRESS_NAMESPACE}/deployments/{NAME}"
    return {
        "name": CONTAINER,
        "image": landscape.image(IMAGE),
        "imagePullPolicy": "IfNotPresent",
        "args": [
            "proxy",
            "router",
            f"--domain={INGRESS_NAMESPACE}.svc.{DOMAIN}",
            "--proxyLogLevel=info",
            "--proxyComponentLogLevel=misc:error",
            LOG_LEVEL,
        ],
        "ports": [{"containerPort": LISTENER, "protocol": "TCP"}],
        "readinessProbe": http_probe(
            "/healthz/ready",
            15021,
            failureThreshold=30,
            initialDelaySeconds=1,
            periodSeconds=2,
            successThreshold=1,
            timeoutSeconds=1,
        ),
        "env": env(
            PILOT_CERT_PROVIDER=ISTIOD,
            CA_ADDR=f"{ISTIOD}.{CONTROL_PLANE}.svc:{XDS_PORT}",
            NODE_NAME=from_pod("spec.nodeName"),
            POD_NAME=from_pod("metadata.name"),
            POD_NAMESPACE=from_pod("metadata.namespace"),
            INSTANCE_IP=from_pod("status.podIP"),
            HOST_IP=from_pod("status.hostIP"),
            SERVICE_ACCOUNT=from_pod("spec.serviceAccountName"),
            ISTIO_CPU_LIMIT={"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}},
            ISTIO_META_CLUSTER_ID="Kubernetes",
            ISTIO_META_MESH_ID=DOMAIN,
            ISTIO_META_NODE_NAME=from_pod("spec.nodeName"),
            ISTIO_META_OWNER=owner,
            ISTIO_META_UNPRIVILEGED_POD="true",
            ISTIO_META_WORKLOAD_NAME=NAME,
            TRUST_DOMAIN=DOMAIN,
        ),
        "resources": requests(cpu="1" if terminates_tls(landscape) else "300m", memory="600Mi"),
        "securityContext": {**restricted(), "privileged": False},
        "volumeMounts": [
            mount("workload-socket", "/var/run/secrets/workload-spiffe-uds"),
            mount("credential-socket", "/var/run/secrets/credential-uds"),
            mount("workload-certs", "/var/run/secrets/workload-spiffe-credentials"),
            mount("istio-envoy", "/etc/istio/proxy"),
            mount("istio-data", "/var/lib/istio/data"),
            mount("istio-token", "/var/run/secrets/tokens", readOnly=True),
            mount("istiod-ca-cert", "/var/run/secrets/istio"),
            mount("podinfo", "/etc/istio/pod"),
        ],
    }


def _volumes() -> list[JsonObject]:
    info = [
        {"path": name, "fieldRef": {"fieldPath": f"metadata.{name}"}}
        for name in ("labels", "annotations")
    ]
    return [
        empty_dir("workload-socket"),
        empty_dir("credential-socket"),
        empty_dir("workload-certs"),
        empty_dir("istio-envoy"),
        empty_dir("istio-data"),
        istio_token(),
        config_map_volume("istiod-ca-cert", "istio-ca-root-cert"),
        {"name": "podinfo", "downwardAPI": {"items": info}},
    ]
