"""VirtualServices, their Gateways, and the Gateways' pods, around Services."""

from collections.abc import Sequence
from typing import Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pergola.api.objects import JsonObject, Key

_API_VERSION: Final = "networking.istio.io/v1beta1"
_HOMES: Final = ("gateways", "gateways-2")
"""The namespaces of the Gateways' pods, one for each Gateway."""
_DOMAIN: Final = ".svc.cluster.local"


def mesh(services: Sequence[JsonObject]) -> SearchStrategy[list[JsonObject]]:
    """Return objects of Istio that send traffic to some Services.

    All Gateways exist and select pods, and routes name ports and whole hosts: see decision 563.
    """
    several = st.lists(_virtual_services(services), min_size=1, max_size=2)
    parts = st.tuples(several, st.lists(st.booleans(), min_size=2, max_size=2))
    return parts.map(lambda found: _objects(found[0], found[1], services))


def _virtual_services(services: Sequence[JsonObject]) -> SearchStrategy[JsonObject]:
    keys = [Key.of(service) for service in services]
    host = st.sampled_from([*keys, *keys, Key("other", "web")]).flatmap(
        lambda key: st.sampled_from(
            [f"{key.name}.{key.namespace}{_DOMAIN}"] * 3
            + [f"{key.name}.{key.namespace}", f"{key.name}{_DOMAIN}", "example.com"]
        )
    )
    route = st.builds(_route, host, st.sampled_from([*_numbers(services), 9999]))
    protocols = st.dictionaries(
        st.sampled_from(["http", "tls", "tcp"]), st.lists(route, max_size=2), max_size=2
    )
    gateways = st.lists(st.sampled_from([*_HOMES, "own"]), max_size=3, unique=True)
    namespaces = st.sampled_from([key.namespace for key in keys])
    return st.builds(
        lambda namespace, named, spec: {"namespace": namespace, "gateways": named, "spec": spec},
        namespaces,
        gateways,
        protocols,
    )


def _numbers(services: Sequence[JsonObject]) -> list[int]:
    """Return the ports that are not those of two protocols, which no gateway can tell apart."""
    found = [[port["port"] for port in service["spec"]["ports"]] for service in services]
    return sorted({n for ports in found for n in ports if all(each.count(n) < 2 for each in found)})


def _route(host: str, number: int) -> JsonObject:
    return {"route": [{"destination": {"host": host, "port": {"number": number}}}]}


def _objects(
    virtual: Sequence[JsonObject], present: Sequence[bool], services: Sequence[JsonObject]
) -> list[JsonObject]:
    """Return all objects; a Gateway in a VirtualService's namespace has the first one's pods."""
    found = [_virtual_service(number, each) for number, each in enumerate(virtual)]
    for number, home in enumerate(_HOMES):
        found += [_namespace(home), _gateway(home, home, number)]
        found += [_pod(home, number)] * present[number]
    namespaces = sorted({Key.of(service).namespace for service in services})
    return [*found, *(_gateway("own", namespace, 0) for namespace in namespaces)]


def _virtual_service(number: int, parts: JsonObject) -> JsonObject:
    named = [name if name == "own" else f"{name}/{name}" for name in parts["gateways"]]
    return {
        "apiVersion": _API_VERSION,
        "kind": "VirtualService",
        "metadata": {"name": f"virtual-{number}", "namespace": parts["namespace"]},
        "spec": {"gateways": named, **parts["spec"]},
    }


def _gateway(name: str, namespace: str, number: int) -> JsonObject:
    return {
        "apiVersion": _API_VERSION,
        "kind": "Gateway",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": _labels(number)},
    }


def _pod(namespace: str, number: int) -> JsonObject:
    metadata = {"name": "gateway", "namespace": namespace, "labels": _labels(number)}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": metadata}


def _labels(number: int) -> JsonObject:
    return {"istio": f"ingress-{number}", "app": "gateway"}


def _namespace(name: str) -> JsonObject:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name, "labels": {}}}
