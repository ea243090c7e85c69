"""The bootstrap configuration of the proxy (Envoy's `Bootstrap` message)."""

from typing import Final

from pergola.api.objects import JsonObject, JsonValue
from pergola.providers.networking.cilium import ports
from pergola.providers.networking.cilium.render.agent_volumes import ENVOY_SOCKETS as SOCKETS
from pergola.providers.networking.cilium.render.pods import loopback
from pergola.providers.networking.cilium.values import Values

_XDS: Final = "xds-grpc-cilium"
_ADMIN: Final = "/envoy-admin"
_DESTINATIONS: Final = ("ingress-cluster", "egress-cluster")
_HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
_TYPES: Final = "type.googleapis.com/envoy"
# The limits that `cilium-config` sets for clusters that the agent makes.
_LIMITS: Final = {"maxConnections": 1024, "maxRequests": 1024, "maxRetries": 128}
_MOST_CONNECTIONS: Final = "50000"


def bootstrap(values: Values) -> JsonObject:
    """Return Envoy's initial configuration; the agent sends the rest through a socket."""
    return {
        "node": {"id": "host~127.0.0.1~no-id~localdomain", "cluster": "ingress-cluster"},
        "admin": {"address": _pipe("admin.sock", mode=0o660)},
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
        "overloadManager": {"resourceMonitors": [_connection_limit()]},
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


def _pipe(name: str, **options: JsonValue) -> JsonObject:
    return {"pipe": {"path": f"{SOCKETS}/{name}", **options}}


def _connection_limit() -> JsonObject:
    kind = "downstream_connections.v3.DownstreamConnectionsConfig"
    return {
        "name": "envoy.resource_monitors.global_downstream_max_connections",
        "typedConfig": {
            "@type": f"{_TYPES}.extensions.resource_monitors.{kind}",
            "max_active_downstream_connections": _MOST_CONNECTIONS,
        },
    }


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
    """Return a cluster that keeps the destination of a packet; the agent's listeners name it."""
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
        "circuitBreakers": {"thresholds": [dict(_LIMITS)]},
        "typedExtensionProtocolOptions": {_HTTP_OPTIONS: options},
    }
    if tls:
        context = {"@type": "type.googleapis.com/cilium.UpstreamTlsWrapperContext"}
        found["transportSocket"] = {"name": "cilium.tls_wrapper", "typedConfig": context}
    return found


def _listener(name: str, address: str, number: int, path: str) -> JsonObject:
    """Return a listener that exposes one path of Envoy's admin socket."""
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
