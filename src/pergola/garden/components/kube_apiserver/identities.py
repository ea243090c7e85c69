"""The certificates and tokens of the kube-apiserver (spec 20 §10.4)."""

import csv
import io
from collections.abc import Iterator
from typing import Final

from pergola.api.ip_ranges import Address, parse_network
from pergola.garden.components import authorities, service_account_key
from pergola.garden.components.api_server.part import Part, mounted_secret
from pergola.garden.components.virtual_access import API_SERVER
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.secrets_manager import (
    Certificate,
    Options,
    SigningCA,
    StaticToken,
    StaticTokens,
)

CERTIFICATE: Final = "kube-apiserver"

_AGGREGATOR: Final = "kube-aggregator"
_TOKENS: Final = "kube-apiserver-static-token"
_PROBER: Final = "health-check"
_GROUP_READABLE: Final = 0o640
_ROOT: Final = "/srv/kubernetes"


def credentials(landscape: Landscape) -> Iterator[Credential]:
    """Yield its certificate, the aggregator's, the ServiceAccount key and the probes' token."""
    yield from service_account_key.credentials(landscape)
    yield Credential(_server(landscape), Options(signed_by=SigningCA(authorities.CLUSTER)))
    client = Certificate(
        name=_AGGREGATOR,
        common_name=f"system:{_AGGREGATOR}",
        for_client=True,
        publish_ca=False,
    )
    yield Credential(client, Options(signed_by=SigningCA(authorities.FRONT_PROXY)))
    yield Credential(StaticTokens(_TOKENS, (StaticToken(_PROBER),)), Options(persist=True))


def identities(landscape: Landscape) -> Part:
    """Return the flags and files for authorities, keys, tokens and the aggregator's certificate."""
    known = landscape.credentials
    signing, verifying = f"{_ROOT}/service-account-key", f"{_ROOT}/service-account-key-bundle"
    files = (
        mounted_secret("ca", f"{_ROOT}/ca", known.bundle_name(authorities.CLUSTER)),
        mounted_secret("ca-client", f"{_ROOT}/ca-client", known.bundle_name(authorities.CLIENT)),
        mounted_secret(
            "ca-front-proxy", f"{_ROOT}/ca-front-proxy", known.bundle_name(authorities.FRONT_PROXY)
        ),
        mounted_secret(
            "service-account-key",
            signing,
            known.name(service_account_key.NAME),
            mode=_GROUP_READABLE,
        ),
        mounted_secret(
            "service-account-key-bundle",
            verifying,
            known.bundle_name(service_account_key.NAME),
            mode=_GROUP_READABLE,
        ),
        mounted_secret("static-token", f"{_ROOT}/token", known.name(_TOKENS)),
        mounted_secret(
            "kube-aggregator", f"{_ROOT}/aggregator", known.name(_AGGREGATOR), mode=_GROUP_READABLE
        ),
    )
    args = (
        f"--client-ca-file={_ROOT}/ca-client/bundle.crt",
        f"--proxy-client-cert-file={_ROOT}/aggregator/tls.crt",
        f"--proxy-client-key-file={_ROOT}/aggregator/tls.key",
        f"--requestheader-client-ca-file={_ROOT}/ca-front-proxy/bundle.crt",
        "--requestheader-extra-headers-prefix=X-Remote-Extra-",
        "--requestheader-group-headers=X-Remote-Group",
        "--requestheader-username-headers=X-Remote-User",
        f"--token-auth-file={_ROOT}/token/static_tokens.csv",
        f"--service-account-signing-key-file={signing}/id_rsa",
        f"--service-account-key-file={verifying}/bundle.key",
    )
    return sum(files, Part(args=args))


def probe_token(landscape: Landscape) -> str:
    """Return the bearer token of the probes, which may only read health endpoints."""
    content = landscape.credentials.current(_TOKENS).data["static_tokens.csv"].decode()
    rows = csv.reader(io.StringIO(content))
    return next((row[0] for row in rows if row[1:2] == [_PROBER]), "")


def _server(landscape: Landscape) -> Certificate:
    names = (
        *authorities.service_hosts(API_SERVER, NAMESPACE),
        *authorities.service_hosts("kubernetes", "default"),
        *landscape.api_hosts,
    )
    addresses = (str(address) for address in _service_addresses(landscape))
    return Certificate(
        name=CERTIFICATE,
        common_name=API_SERVER,
        hosts=(*names, "localhost", "127.0.0.1", "::1", *addresses),
        for_server=True,
        publish_ca=False,
    )


def _service_addresses(landscape: Landscape) -> Iterator[Address]:
    """Yield the addresses of the Service `kubernetes`: the first of each range."""
    for text in landscape.virtual.networking.services:
        yield parse_network(text)[1]
