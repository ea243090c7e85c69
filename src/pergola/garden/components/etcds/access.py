"""The names and certificates of the etcds and of their clients (spec 20 §10.4, §15.1)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import authorities
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.secrets_manager import Certificate, Options, SigningCA, Use

MAIN: Final = "main"
EVENTS: Final = "events"
ROLES: Final = (MAIN, EVENTS)
CLIENT: Final = "etcd-client"
CLIENT_PORT: Final = 2379


def name(role: str) -> str:
    """Return the name of an `Etcd`."""
    return f"virtual-garden-etcd-{role}"


def client_service(role: str) -> str:
    """Return the name of the Service for clients, which druid creates."""
    return f"{name(role)}-client"


def server_certificate(role: str) -> str:
    """Return the name of the credential with the server certificate of an etcd."""
    return f"etcd-server-{role}"


def peer_certificate(role: str) -> str:
    """Return the name of the credential that the members of an etcd present to each other."""
    return f"etcd-peer-server-{role}"


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield the certificates of servers, clients and, if there are several members, peers."""
    signed = Options(signed_by=SigningCA(authorities.ETCD))
    for role in ROLES:
        config = Certificate(
            name=server_certificate(role),
            common_name="etcd-server",
            hosts=(
                f"{name(role)}-local",
                *_service_hosts(client_service(role)),
                *_member_hosts(role),
            ),
            for_server=True,
            for_client=True,
            publish_ca=False,
        )
        yield Credential(config, signed)
    client = Certificate(name=CLIENT, common_name=CLIENT, for_client=True, publish_ca=False)
    yield Credential(client, signed)
    if landscape.is_highly_available:
        yield from _peers()


def client_tls(landscape: Landscape, role: str) -> JsonObject:
    """Return the references to the certificates that secure connections of clients."""
    known = landscape.credentials
    return {
        "serverTLSSecretRef": _reference(known.name(server_certificate(role))),
        "clientTLSSecretRef": _reference(known.name(CLIENT)),
        "tlsCASecretRef": _bundle(known.bundle_name(authorities.ETCD)),
    }


def peer_tls(landscape: Landscape, role: str) -> JsonObject:
    """Return the references to the certificates that secure connections between members."""
    known = landscape.credentials
    return {
        "serverTLSSecretRef": _reference(known.name(peer_certificate(role))),
        "tlsCASecretRef": _bundle(known.bundle_name(authorities.ETCD_PEER)),
    }


def _peers() -> Iterator[Credential]:
    for role in ROLES:
        config = Certificate(
            name=peer_certificate(role),
            common_name="etcd-server",
            hosts=(*_service_hosts(f"{name(role)}-peer"), *_member_hosts(role)),
            for_server=True,
            for_client=True,
            publish_ca=False,
        )
        options = Options(signed_by=SigningCA(authorities.ETCD_PEER, Use.CURRENT))
        yield Credential(config, options)


def _service_hosts(service: str) -> tuple[str, ...]:
    return authorities.service_hosts(service, NAMESPACE)


def _member_hosts(role: str) -> tuple[str, ...]:
    """Return the DNS names of members, through which backup sidecars reach other members."""
    return _service_hosts(f"*.{name(role)}-peer")


def _reference(secret: str) -> JsonObject:
    return {"name": secret, "namespace": NAMESPACE}


def _bundle(secret: str) -> JsonObject:
    return {**_reference(secret), "dataKey": "bundle.crt"}
