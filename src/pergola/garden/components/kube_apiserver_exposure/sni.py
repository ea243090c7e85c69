"""The exposure of the API server through the ingress gateway, on all domains (spec 20 §15.3)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.kinds import DESTINATION_RULE, SERVICE
from pergola.api.objects import Identity, JsonObject, Key
from pergola.garden.components import istio, task_names
from pergola.garden.components.component import Component, Managed, Removable, Rendered
from pergola.garden.components.conventions import TLS_TERMINATION, terminates_tls
from pergola.garden.components.kube_apiserver_exposure import termination
from pergola.garden.components.kube_apiserver_exposure.hosts import hosts_of
from pergola.garden.components.kube_apiserver_exposure.services import (
    LABELS,
    MUTUAL,
    PORT,
    UPGRADED,
)
from pergola.garden.components.removal import removable
from pergola.garden.components.virtual_access import API_SERVER
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential

_SECRETS: Final = "istio-tls-secrets"
_ROUTES: Final = "kube-apiserver-sni"
_CERTIFIED: Final = "kubernetes.default.svc.cluster.local"
"""A name in every serving certificate of the API server."""
_AS_THE_CLIENT: Final[JsonObject] = {"useClientProtocol": True}


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the client certificate of a gateway that terminates TLS."""
    if terminates_tls(landscape):
        yield from termination.credentials()


def render(landscape: Landscape) -> Rendered:
    """Return the routes to the API server, and the objects for termination of TLS."""
    if not terminates_tls(landscape):
        return Rendered(direct=tuple(_encrypted(landscape)))
    routes = (termination.routes_of_clients(landscape),)
    return Rendered(
        direct=tuple(_decrypted(landscape)),
        managed=(
            Managed(name=_SECRETS, objects=tuple(termination.secrets(landscape))),
            Managed(name=_ROUTES, objects=routes),
        ),
    )


def passes_tls_on(landscape: Landscape) -> str | None:
    """Return why the gateway passes TLS through, or None if it terminates TLS."""
    return None if terminates_tls(landscape) else f"feature gate {TLS_TERMINATION} is off"


def _nothing(landscape: Landscape) -> Rendered:
    """Return no objects: other components have applied those for termination of TLS."""
    del landscape
    return Rendered()


def _encrypted(landscape: Landscape) -> Iterator[JsonObject]:
    hosts = landscape.api_hosts
    yield istio.gateway(API_SERVER, LABELS, istio.tls_server(hosts))
    yield istio.tls_route(API_SERVER, LABELS, hosts, API_SERVER, PORT)
    yield istio.destination_rule(API_SERVER, LABELS, API_SERVER)


def _decrypted(landscape: Landscape) -> Iterator[JsonObject]:
    yield istio.gateway(API_SERVER, LABELS, *_servers(landscape))
    headers = {"Connection": {"exact": "Upgrade"}, "Upgrade": {}}
    upgrade = {
        "name": termination.UPGRADE_ROUTE,
        "match": [{"headers": headers}],
        **istio.route(UPGRADED, PORT),
    }
    rest = istio.route(API_SERVER, PORT)
    yield istio.http_routes(API_SERVER, LABELS, landscape.api_hosts, upgrade, rest)
    for name, mode in ((API_SERVER, "SIMPLE"), (MUTUAL, "MUTUAL"), (UPGRADED, "SIMPLE")):
        tls = istio.verified(termination.CLIENT_SECRET, _CERTIFIED, mode)
        yield istio.spreading_rule(name, LABELS, name, tls, http=_AS_THE_CLIENT)


def _servers(landscape: Landscape) -> Iterator[JsonObject]:
    """Yield one server for each certificate; both accept client certificates."""
    hosts = hosts_of(landscape)
    for names, secret, port in (
        (hosts.own, termination.SERVER_SECRET, termination.OWN_PORT),
        (hosts.other, termination.OTHER_SECRET, termination.OTHER_PORT),
    ):
        if names:
            yield istio.https_server(names, secret, "OPTIONAL_MUTUAL", port=port)


API_SERVER_SNI: Final = Component(
    name=_ROUTES,
    deploy="Deploying and waiting for Kubernetes API server service SNI",
    after=(task_names.API_SERVER_READY,),
    credentials=credentials,
    render=render,
    limit=120.0,
    removable=removable(
        f"Gateway {API_SERVER}",
        f"VirtualService {API_SERVER}",
        *(f"DestinationRule {name}" for name in (API_SERVER, MUTUAL, UPGRADED)),
        managed=(_ROUTES, _SECRETS),
    ),
)
TLS_SERVICES_CLEANUP: Final = Component(
    name="kube-apiserver-tls-services",
    deploy="Cleaning up kube-apiserver TLS services",
    after=(API_SERVER_SNI.deploy,),
    absent=passes_tls_on,
    render=_nothing,
    removable=Removable(
        managed=(Key(NAMESPACE, _SECRETS), Key(NAMESPACE, _ROUTES)),
        direct=tuple(
            Identity(gvk, Key(NAMESPACE, name))
            for gvk in (SERVICE, DESTINATION_RULE)
            for name in (MUTUAL, UPGRADED)
        ),
    ),
    waits=False,
)
