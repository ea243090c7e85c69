"""Changes of a gateway's configuration by EnvoyFilters."""

from base64 import b64encode
from datetime import UTC, datetime, timedelta
from typing import Any, Final

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.pki import Authority
from pergola.sandbox.istiod.clusters import CLUSTER
from pergola.sandbox.istiod.envoy import LISTENER, problems, render
from pergola.sandbox.istiod.patches import unsupported
from pergola.sandbox.istiod.selection import Objects, Proxy

NOW, DAY = datetime(2026, 1, 1, tzinfo=UTC), timedelta(days=1)
PAIR = Authority.create("test", NOW, DAY).issue_server("web", ["web.example.com"], NOW, DAY)
SECRETS = {
    Key("ingress", "web"): {
        "tls.crt": b64encode(PAIR.public).decode(),
        "tls.key": b64encode(PAIR.private).decode(),
    }
}
PROXY = Proxy("ingress", {"istio": "ingressgateway"})
META = {"name": "web", "namespace": "garden"}
GATEWAY: JsonObject = {
    "metadata": META,
    "spec": {
        "selector": {"istio": "ingressgateway"},
        "servers": [
            {
                "hosts": ["web.example.com"],
                "port": {"name": "tls", "number": 443, "protocol": "HTTPS"},
                "tls": {"mode": "SIMPLE", "credentialName": "web"},
            }
        ],
    },
}
VIRTUAL_SERVICE: JsonObject = {
    "metadata": META,
    "spec": {
        "gateways": ["web"],
        "hosts": ["web.example.com"],
        "http": [
            {"name": "upgrade", "match": [{"uri": {"prefix": "/exec"}}], "route": []},
            {"route": [{"destination": {"host": "web", "port": {"number": 443}}}]},
        ],
    },
}
MANAGER: Final = "envoy.filters.network.http_connection_manager"
ROUTER: Final = "envoy.filters.http.router"
WEB: Final = "outbound|443||web.garden.svc.cluster.local"


def envoy_filter(
    *patches: JsonObject, name: str = "a", namespace: str = "ingress", **spec: Any
) -> JsonObject:
    meta = {"name": name, "namespace": namespace}
    return {"metadata": meta, "spec": {"configPatches": list(patches), **spec}}


def patch(kind: str, operation: str, value: JsonObject, **match: Any) -> JsonObject:
    return {
        "applyTo": kind,
        "match": {"context": "GATEWAY", **match},
        "patch": {"operation": operation, "value": value},
    }


def before_router(name: str, **chain: str) -> JsonObject:
    manager = {"name": MANAGER, "subFilter": {"name": ROUTER}}
    listener = {"portNumber": 443, "filterChain": {"filter": manager, **chain}}
    return patch("HTTP_FILTER", "INSERT_BEFORE", {"name": name}, listener=listener)


def rendered(*filters: JsonObject) -> tuple[JsonObject, dict[str, JsonObject]]:
    """Return the listener, and the clusters by name."""
    objects = Objects([GATEWAY], [VIRTUAL_SERVICE], envoy_filters=filters, secrets=SECRETS)
    found = render(PROXY, objects)
    [listener] = found[LISTENER]
    return listener, {each["name"]: each for each in found[CLUSTER]}


def manager_of(listener: JsonObject) -> JsonObject:
    config: JsonObject = listener["filter_chains"][0]["filters"][0]["typed_config"]
    return config


def http_filters(*filters: JsonObject) -> list[str]:
    listener, _ = rendered(*filters)
    return [each["name"] for each in manager_of(listener)["http_filters"]]


def routes(*filters: JsonObject) -> list[JsonObject]:
    listener, _ = rendered(*filters)
    [host] = manager_of(listener)["route_config"]["virtual_hosts"]
    found: list[JsonObject] = host["routes"]
    return found


def test_filters_are_placed_before_another_by_priority_and_name() -> None:
    late = envoy_filter(before_router("late"), priority=1)
    early = envoy_filter(before_router("one"), before_router("two"), name="b")

    assert http_filters(late, early) == ["one", "two", "late", ROUTER]


def test_a_filter_without_a_neighbour_is_the_first() -> None:
    listener = {"filterChain": {"filter": {"name": MANAGER}}}
    first = patch("HTTP_FILTER", "INSERT_BEFORE", {"name": "first"}, listener=listener)

    assert http_filters(envoy_filter(before_router("other"), first)) == ["first", "other", ROUTER]


@pytest.mark.parametrize(
    "foreign",
    [
        envoy_filter(before_router("x"), namespace="other"),
        envoy_filter(before_router("x"), workloadSelector={"labels": {"istio": "other"}}),
        envoy_filter(before_router("x", sni="other.example.com")),
        envoy_filter({**before_router("x"), "match": {"context": "SIDECAR_INBOUND"}}),
        envoy_filter(
            patch("HTTP_FILTER", "INSERT_BEFORE", {"name": "x"}, listener={"portNumber": 80})
        ),
    ],
    ids=["namespace", "workload", "server-name", "context", "port"],
)
def test_patches_for_other_gateways_are_ignored(foreign: JsonObject) -> None:
    assert http_filters(foreign) == [ROUTER]


def test_patches_of_the_root_namespace_and_for_a_server_name_apply() -> None:
    own = envoy_filter(before_router("own", sni="web.example.com"))
    root = envoy_filter(before_router("root"), namespace="istio-system")

    assert http_filters(own, root) == ["root", "own", ROUTER]


def test_messages_are_merged_field_by_field() -> None:
    chain = {"filterChain": {"filter": {"name": MANAGER}}}
    settings = {"typed_config": {"http2ProtocolOptions": {"maxConcurrentStreams": 100}}}
    listener, _ = rendered(
        envoy_filter(
            patch("LISTENER", "MERGE", {"listener_filters": [{"name": "proxy_protocol"}]}),
            patch("NETWORK_FILTER", "MERGE", settings, listener=chain),
        )
    )

    names = [each["name"] for each in listener["listener_filters"]]
    assert names == ["envoy.filters.listener.tls_inspector", "proxy_protocol"]
    assert manager_of(listener)["http2_protocol_options"] == {"max_concurrent_streams": 100}
    assert manager_of(listener)["use_remote_address"] is True


def test_a_message_of_another_type_replaces_the_other() -> None:
    value = {"typed_config": {"@type": "other"}}
    chain = {"filterChain": {"filter": {"name": "envoy.filters.network.tcp_proxy"}}}
    passing = {**GATEWAY["spec"]["servers"][0], "tls": {"mode": "PASSTHROUGH"}}
    gateway = {**GATEWAY, "spec": {**GATEWAY["spec"], "servers": [passing]}}
    route = {"destination": {"host": "web", "port": {"number": 443}}}
    rule = {"match": [{"sniHosts": ["web.example.com"]}], "route": [route]}
    service = {"metadata": META, "spec": {"gateways": ["web"], "tls": [rule]}}
    found = envoy_filter(patch("NETWORK_FILTER", "MERGE", value, listener=chain))

    [listener] = render(PROXY, Objects([gateway], [service], envoy_filters=[found]))[LISTENER]

    [network] = listener["filter_chains"][0]["filters"]
    assert network["typed_config"] == {"@type": "other"}


def test_routes_are_inserted_and_changed_by_name() -> None:
    configuration = {"name": "https.443.tls.web.garden"}
    named = {**configuration, "vhost": {"route": {"name": "upgrade"}}}
    inserted = patch(
        "HTTP_ROUTE", "INSERT_BEFORE", {"name": "new"}, routeConfiguration=configuration
    )
    changed = patch("HTTP_ROUTE", "MERGE", {"metadata": {"x": "y"}}, routeConfiguration=named)
    other = patch("HTTP_ROUTE", "MERGE", {"name": "lost"}, routeConfiguration={"name": "other"})

    found = routes(envoy_filter(inserted, changed, other))

    assert [each.get("name") for each in found] == ["new", "upgrade", None]
    assert [each.get("metadata") for each in found] == [None, {"x": "y"}, None]


def test_patches_change_clusters_by_name_and_add_new_ones() -> None:
    asked = "outbound|10000||auth.garden.svc.cluster.local"
    value = {"name": "ext_authz", "typed_config": {"grpc_service": {"cluster_name": asked}}}
    _, clusters = rendered(
        envoy_filter(
            patch("CLUSTER", "MERGE", {"connectTimeout": "1s"}, cluster={"name": WEB}),
            patch("HTTP_FILTER", "INSERT_BEFORE", value),
        )
    )

    assert {name: each["connect_timeout"] for name, each in clusters.items()} == {
        WEB: "1s",
        asked: "10s",
    }


def test_a_named_cluster_without_its_certificate_is_reported() -> None:
    asked = "outbound|10000||auth.garden.svc.cluster.local"
    value = {"name": "ext_authz", "cluster_name": asked}
    spec = {"host": "auth", "trafficPolicy": {"tls": {"mode": "SIMPLE", "credentialName": "no"}}}
    objects = Objects(
        [GATEWAY],
        [VIRTUAL_SERVICE],
        [{"metadata": META, "spec": spec}],
        envoy_filters=[envoy_filter(patch("HTTP_FILTER", "INSERT_BEFORE", value))],
        secrets=SECRETS,
    )

    [problem] = problems(PROXY, objects)

    assert problem.startswith("DestinationRule of auth.garden.svc.cluster.local: ")


@pytest.mark.parametrize(("name", "speaks"), [("grpc", True), ("http2-x", True), ("tls", False)])
def test_the_name_of_a_port_enables_http2(name: str, speaks: bool) -> None:
    service = {"metadata": META, "spec": {"ports": [{"name": name, "port": 443}]}}
    objects = Objects([GATEWAY], [VIRTUAL_SERVICE], services=[service], secrets=SECRETS)

    [cluster] = render(PROXY, objects)[CLUSTER]

    assert ("typed_extension_protocol_options" in cluster) == speaks


def test_patches_without_an_effect_are_reported() -> None:
    value: JsonObject = {}
    found = envoy_filter(
        patch("LISTENER", "MERGE", value),
        patch("HTTP_FILTER", "REMOVE", value),
        patch("EXTENSION_CONFIG", "ADD", value),
    )

    assert unsupported(found) == {"REMOVE of HTTP_FILTER", "ADD of EXTENSION_CONFIG"}
