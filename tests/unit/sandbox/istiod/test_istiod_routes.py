"""The routes that a gateway gets from Gateways and VirtualServices."""

from pergola.api.objects import JsonObject
from pergola.sandbox.istiod.routes import Destination, Route, listeners
from pergola.sandbox.istiod.selection import Objects, Proxy

PROXY = Proxy("ingress", {"istio": "ingressgateway", "app": "gateway"})
API = "api.garden.svc.cluster.local"


def gateway(
    *hosts: str, mode: str = "PASSTHROUGH", selector: dict[str, str] | None = None
) -> JsonObject:
    server = {"hosts": list(hosts), "port": {"number": 443}, "tls": {"mode": mode}}
    return {
        "metadata": {"name": "api", "namespace": "garden"},
        "spec": {"selector": selector or {"istio": "ingressgateway"}, "servers": [server]},
    }


def virtual_service(
    *names: str, host: str = API, name: str = "api", created: str = "", **spec: object
) -> JsonObject:
    rule = {
        "match": [{"port": 443, "sniHosts": list(names)}],
        "route": [{"destination": {"host": host, "port": {"number": 443}}}],
    }
    return {
        "metadata": {"name": name, "namespace": "garden", "creationTimestamp": created},
        "spec": {"gateways": ["api"], "tls": [rule], **spec},
    }


def routes(*objects: JsonObject, gateways: list[JsonObject] | None = None) -> list[Route]:
    found = listeners(PROXY, Objects(gateways=gateways or [gateway("*")], virtual_services=objects))
    return found.get(443, [])


def test_a_server_name_is_routed_to_its_service() -> None:
    assert routes(virtual_service("api.example.com")) == [
        Route(("api.example.com",), (Destination(API, 443, 1),))
    ]


def test_the_name_of_a_service_is_completed_in_the_namespace_of_its_virtual_service() -> None:
    (found,) = routes(virtual_service("api.example.com", host="api"))

    assert found.destinations == (Destination(API, 443, 1),)


def test_a_wildcard_routes_all_names() -> None:
    (found,) = routes(virtual_service("*"))

    assert found.names == ()


def test_a_gateway_applies_to_the_pods_that_it_selects() -> None:
    others = gateway("*", selector={"istio": "other"})

    assert routes(virtual_service("api.example.com"), gateways=[others]) == []


def test_a_server_that_terminates_tls_has_no_routes_by_server_name() -> None:
    terminating = gateway("*", mode="SIMPLE")

    assert routes(virtual_service("api.example.com"), gateways=[terminating]) == []


def test_only_names_that_the_gateway_admits_are_routed() -> None:
    gateways = [gateway("*.example.com", "other/*.example.org", "garden/api.example.net")]
    names = ("api.example.com", "api.example.org", "api.example.net", "example.com")

    (found,) = routes(virtual_service(*names), gateways=gateways)

    assert found.names == ("api.example.com", "api.example.net")


def test_a_virtual_service_applies_where_it_is_exported() -> None:
    def is_routed(*export_to: str) -> bool:
        return bool(routes(virtual_service("api.example.com", exportTo=list(export_to))))

    assert is_routed()
    assert is_routed("*")
    assert is_routed("ingress")
    assert not is_routed("elsewhere")
    assert not is_routed(".")


def test_a_virtual_service_names_gateways_of_its_own_or_another_namespace() -> None:
    def is_routed(name: str) -> bool:
        return bool(routes(virtual_service("api.example.com", gateways=[name])))

    assert is_routed("api")
    assert is_routed("garden/api")
    assert is_routed("./api")
    assert not is_routed("elsewhere/api")
    assert not is_routed("mesh")


def test_the_older_of_two_virtual_services_wins_a_name() -> None:
    young = virtual_service("api.example.com", name="a", host="young.svc", created="2026-02-01")
    old = virtual_service("api.example.com", name="b", host="old.svc", created="2026-01-01")

    (found,) = routes(young, old)

    assert found.destinations[0].host == "old.svc"


def test_pods_listen_on_the_target_port_of_their_service() -> None:
    service: JsonObject = {
        "metadata": {"name": "gateway", "namespace": "ingress"},
        "spec": {"selector": {"app": "gateway"}, "ports": [{"port": 443, "targetPort": 9443}]},
    }
    objects = Objects([gateway("*")], [virtual_service("api.example.com")], (), [service])

    assert list(listeners(PROXY, objects)) == [9443]


def test_weights_divide_connections_between_destinations() -> None:
    split = virtual_service("api.example.com")
    split["spec"]["tls"][0]["route"] = [
        {"destination": {"host": "a.svc", "port": {"number": 443}}, "weight": 90},
        {"destination": {"host": "b.svc", "port": {"number": 443}}, "weight": 10},
    ]

    (found,) = routes(split)

    assert [(d.host, d.weight) for d in found.destinations] == [("a.svc", 90), ("b.svc", 10)]
