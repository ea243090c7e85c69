"""Routes of connections from a node's processes."""

from pathlib import Path
from typing import cast

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.manifests import manifest, service, service_port
from pergola.sandbox.process_node.observe import Observed
from pergola.sandbox.process_node.place import Place
from pergola.sandbox.process_node.routes import Endpoint, Routes

LABELS = {"app": "api"}
ADDRESS = "127.80.1.2"
PUBLIC = "api.garden.example.org"


def pod(name: str, labels: dict[str, str], ip: str) -> JsonObject:
    container = {"name": "c", "ports": [{"name": "https", "containerPort": 443}]}
    owner = {"kind": "ReplicaSet", "name": name, "controller": True}
    return manifest(
        "v1",
        "Pod",
        f"{name}-1",
        namespace="garden",
        labels=labels,
        spec={"containers": [container]},
    ) | {"metadata": _owned(name, labels, owner), "status": {"podIP": ip}}


def _owned(name: str, labels: dict[str, str], owner: JsonObject) -> JsonObject:
    return {
        "name": f"{name}-1",
        "namespace": "garden",
        "labels": labels,
        "ownerReferences": [owner],
        "resourceVersion": "1",
    }


@pytest.fixture
def routes() -> Routes:
    places = {Key("garden", "api"): Place(Path("/here"), ADDRESS)}
    return Routes(observed_services(), places)


def observed_services() -> Observed:
    """Return a Service with a pod, an idle one, one elsewhere, and a gateway to the first."""
    observed = Observed(cast("Client", None), "garden")  # caches that are not run
    api = service("api", "garden", LABELS, service_port("https", 8443, "https"))
    api["spec"]["clusterIP"] = "10.0.0.7"
    idle = service("idle", "garden", {"app": "idle"}, service_port("https", 443))
    route = {"route": [{"destination": {"host": "api", "port": {"number": 8443}}}]}
    public = manifest(
        "networking.istio.io/v1beta1",
        "VirtualService",
        "api",
        namespace="garden",
        spec={"hosts": [PUBLIC], "tls": [route]},
    )
    elsewhere = manifest(
        "v1",
        "Service",
        "elsewhere",
        namespace="garden",
        spec={"type": "ExternalName", "externalName": "127.0.0.1"},
    )
    for obj in (api, idle, elsewhere):
        observed.services.observe(obj)
    observed.routes.observe(public)
    observed.pods.observe(pod("api", LABELS, "10.65.0.1"))
    observed.pods.observe(pod("other", {"app": "idle"}, "10.65.0.2"))
    return observed


@pytest.mark.parametrize(
    ("host", "port"),
    [
        ("api", 8443),
        ("api.garden", 8443),
        ("api.garden.svc", 8443),
        ("api.garden.svc.cluster.local", 8443),
        ("10.0.0.7", 8443),
        ("10.65.0.1", 443),
        (PUBLIC, 443),
    ],
)
def test_services_pods_and_public_names_are_routed_to_the_process(
    routes: Routes, host: str, port: int
) -> None:
    assert routes.resolve(host, port, "garden") == Endpoint(ADDRESS, 10443)


@pytest.mark.parametrize(
    ("host", "port"),
    [("api", 80), ("api.other", 8443), ("idle", 443), ("10.65.0.2", 443), ("example.org", 443)],
)
def test_other_hosts_have_no_route(routes: Routes, host: str, port: int) -> None:
    assert routes.resolve(host, port, "garden") is None


def test_the_external_name_of_a_service_keeps_the_port(routes: Routes) -> None:
    assert routes.resolve("elsewhere", 6443, "garden") == Endpoint("127.0.0.1", 6443)


def test_a_short_name_is_one_of_the_own_namespace(routes: Routes) -> None:
    assert routes.seen_from("garden")("api", 8443) == Endpoint(ADDRESS, 10443)
    assert routes.seen_from("other")("api", 8443) is None
    assert routes.seen_from("other")("api.garden", 8443) == Endpoint(ADDRESS, 10443)


def test_names_that_no_gateway_knows_are_looked_up_in_the_other_cluster(routes: Routes) -> None:
    elsewhere = {PUBLIC: Endpoint("127.9.9.9", 1), "api.example.org": Endpoint("127.9.9.9", 2)}
    joined = Routes(observed_services(), {}, beyond=elsewhere.get)
    assert joined.resolve("api.example.org", 443, "garden") == Endpoint("127.9.9.9", 2)
    assert routes.resolve_public(PUBLIC) == Endpoint(ADDRESS, 10443)
    assert routes.resolve_public("api.garden") is None
