"""Istio's control plane, which only configures the gateway.

There are no sidecars, and objects are visible only in namespaces that they are exported to.
"""

from collections.abc import Iterator
from hashlib import sha256
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import monitoring
from pergola.garden.components.conventions import (
    FROM_WORLD,
    SEED_SCRAPES,
    TO_DNS,
    TO_RUNTIME_API_SERVER,
    open_ports,
    open_to_namespaces,
)
from pergola.garden.components.priority_classes import CRITICAL
from pergola.garden.components.service_mesh.permissions import ISTIOD, LABELS, NAMESPACE
from pergola.garden.landscape import NAMESPACE as GARDEN
from pergola.garden.landscape import Landscape
from pergola.kube.yaml import dump
from pergola.manifests import (
    config_map_volume,
    disruption_budget,
    empty_dir,
    env,
    from_pod,
    http_probe,
    manifest,
    mount,
    port,
    projected,
    requests,
    restricted,
    selector,
    service,
    service_account,
    service_port,
    spread,
    target_reference,
    vertical_pod_autoscaler,
)

IMAGE: Final = "istio-istiod"
XDS_PORT: Final = 15012
DOMAIN: Final = "cluster.local"
USER: Final = 1337
LOG_LEVEL: Final = "--log_output_level=default:info,ads:error"
ONLY_IN_GATEWAYS: Final = {"sidecar.istio.io/inject": "false"}

_WEBHOOK_PORT: Final = 10250
_METRICS_PORT: Final = 15014
_DEBUG_PORT: Final = 8080
_NOWHERE: Final = ["~"]
_METRICS: Final = (
    "galley_validation_(failed|passed)",
    "pilot_conflict_(inbound_listener|outbound_listener_.+_over_current_.+)",
    "pilot_(k8s_cfg_events|services|virt_services|proxy_convergence_time_bucket)",
    "pilot_total_xds_(internal_errors|rejects)",
    "pilot_xds(_pushes|_push_context_errors|_write_timeout|_[celr]ds_reject)?",
    "go_goroutines",
    "go_memstats_(alloc_bytes|heap_(alloc|inuse|sys)_bytes|stack_inuse_bytes)",
    "istio_build",
    "process_(cpu_seconds_total|open_fds|resident_memory_bytes|virtual_memory_bytes)",
)


def istiod(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the objects of the control plane, without its permissions."""
    mesh = _mesh()
    yield service_account(ISTIOD, NAMESPACE, LABELS)
    yield mesh
    yield _service()
    yield _deployment(landscape, sha256(mesh["data"]["mesh"].encode()).hexdigest())
    yield disruption_budget(ISTIOD, NAMESPACE, LABELS, available=1)
    yield _autoscaler()
    yield _validation()
    yield monitoring.service_monitor(
        monitoring.GARDEN,
        ISTIOD,
        LABELS,
        monitoring.endpoint("metrics", metrics=monitoring.kept_metrics(*_METRICS)),
        namespace=NAMESPACE,
    )


def _mesh() -> JsonObject:
    mesh: JsonObject = {
        "rootNamespace": NAMESPACE,
        "trustDomain": DOMAIN,
        "ingressControllerMode": "OFF",
        "accessLogFile": "/dev/stdout",
        "defaultConfig": {"discoveryAddress": f"{ISTIOD}.{NAMESPACE}.svc:{XDS_PORT}"},
        "defaultProviders": {"metrics": ["prometheus"]},
        "enablePrometheusMerge": True,
        "defaultServiceExportTo": _NOWHERE,
        "defaultVirtualServiceExportTo": _NOWHERE,
        "defaultDestinationRuleExportTo": _NOWHERE,
    }
    return manifest(
        "v1",
        "ConfigMap",
        "istio",
        namespace=NAMESPACE,
        labels=LABELS,
        data={"mesh": dump(mesh), "meshNetworks": dump({"networks": {}})},
    )


def _service() -> JsonObject:
    reached_from = open_to_namespaces(
        {"matchLabels": {"gardener.cloud/role": "istio-ingress"}},
        {
            "matchExpressions": [
                {"key": "handler.exposureclass.gardener.cloud/name", "operator": "Exists"}
            ]
        },
        {"matchLabels": {"kubernetes.io/metadata.name": GARDEN}},
    )
    return service(
        ISTIOD,
        NAMESPACE,
        LABELS,
        service_port("https-sds", XDS_PORT),
        service_port("https-webhook", 443, _WEBHOOK_PORT),
        service_port("metrics", _METRICS_PORT),
        labels=LABELS,
        annotations={
            **open_ports(SEED_SCRAPES, _METRICS_PORT),
            **open_ports(FROM_WORLD, _WEBHOOK_PORT),
            **reached_from,
        },
    )


def _deployment(landscape: Landscape, checksum: str) -> JsonObject:
    return manifest(
        "apps/v1",
        "Deployment",
        ISTIOD,
        namespace=NAMESPACE,
        labels=LABELS,
        spec={
            "replicas": 2,
            "revisionHistoryLimit": 2,
            "strategy": {"rollingUpdate": {"maxSurge": "100%", "maxUnavailable": "25%"}},
            "selector": selector(LABELS),
            "template": {
                "metadata": {
                    "labels": {**LABELS, **TO_DNS, **TO_RUNTIME_API_SERVER},
                    "annotations": {**ONLY_IN_GATEWAYS, "checksum/istio-config": checksum},
                },
                "spec": {
                    "priorityClassName": CRITICAL,
                    "serviceAccountName": ISTIOD,
                    "securityContext": {"fsGroup": USER},
                    "affinity": spread(LABELS),
                    "containers": [_container(landscape)],
                    "volumes": _volumes(),
                },
            },
        },
    )


def _container(landscape: Landscape) -> JsonObject:
    user = {"runAsUser": USER, "runAsGroup": USER, "runAsNonRoot": True}
    return {
        "name": "discovery",
        "image": landscape.image(IMAGE),
        "imagePullPolicy": "IfNotPresent",
        "args": [
            "discovery",
            f"--monitoringAddr=:{_METRICS_PORT}",
            f"--httpsAddr=:{_WEBHOOK_PORT}",
            "--grpcAddr=",
            LOG_LEVEL,
            f"--domain={DOMAIN}",
            "--keepaliveMaxServerConnectionAge=30m",
        ],
        "ports": [
            port("http-debug", _DEBUG_PORT),
            port("https-webhooks", _WEBHOOK_PORT),
            port("tls-xds", XDS_PORT),
            port("http-monitoring", _METRICS_PORT),
        ],
        "readinessProbe": http_probe(
            "/ready", _DEBUG_PORT, initialDelaySeconds=1, periodSeconds=3, timeoutSeconds=5
        ),
        "env": env(
            REVISION="default",
            CLUSTER_ID="Kubernetes",
            PILOT_CERT_PROVIDER=ISTIOD,
            PILOT_ENABLE_ANALYSIS="false",
            POD_NAME=from_pod("metadata.name"),
            POD_NAMESPACE=from_pod("metadata.namespace"),
            SERVICE_ACCOUNT=from_pod("spec.serviceAccountName"),
            GOMEMLIMIT={"resourceFieldRef": {"resource": "limits.memory"}},
            GOMAXPROCS={"resourceFieldRef": {"resource": "limits.cpu", "divisor": "1"}},
        ),
        "resources": requests(cpu="250m", memory="256Mi"),
        "securityContext": {**restricted(), **user},
        "volumeMounts": [
            mount("istio-token", "/var/run/secrets/tokens", readOnly=True),
            mount("local-certs", "/var/run/secrets/istio-dns"),
            mount("cacerts", "/etc/cacerts", readOnly=True),
            mount("istio-csr-dns-cert", "/var/run/secrets/istiod/tls", readOnly=True),
            mount("istio-csr-ca-configmap", "/var/run/secrets/istiod/ca", readOnly=True),
        ],
    }


def _volumes() -> list[JsonObject]:
    return [
        istio_token(),
        empty_dir("local-certs", medium="Memory"),
        _optional("cacerts", "cacerts"),
        _optional("istio-csr-dns-cert", "istiod-tls"),
        config_map_volume("istio-csr-ca-configmap", "istio-ca-root-cert", optional=True),
    ]


def _optional(name: str, secret: str) -> JsonObject:
    return {"name": name, "secret": {"secretName": secret, "optional": True}}


def istio_token() -> JsonObject:
    """Return the volume with the token that authenticates Istio's programs to istiod."""
    token = {"audience": "istio-ca", "expirationSeconds": 43200, "path": "istio-token"}
    return projected("istio-token", {"serviceAccountToken": token})


def _autoscaler() -> JsonObject:
    least = {"memory": "128Mi"}
    return vertical_pod_autoscaler(
        ISTIOD,
        NAMESPACE,
        target_reference("Deployment", ISTIOD),
        "discovery",
        least,
        labels=LABELS,
    )


def _validation() -> JsonObject:
    """Return the webhook configuration of istiod, which fills in the CA bundle itself."""
    groups = [
        f"{group}.istio.io" for group in ("security", "networking", "telemetry", "extensions")
    ]
    webhook = {
        "name": "rev.validation.istio.io",
        "admissionReviewVersions": ["v1"],
        "clientConfig": {"service": {"name": ISTIOD, "namespace": NAMESPACE, "path": "/validate"}},
        "failurePolicy": "Ignore",
        "rules": [
            {
                "apiGroups": groups,
                "apiVersions": ["*"],
                "operations": ["CREATE", "UPDATE"],
                "resources": ["*"],
            }
        ],
        "sideEffects": "None",
        "timeoutSeconds": 10,
    }
    return manifest(
        "admissionregistration.k8s.io/v1",
        "ValidatingWebhookConfiguration",
        ISTIOD,
        labels={**LABELS, "istio.io/rev": "default"},
        webhooks=[webhook],
    )
