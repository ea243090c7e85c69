"""Settings of the gateway's Envoy that Istio's own resources cannot express.

When it terminates TLS for the API server it is an authenticating proxy: it verifies client
certificates and passes the client's identity in headers. It must therefore drop such headers from
incoming requests.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.kinds import ENVOY_FILTER
from pergola.api.objects import JsonObject
from pergola.garden.components.istio import INGRESS_NAMESPACE
from pergola.garden.components.service_mesh.gateway import LISTENER, NAME, PODS
from pergola.garden.landscape import Landscape
from pergola.manifests import manifest

AUTHENTICATED_HOST: Final = "authenticated-kube-apiserver-host"
"""The key of the metadata that marks requests with a client certificate, by their host."""
LUA: Final = "envoy.filters.http.lua"

_MANAGER: Final = "envoy.filters.network.http_connection_manager"
_ROUTER: Final = "envoy.filters.http.router"
_TYPES: Final = "type.googleapis.com/envoy.extensions.filters"
_KEEPALIVE_SECONDS: Final = 55
_SOL_SOCKET, _SO_KEEPALIVE = 1, 9
_IPPROTO_TCP, _TCP_KEEPIDLE, _TCP_KEEPINTVL = 6, 4, 5

_AUTHENTICATE: Final = f"""\
local claims = "^x%-remote%-"

local function drop_claims(headers)
  local found = {{}}
  for name, _ in pairs(headers) do
    if string.lower(name):find(claims) then
      found[#found + 1] = name
    end
  end
  for _, name in ipairs(found) do
    headers:remove(name)
  end
end

function envoy_on_request(handle)
  local headers = handle:headers()
  drop_claims(headers)

  -- Without these, the gateway would end watches after 15 seconds.
  headers:replace("x-envoy-upstream-rq-timeout-ms", "0")
  headers:replace("x-envoy-upstream-rq-per-try-timeout-ms", "0")

  local info = handle:streamInfo()
  local connection = info:downstreamSslConnection()
  local subject = connection and connection:parsedSubjectPeerCertificate()
  if not subject then
    return
  end
  local user = subject:commonName()
  if user == "" then
    handle:respond({{[":status"] = "400"}}, "the client certificate has no common name")
    return
  end
  headers:add("X-Remote-User", user)
  for _, group in ipairs(subject:organizationName()) do
    if group ~= "" then
      headers:add("X-Remote-Group", group)
    end
  end
  info:dynamicMetadata():set("{LUA}", "{AUTHENTICATED_HOST}", info:requestedServerName())
end
"""
_HSTS: Final = """\
function envoy_on_response(handle)
  handle:headers():replace("strict-transport-security", "max-age=31536000")
end
"""
_MISDIRECTED: Final = """\
local function host_of(authority)
  return string.lower(authority):gsub(":%d+$", ""):gsub("%.$", "")
end

-- Browsers send requests for all hosts of a wildcard certificate over one connection, which has
-- routes for one of them only. 421 makes them open another one.
function envoy_on_request(handle)
  local server = handle:streamInfo():requestedServerName()
  local authority = handle:headers():get(":authority")
  if server == "" or not authority then
    return
  end
  local requested = host_of(authority)
  if requested ~= host_of(server) then
    handle:respond({[":status"] = "421"}, "this connection is for another host")
  end
end
"""


def filters(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield the EnvoyFilters that this Garden needs."""
    yield _filter(NAME, PODS, *_limits(), *_keepalive())
    yield _filter("hsts", PODS, _before_router(LUA, {"inlineCode": _HSTS}))
    yield _filter(
        "misdirected-requests", {}, _before_router("envoy.lua", {"inlineCode": _MISDIRECTED})
    )
    if landscape.feature_gates.get("IstioTLSTermination", False):
        code = {"defaultSourceCode": {"inlineString": _AUTHENTICATE}}
        yield _selected("apiserver-tls-termination", _before_router(LUA, code))
        yield _filter("strip-trailing-dot", PODS, _without_dot())
    proxy_protocol = landscape.runtime.settings.load_balancer_services.proxy_protocol
    if proxy_protocol and proxy_protocol.allowed:
        yield _selected("proxy-protocol-sni", _proxy_protocol())


def _filter(name: str, labels: Mapping[str, str], *patches: JsonObject) -> JsonObject:
    return manifest(
        ENVOY_FILTER.api_version,
        ENVOY_FILTER.kind,
        name,
        namespace=INGRESS_NAMESPACE,
        labels=labels,
        spec={"configPatches": list(patches)},
    )


def _selected(name: str, *patches: JsonObject) -> JsonObject:
    made = _filter(name, PODS, *patches)
    made["spec"]["workloadSelector"] = {"labels": PODS}
    return made


def _before_router(name: str, config: JsonObject) -> JsonObject:
    manager = {"name": _MANAGER, "subFilter": {"name": _ROUTER}}
    typed = {"@type": f"{_TYPES}.http.lua.v3.Lua", **config}
    return {
        "applyTo": "HTTP_FILTER",
        "match": {
            "context": "GATEWAY",
            "listener": {"portNumber": LISTENER, "filterChain": {"filter": manager}},
        },
        "patch": {
            "operation": "INSERT_BEFORE",
            "value": {"name": name, "typed_config": typed},
        },
    }


def _manager(match: JsonObject, **settings: object) -> JsonObject:
    config = {"@type": f"{_TYPES}.network.http_connection_manager.v3.HttpConnectionManager"}
    return {
        "applyTo": "NETWORK_FILTER",
        "match": {**match, "listener": {"filterChain": {"filter": {"name": _MANAGER}}}},
        "patch": {"operation": "MERGE", "value": {"typed_config": {**config, **settings}}},
    }


def _listener(**settings: object) -> JsonObject:
    return {
        "applyTo": "LISTENER",
        "match": {"context": "GATEWAY", "listener": {"portNumber": LISTENER}},
        "patch": {"operation": "MERGE", "value": dict(settings)},
    }


def _limits() -> Iterator[JsonObject]:
    """Yield the patches that limit the memory one client can take."""
    http2 = {
        "max_concurrent_streams": 100,
        "initial_stream_window_size": 64 * 1024,
        "initial_connection_window_size": 1024 * 1024,
    }
    yield _manager({"context": "GATEWAY"}, http2_protocol_options=http2)
    yield _listener(per_connection_buffer_limit_bytes=32 * 1024)


def _keepalive() -> Iterator[JsonObject]:
    """Yield the patch that keeps idle connections alive through load balancers that drop them."""
    options = (
        (_SOL_SOCKET, _SO_KEEPALIVE, 1),
        (_IPPROTO_TCP, _TCP_KEEPIDLE, _KEEPALIVE_SECONDS),
        (_IPPROTO_TCP, _TCP_KEEPINTVL, _KEEPALIVE_SECONDS),
    )
    rendered = [
        {"level": level, "name": name, "int_value": value, "state": "STATE_LISTENING"}
        for level, name, value in options
    ]
    yield _listener(socket_options=rendered)


def _without_dot() -> JsonObject:
    """Return the patch that accepts host names with a trailing dot."""
    return _manager({}, strip_trailing_host_dot=True)


def _proxy_protocol() -> JsonObject:
    """Return the patch that reads the client's address from the PROXY protocol."""
    accepted = {
        "name": "proxy_protocol",
        "typed_config": {
            "@type": f"{_TYPES}.listener.proxy_protocol.v3.ProxyProtocol",
            "allow_requests_without_proxy_protocol": True,
        },
    }
    inspector = {
        "name": "envoy.filters.listener.tls_inspector",
        "typed_config": {"@type": f"{_TYPES}.listener.tls_inspector.v3.TlsInspector"},
    }
    return _listener(listener_filters=[accepted, inspector])
