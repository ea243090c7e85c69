"""The listeners and clusters that gateways get."""

from pergola.api.objects import JsonObject
from pergola.sandbox.istiod.clusters import CLUSTER
from pergola.sandbox.istiod.envoy import LISTENER, render
from pergola.sandbox.istiod.selection import Objects, Proxy

PROXY = Proxy("ingress", {"istio": "ingressgateway"})
HOST = "api.garden.svc.cluster.local"
META = {"name": "api", "namespace": "garden"}
GATEWAY: JsonObject = {
    "metadata": META,
    "spec": {
        "selector": {"istio": "ingressgateway"},
        "servers": [{"hosts": ["*"], "port": {"number": 443}, "tls": {"mode": "PASSTHROUGH"}}],
    },
}
VIRTUAL_SERVICE: JsonObject = {
    "metadata": META,
    "spec": {
        "gateways": ["api"],
        "tls": [
            {
                "match": [{"sniHosts": ["api.example.com"]}],
                "route": [{"destination": {"host": HOST, "port": {"number": 443}}}],
            }
        ],
    },
}


def rendered(**policy: object) -> tuple[JsonObject, JsonObject]:
    rule: JsonObject = {"metadata": META, "spec": {"host": HOST, "trafficPolicy": policy}}
    found = render(PROXY, Objects([GATEWAY], [VIRTUAL_SERVICE], [rule]))
    return found[LISTENER][0], found[CLUSTER][0]


def test_a_listener_routes_connections_by_server_name() -> None:
    listener, cluster = rendered()

    assert [f["name"] for f in listener["listener_filters"]] == [
        "envoy.filters.listener.tls_inspector"
    ]
    (chain,) = listener["filter_chains"]
    assert chain["filter_chain_match"] == {"server_names": ["api.example.com"]}
    assert chain["filters"][0]["typed_config"]["cluster"] == cluster["name"]
    assert cluster["name"] == f"outbound|443||{HOST}"


def test_a_traffic_policy_sets_how_clusters_connect() -> None:
    tcp = {
        "connectTimeout": "500ms",
        "maxConnectionDuration": "24h",
        "tcpKeepalive": {"time": "7200s", "interval": "75s", "probes": 3},
    }
    listener, cluster = rendered(connectionPool={"tcp": tcp}, loadBalancer={"simple": "RANDOM"})

    assert cluster["connect_timeout"] == "0.5s"
    assert cluster["lb_policy"] == "RANDOM"
    assert cluster["upstream_connection_options"]["tcp_keepalive"] == {
        "keepalive_time": 7200,
        "keepalive_interval": 75,
        "keepalive_probes": 3,
    }
    proxy = listener["filter_chains"][0]["filters"][0]["typed_config"]
    assert proxy["max_downstream_connection_duration"] == "86400s"


def test_a_gateway_without_routes_gets_nothing() -> None:
    assert render(PROXY, Objects([GATEWAY])) == {LISTENER: [], CLUSTER: []}
