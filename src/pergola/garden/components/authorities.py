"""The certificate authorities of a Garden; there are no others (spec 20 §10.3)."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pergola.garden.landscape.credentials import Credential
from pergola.garden.landscape.lost_secrets import published
from pergola.secrets_manager import (
    Certificate,
    CertificateAuthority,
    Options,
    Rotate,
    SigningCA,
    Use,
)

RUNTIME: Final = "ca-garden-runtime"
"""Signs servers that only components of the runtime cluster talk to; renewed every month."""
BASIC_AUTH: Final = "ca-virtual-garden-istio-basic-auth-server"
ETCD: Final = "ca-etcd"
ETCD_PEER: Final = "ca-etcd-peer"
CLUSTER: Final = "ca"
"""Signs the servers of the virtual cluster."""
CLIENT: Final = "ca-client"
FRONT_PROXY: Final = "ca-front-proxy"
GARDENER: Final = "ca-gardener"

PURPOSES: Final = {
    RUNTIME: "signs servers in the runtime cluster",
    BASIC_AUTH: "signs the server that checks passwords of observability",
    ETCD: "signs servers and clients of etcd",
    ETCD_PEER: "signs members of etcd",
    CLUSTER: "signs servers of the virtual cluster",
    CLIENT: "signs clients of the virtual cluster",
    FRONT_PROXY: "signs the aggregator of the virtual cluster",
    GARDENER: "signs servers of Gardener",
}
_MONTHLY: Final = (RUNTIME, BASIC_AUTH)
ON_DEMAND: Final = (ETCD, ETCD_PEER, CLUSTER, CLIENT, FRONT_PROXY, GARDENER)
"""Authorities that are rotated only at a user's request."""
_MONTH: Final = timedelta(days=30)
_BOTH_TRUSTED: Final = timedelta(hours=24)
_USE: Final = "sign certificates that others trust"


def authorities(*, phase: str = "", given_up: str = "") -> Iterator[Credential]:
    """Yield all authorities; those with the longest life are not replaced if they are lost.

    Args:
        phase: The phase of their rotation; its completion ends trust in the old ones.
        given_up: The name of the Secret that a user has given up.
    """
    for name in _MONTHLY:
        monthly = Options(rotate=Rotate.KEEP_OLD, validity=_MONTH, ignore_old_after=_BOTH_TRUSTED)
        yield Credential(CertificateAuthority(name), monthly)
    for name in ON_DEMAND:
        on_demand = Options(
            rotate=Rotate.KEEP_OLD,
            ignore_old=phase == "Completing",
            irreplaceable=published(_USE, phase, given_up),
        )
        yield Credential(CertificateAuthority(name), on_demand)


def runtime_server(name: str, *hosts: str) -> Credential:
    """Return the certificate of a server that only components of the runtime cluster call.

    Its authority is renewed every month; clients get the new bundle together with the certificate.
    """
    config = Certificate(
        name=name, common_name=hosts[0], hosts=hosts, for_server=True, publish_ca=False
    )
    return Credential(config, Options(signed_by=SigningCA(RUNTIME, Use.CURRENT)))


def gardener_server(name: str, *hosts: str, use: Use = Use.DEFAULT) -> Credential:
    """Return the certificate of a Gardener server that the virtual cluster calls.

    Args:
        use: Which authority signs it while there are two.
    """
    config = Certificate(
        name=name, common_name=hosts[0], hosts=hosts, for_server=True, publish_ca=False
    )
    return Credential(config, Options(signed_by=SigningCA(GARDENER, use)))


def service_hosts(service: str, namespace: str) -> tuple[str, ...]:
    """Return the names under which clients of any namespace reach a Service."""
    return (
        service,
        f"{service}.{namespace}",
        f"{service}.{namespace}.svc",
        f"{service}.{namespace}.svc.cluster.local",
    )
