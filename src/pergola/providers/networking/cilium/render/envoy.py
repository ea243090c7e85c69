"""The proxy for policies of layer 7, beside the agent: it survives the agent's restarts."""

import hashlib
from typing import Final

import orjson

from pergola.api.objects import JsonObject
from pergola.providers.networking.cilium import ports
from pergola.providers.networking.cilium.render.parts import (
    CRITICAL_COMPONENT,
    LINUX,
    ON_EVERY_NODE,
    RUNTIME_DEFAULT,
    Images,
    app,
    capable,
    config_map_volume,
    env_of_pod,
    host_path,
    host_port,
    http_probe,
    loopback,
    mount,
    obj,
    requests,
    service_account,
    service_port,
)
from pergola.providers.networking.cilium.values import Values

NAME: Final = "cilium-envoy"
CONFIG: Final = "cilium-envoy-config"
SELECTOR: Final = {"k8s-app": NAME}
_SOCKETS: Final = "/var/run/cilium/envoy/sockets"
_FILE: Final = "bootstrap-config.json"
_XDS: Final = "xds-grpc-cilium"
_ADMIN: Final = "envoy-admin"
_DESTINATIONS: Final = ("ingress-cluster", "egress-cluster")
_HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TYPES: Final = "type.googleapis.com/envoy"


def envoy(values: Values, image: Images) -> list[JsonObject]:
    """The DaemonSet with its configuration, identity and the Service of its metrics."""
    text = orjson.dumps(bootstrap(values), option=orjson.OPT_SORT_KEYS).decode()
    return [
        service_account(NAME),
        obj("v1", "ConfigMap", CONFIG, data={_FILE: text}),
        _daemon_set(values, image, hashlib.sha256(text.encode()).hexdigest()),
        obj(
            "v1",
            "Service",
            NAME,
            labels=app(NAME),
            spec={
                "clusterIP": "None",
                "ipFamilyPolicy": "PreferDualStack",
                "selector": dict(SELECTOR),
                "ports": [service_port("envoy-metrics", ports.ENVOY_METRICS, "envoy-metrics")],
            },
        ),
    ]


def bootstrap(values: Values) -> JsonObject:
    """Envoy's own configuration: everything else comes from the agent through a socket."""
    return {
        "node": {"id": "host~127.0.0.1~no-id~localdomain", "cluster": "ingress-cluster"},
        "admin": {"address": _pipe("admin.sock")},
        "staticResources": {
            "clusters": [
                _cluster(_XDS, "xds.sock", http2=True),
                _cluster(_ADMIN, "admin.sock"),
                *(_destination(name, tls=tls) for name in _DESTINATIONS for tls in (False, True)),
            ],
            "listeners": [
                _listener("metrics", _any(values), ports.ENVOY_METRICS, "/metrics"),
                _listener("health", loopback(values), ports.ENVOY_HEALTH, "/healthz"),
            ],
        },
        "dynamicResources": {"cdsConfig": _from_agent(), "ldsConfig": _from_agent()},
        "bootstrapExtensions": [
            {
                "name": "envoy.bootstrap.internal_listener",
                "typedConfig": {
                    "@type": f"{_TYPES}.extensions.bootstrap.internal_listener.v3.InternalListener"
                },
            }
        ],
    }


def _any(values: Values) -> str:
    return "0.0.0.0" if values.ipv4 else "::"  # noqa: S104 - metrics are read from outside


def _pipe(name: str) -> JsonObject:
    return {"pipe": {"path": f"{_SOCKETS}/{name}"}}


def _from_agent() -> JsonObject:
    service = {"envoyGrpc": {"clusterName": _XDS}}
    source: JsonObject = {
        "apiType": "GRPC",
        "transportApiVersion": "V3",
        "grpcServices": [service],
        "setNodeOnFirstMessageOnly": True,
    }
    return {"apiConfigSource": source, "initialFetchTimeout": "30s", "resourceApiVersion": "V3"}


def _cluster(name: str, socket: str, *, http2: bool = False) -> JsonObject:
    found: JsonObject = {
        "name": name,
        "type": "STATIC",
        "connectTimeout": "2s",
        "loadAssignment": {
            "clusterName": name,
            "endpoints": [{"lbEndpoints": [{"endpoint": {"address": _pipe(socket)}}]}],
        },
    }
    if http2:
        options = {
            "@type": f"{_TYPES}.extensions.upstreams.http.v3.HttpProtocolOptions",
            "explicitHttpConfig": {"http2ProtocolOptions": {}},
        }
        found["typedExtensionProtocolOptions"] = {_HTTP_OPTIONS: options}
    return found


def _destination(name: str, *, tls: bool) -> JsonObject:
    """Where a packet wanted to go anyway; the agent's listeners pass it on by these names."""
    options: JsonObject = {
        "@type": f"{_TYPES}.extensions.upstreams.http.v3.HttpProtocolOptions",
        "commonHttpProtocolOptions": {"idleTimeout": "60s"},
        "useDownstreamProtocolConfig": {},
        **({"upstreamHttpProtocolOptions": {}} if tls else {}),
    }
    found: JsonObject = {
        "name": f"{name}-tls" if tls else name,
        "type": "ORIGINAL_DST",
        "lbPolicy": "CLUSTER_PROVIDED",
        "connectTimeout": "2s",
        "cleanupInterval": "2.500s",
        "circuitBreakers": {"thresholds": [{"maxRetries": 128}]},
        "typedExtensionProtocolOptions": {_HTTP_OPTIONS: options},
    }
    if tls:
        context = {"@type": "type.googleapis.com/cilium.UpstreamTlsWrapperContext"}
        found["transportSocket"] = {"name": "cilium.tls_wrapper", "typedConfig": context}
    return found


def _listener(name: str, address: str, number: int, path: str) -> JsonObject:
    """Passes one path on to Envoy's administration, which listens at a socket only."""
    prefix = "/stats/prometheus" if path == "/metrics" else "/ready"
    route = {"match": {"prefix": path}, "route": {"cluster": _ADMIN, "prefixRewrite": prefix}}
    router = {"@type": f"{_TYPES}.extensions.filters.http.router.v3.Router"}
    manager: JsonObject = {
        "@type": (
            f"{_TYPES}.extensions.filters.network.http_connection_manager.v3.HttpConnectionManager"
        ),
        "statPrefix": f"envoy-{name}-listener",
        "routeConfig": {
            "virtualHosts": [{"name": name, "domains": ["*"], "routes": [route]}],
        },
        "httpFilters": [{"name": "envoy.filters.http.router", "typedConfig": router}],
        "streamIdleTimeout": "300s",
    }
    chain: JsonObject = {
        "name": "envoy.filters.network.http_connection_manager",
        "typedConfig": manager,
    }
    return {
        "name": f"envoy-{name}-listener",
        "address": {"socketAddress": {"address": address, "portValue": number}},
        "filterChains": [{"filters": [chain]}],
    }


def _daemon_set(values: Values, image: Images, checksum: str) -> JsonObject:
    labels = {**app(NAME), **CRITICAL_COMPONENT}
    return obj(
        "apps/v1",
        "DaemonSet",
        NAME,
        labels=labels,
        spec={
            "selector": {"matchLabels": dict(SELECTOR)},
            "updateStrategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 2}},
            "template": {
                "metadata": {
                    "labels": labels,
                    "annotations": {"checksum/configmap-envoy": checksum},
                },
                "spec": _pod(values, image),
            },
        },
    )


def _pod(values: Values, image: Images) -> JsonObject:
    return {
        "hostNetwork": True,
        "restartPolicy": "Always",
        "priorityClassName": "system-node-critical",
        "serviceAccountName": NAME,
        "automountServiceAccountToken": False,
        "terminationGracePeriodSeconds": 1,
        "nodeSelector": LINUX,
        "tolerations": list(ON_EVERY_NODE),
        "securityContext": {
            "seccompProfile": RUNTIME_DEFAULT,
            "appArmorProfile": {"type": "Unconfined"},
        },
        "containers": [_container(values, image)],
        "volumes": [
            host_path("envoy-sockets", _SOCKETS, "DirectoryOrCreate"),
            host_path("envoy-artifacts", "/var/run/cilium/envoy/artifacts", "DirectoryOrCreate"),
            host_path("bpf-maps", "/sys/fs/bpf", "DirectoryOrCreate"),
            config_map_volume("envoy-config", CONFIG, defaultMode=0o400),
        ],
    }


def _container(values: Values, image: Images) -> JsonObject:
    return {
        "name": NAME,
        "image": image(NAME),
        "imagePullPolicy": "IfNotPresent",
        "command": ["/usr/bin/cilium-envoy-starter"],
        "args": [
            "--",
            "-c",
            f"/var/run/cilium/envoy/{_FILE}",
            "--base-id",
            "0",
            "--log-level",
            "debug" if values.debug else "info",
        ],
        "env": [
            env_of_pod("K8S_NODE_NAME", "spec.nodeName"),
            env_of_pod("CILIUM_K8S_NAMESPACE", "metadata.namespace"),
        ],
        "ports": [host_port("envoy-metrics", ports.ENVOY_METRICS)],
        "startupProbe": _probe(values, failureThreshold=105, periodSeconds=2),
        "livenessProbe": _probe(values, failureThreshold=10, periodSeconds=30, timeoutSeconds=5),
        "readinessProbe": _probe(values, failureThreshold=3, periodSeconds=30, timeoutSeconds=5),
        "resources": requests("20m", "64Mi"),
        "securityContext": capable("NET_ADMIN", "SYS_ADMIN", escalates=True),
        "terminationMessagePolicy": "FallbackToLogsOnError",
        "volumeMounts": [
            mount("envoy-sockets", _SOCKETS),
            mount("envoy-artifacts", "/var/run/cilium/envoy/artifacts", readOnly=True),
            mount("envoy-config", "/var/run/cilium/envoy/", readOnly=True),
            mount("bpf-maps", "/sys/fs/bpf", mountPropagation="HostToContainer"),
        ],
    }


def _probe(values: Values, **timing: int) -> JsonObject:
    return http_probe("/healthz", ports.ENVOY_HEALTH, host=loopback(values), **timing)
