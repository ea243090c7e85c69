"""The API server behind the ingress gateway, by the names of all domains (spec 20 §15.3)."""

from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api.objects import JsonObject
from pergola.operator.components import istio
from pergola.operator.components.component import Component, Managed, Rendered
from pergola.operator.components.kube_apiserver_exposure import termination
from pergola.operator.components.kube_apiserver_exposure.hosts import hosts_of
from pergola.operator.components.kube_apiserver_exposure.services import (
    LABELS,
    MUTUAL,
    PORT,
    UPGRADED,
    terminates_tls,
)
from pergola.operator.components.virtual_access import API_SERVER
from pergola.operator.garden.credentials import Credential
from pergola.operator.garden.landscape import Landscape

_CERTIFIED: Final = "kubernetes.default.svc.cluster.local"
"""A name that every certificate of the API server is for."""
_AS_THE_CLIENT: Final[JsonObject] = {"useClientProtocol": True}


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the client certificate of a gateway that decrypts."""
    if terminates_tls(landscape):
        yield from termination.credentials()


def render(landscape: Landscape) -> Rendered:
    """Return the routes to the API server, and what a gateway that decrypts needs."""
    if not terminates_tls(landscape):
        return Rendered(direct=tuple(_encrypted(landscape)))
    routes = (termination.routes_of_clients(landscape),)
    return Rendered(
        direct=tuple(_decrypted(landscape)),
        managed=(
            Managed(name="istio-tls-secrets", objects=tuple(termination.secrets(landscape))),
            Managed(name="kube-apiserver-sni", objects=routes),
        ),
    )


def _encrypted(landscape: Landscape) -> Iterator[JsonObject]:
    hosts = landscape.api_hosts
    yield istio.gateway(API_SERVER, LABELS, istio.tls_server(hosts))
    yield istio.tls_route(API_SERVER, LABELS, hosts, API_SERVER, PORT)
    yield istio.destination_rule(API_SERVER, LABELS, API_SERVER)


def _decrypted(landscape: Landscape) -> Iterator[JsonObject]:
    for name, mode in ((API_SERVER, "SIMPLE"), (MUTUAL, "MUTUAL"), (UPGRADED, "SIMPLE")):
        tls = istio.verified(termination.CLIENT_SECRET, _CERTIFIED, mode)
        yield istio.spreading_rule(name, LABELS, name, tls, http=_AS_THE_CLIENT)
    hosts = hosts_of(landscape)
    if hosts.own:
        yield from _exposed(API_SERVER, hosts.own, termination.SERVER_SECRET, "tls")
    if hosts.other:
        yield from _exposed(
            termination.OTHER_GATEWAY,
            hosts.other,
            termination.OTHER_SECRET,
            termination.OTHER_PORT,
        )


def _exposed(name: str, hosts: Sequence[str], secret: str, port: str) -> Iterator[JsonObject]:
    server = istio.https_server(hosts, secret, "OPTIONAL_MUTUAL", port=port)
    yield istio.gateway(name, LABELS, server)
    headers = {"Connection": {"exact": "Upgrade"}, "Upgrade": {}}
    upgrade = {
        "name": termination.UPGRADE_ROUTE,
        "match": [{"headers": headers}],
        **istio.route(UPGRADED, PORT),
    }
    yield istio.http_routes(name, LABELS, hosts, upgrade, istio.route(API_SERVER, PORT))


API_SERVER_SNI: Final = Component(
    name="kube-apiserver-sni",
    deploy="Deploying and waiting for Kubernetes API server service SNI",
    after=("Waiting until Kubernetes API server rolled out",),
    credentials=credentials,
    render=render,
    limit=120.0,
)
