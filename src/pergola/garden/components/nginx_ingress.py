"""nginx-ingress: serves Ingresses of the runtime cluster, behind its gateway (spec 20 §13)."""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.bundle import make_unique
from pergola.bundle.references import Reference, reference_annotations
from pergola.garden.components import istio, task_names
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.components.conventions import (
    TO_DNS,
    TO_RUNTIME_API_SERVER,
    open_to_namespaces,
    to_service,
)
from pergola.garden.components.istio import EXPORTED
from pergola.garden.components.priority_classes import P300
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import (
    READ,
    account,
    cluster_role,
    disruption_budget,
    env,
    flag,
    from_pod,
    http_probe,
    manifest,
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

NAME: Final = "nginx-ingress"
LEASE: Final = "ingress-controller-seed-leader"
APP: Final = {"app": NAME}

_PREFIX: Final = f"gardener.cloud:seed:{NAME}"
_RBAC: Final = "rbac.authorization.k8s.io"
_LEASES: Final = "coordination.k8s.io"


def permissions() -> Iterator[JsonObject]:
    """Yield the roles, and their bindings."""
    subject = account(NAME, NAMESPACE)
    yield from cluster_role(_PREFIX, _everywhere(), subject, labels=APP)
    yield manifest(
        f"{_RBAC}/v1",
        "Role",
        f"{_PREFIX}:role",
        namespace=NAMESPACE,
        labels=APP,
        rules=_own_namespace(),
    )
    yield manifest(
        f"{_RBAC}/v1",
        "RoleBinding",
        f"{_PREFIX}:role-binding",
        namespace=NAMESPACE,
        labels=APP,
        roleRef={"apiGroup": _RBAC, "kind": "Role", "name": f"{_PREFIX}:role"},
        subjects=[subject],
    )


def _everywhere() -> list[JsonObject]:
    return [
        rule("", ["endpoints", "nodes", "pods", "secrets"], ["list", "watch"]),
        rule("", ["nodes"], ["get"]),
        rule("", ["services", "configmaps"], [*READ, "update"]),
        rule("", ["events"], ["create", "patch"]),
        rule("networking.k8s.io", ["ingresses", "ingressclasses"], READ),
        rule("networking.k8s.io", ["ingresses/status"], ["update"]),
        rule(_LEASES, ["leases"], ["list", "watch"]),
        rule("discovery.k8s.io", ["endpointslices"], READ),
    ]


def _own_namespace() -> list[JsonObject]:
    return [
        rule("", ["configmaps", "namespaces", "pods", "secrets"], ["get"]),
        rule("", ["endpoints"], ["create", "get", "update"]),
        rule(_LEASES, ["leases"], ["get", "update"], [LEASE]),
        rule(_LEASES, ["leases"], ["create"]),
        rule("discovery.k8s.io", ["endpointslices"], READ),
    ]


CONTROLLER: Final = "nginx-ingress-controller"
BACKEND: Final = "nginx-ingress-k8s-backend"
CLASS: Final = "nginx-ingress-gardener"
LABELS: Final = {**APP, "component": "controller"}
HTTPS: Final = 443

_BACKEND_LABELS: Final = {**APP, "component": BACKEND}
_RELEASE: Final = {"release": "addons"}
_HTTP: Final = 80
_HEALTH_PORT: Final = 10254
_BACKEND_PORT: Final = 8080
_SKIPPED: Final = {"seccompprofile.resources.gardener.cloud/skip": "true"}
"""Opts out of the default seccomp profile, which denies system calls that isolate nginx."""


def controller(landscape: Landscape, config: str) -> Iterator[JsonObject]:
    """Yield the ingress controller.

    Args:
        config: The name of its ConfigMap.
    """
    yield service_account(NAME, NAMESPACE, APP)
    yield _controller_service(landscape)
    # The controller reads its configuration from the API server: no volume refers to it.
    annotations = reference_annotations([Reference("configmap", config)])
    metadata = {"labels": _controller_labels(), "annotations": annotations}
    yield _deployment(CONTROLLER, LABELS, metadata, _controller_pod(landscape, config))
    yield disruption_budget(CONTROLLER, NAMESPACE, LABELS, available=1)
    yield vertical_pod_autoscaler(
        CONTROLLER,
        NAMESPACE,
        target_reference("Deployment", CONTROLLER),
        CONTROLLER,
        {"memory": "100Mi"},
    )
    yield manifest(
        "networking.k8s.io/v1",
        "IngressClass",
        CLASS,
        labels=LABELS,
        spec={"controller": f"k8s.io/{CLASS}"},
    )


def backend(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the default backend."""
    yield service(
        BACKEND,
        NAMESPACE,
        _BACKEND_LABELS,
        {"port": _HTTP, "protocol": "TCP", "targetPort": _BACKEND_PORT},
        labels=_BACKEND_LABELS,
    )
    metadata = {"labels": {**_BACKEND_LABELS, **_RELEASE}}
    yield _deployment(BACKEND, _BACKEND_LABELS, metadata, _backend_pod(landscape), replicas=1)


def _controller_service(landscape: Landscape) -> JsonObject:
    ingress = {"matchLabels": {"gardener.cloud/role": "istio-ingress"}}
    return service(
        CONTROLLER,
        NAMESPACE,
        LABELS,
        service_port("http", _HTTP),
        service_port("https", HTTPS),
        labels=LABELS,
        annotations={
            **landscape.runtime.settings.load_balancer_services.annotations,
            **EXPORTED,
            **open_to_namespaces(ingress),
        },
    )


def _controller_labels() -> dict[str, str]:
    backend = to_service(BACKEND, _BACKEND_PORT)
    return {**LABELS, **_RELEASE, **TO_DNS, **TO_RUNTIME_API_SERVER, **backend, **_SKIPPED}


def _deployment(
    name: str,
    labels: Mapping[str, str],
    metadata: JsonObject,
    pod: JsonObject,
    *,
    replicas: int = 2,
) -> JsonObject:
    return manifest(
        "apps/v1",
        "Deployment",
        name,
        namespace=NAMESPACE,
        labels=labels,
        annotations=metadata.get("annotations"),
        spec={
            "replicas": replicas,
            "revisionHistoryLimit": 2,
            "selector": selector({**labels, **_RELEASE}),
            "template": {"metadata": metadata, "spec": pod},
        },
    )


def _controller_pod(landscape: Landscape, config: str) -> JsonObject:
    return {
        "priorityClassName": P300,
        "serviceAccountName": NAME,
        "terminationGracePeriodSeconds": 60,
        "containers": [
            {
                "name": CONTROLLER,
                "image": landscape.image(CONTROLLER),
                "imagePullPolicy": "IfNotPresent",
                "args": _arguments(config),
                "env": env(
                    POD_NAME=from_pod("metadata.name"), POD_NAMESPACE=from_pod("metadata.namespace")
                ),
                "ports": [port("http", _HTTP), port("https", HTTPS)],
                "livenessProbe": _probe(),
                "readinessProbe": _probe(),
                "resources": {
                    **requests(cpu="100m", memory="375Mi"),
                    "limits": {"memory": "1500Mi"},
                },
                "securityContext": {
                    "runAsNonRoot": True,
                    "runAsUser": 101,
                    "allowPrivilegeEscalation": True,
                    "capabilities": {"drop": ["ALL"], "add": ["NET_BIND_SERVICE", "SYS_CHROOT"]},
                    "seccompProfile": {"type": "Unconfined"},
                },
            }
        ],
    }


def _arguments(config: str) -> list[str]:
    return [
        "/nginx-ingress-controller",
        f"--configmap={NAMESPACE}/{config}",
        f"--default-backend-service={NAMESPACE}/{BACKEND}",
        f"--publish-service={NAMESPACE}/{CONTROLLER}",
        f"--election-id={LEASE}",
        f"--ingress-class={CLASS}",
        f"--controller-class=k8s.io/{CLASS}",
        "--annotations-prefix=nginx.ingress.kubernetes.io",
        "--enable-annotation-validation=true",
        "--enable-ssl-passthrough=true",
        "--update-status=true",
    ]


def _probe() -> JsonObject:
    return http_probe(
        "/healthz",
        _HEALTH_PORT,
        failureThreshold=3,
        initialDelaySeconds=40,
        periodSeconds=10,
        successThreshold=1,
        timeoutSeconds=1,
    )


def _backend_pod(landscape: Landscape) -> JsonObject:
    return {
        "priorityClassName": P300,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 60,
        "securityContext": {"runAsNonRoot": True, "runAsUser": 65534, "fsGroup": 65534},
        "containers": [
            {
                "name": BACKEND,
                "image": landscape.image("ingress-default-backend"),
                "imagePullPolicy": "IfNotPresent",
                "ports": [{"containerPort": _BACKEND_PORT, "protocol": "TCP"}],
                "livenessProbe": http_probe(
                    "/healthy", _BACKEND_PORT, initialDelaySeconds=30, timeoutSeconds=5
                ),
                "resources": {
                    **requests(cpu="20m", memory="20Mi"),
                    "limits": {"memory": "100Mi"},
                },
                "securityContext": {"allowPrivilegeEscalation": False},
            }
        ],
    }


GATE: Final = "DisableNginxIngressInGarden"

_DEFAULTS: Final = {
    "enable-vts-status": "false",
    "server-name-hash-bucket-size": "256",
    "use-proxy-protocol": "false",
    "worker-processes": "2",
    "allow-snippet-annotations": "false",
    "annotations-risk-level": "Critical",
}
"""The default settings of nginx; all Ingresses are the garden's own, so all are trusted."""


def absent(landscape: Landscape) -> str | None:
    """Return why the Garden has no ingress controller, or None if it has one."""
    if landscape.feature_gates.get(GATE, True):
        return f"feature gate {GATE} is on"
    return None


def configuration(landscape: Landscape) -> dict[str, str]:
    """Return the settings of nginx: the defaults, overridden by those in the Garden."""
    given = landscape.runtime.ingress.controller.provider_config or {}
    return _DEFAULTS | {name: _text(value) for name, value in given.items()}


def _text(value: object) -> str:
    return flag(value) if isinstance(value, bool) else str(value)


def render(landscape: Landscape) -> Rendered:
    """Return the controller, the default backend, and the routes to it."""
    config = make_unique(
        manifest(
            "v1",
            "ConfigMap",
            CONTROLLER,
            namespace=NAMESPACE,
            labels=LABELS,
            data=configuration(landscape),
        )
    )
    objects = (
        config,
        *permissions(),
        *controller(landscape, name_of(config)),
        *backend(landscape),
        *_routes(landscape),
        _lease(),
    )
    return Rendered(managed=(Managed(name=NAME, objects=objects),))


def _routes(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the routes from the gateway, one per domain because domains may overlap."""
    hosts = [f"*.{domain.name}" for domain in landscape.runtime.ingress.domains]
    yield istio.gateway(CONTROLLER, LABELS, istio.tls_server(hosts))
    yield istio.destination_rule(CONTROLLER, LABELS, CONTROLLER)
    for index, host in enumerate(hosts):
        yield istio.tls_route(
            f"{CONTROLLER}-{index}", LABELS, [host], CONTROLLER, HTTPS, gateway=CONTROLLER
        )


def _lease() -> JsonObject:
    """Return the Lease of the leader election, which is deleted with the controller."""
    return manifest(
        "coordination.k8s.io/v1",
        "Lease",
        LEASE,
        namespace=NAMESPACE,
        annotations={"resources.gardener.cloud/ignore": "true"},
    )


NGINX_INGRESS: Final = Component(
    name=NAME,
    deploy=task_names.NGINX_INGRESS,
    absent=absent,
    render=render,
    limit=120.0,
)
