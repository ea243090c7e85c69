"""The routes to the dashboard through Istio, which decrypts connections and re-encrypts them."""

from collections.abc import Iterator
from datetime import timedelta
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.garden.components import authorities, istio
from pergola.garden.components.gardener_dashboard.settings import (
    NAME,
    PORT,
    PROGRAM,
    dashboard_of,
    hosts,
    secret_object,
)
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.secrets_manager import Certificate, Options, SigningCA

_GENERATED: Final = f"{NAME}-tls"
_TWO_YEARS: Final = timedelta(days=730)


def certificate(landscape: Landscape) -> Iterator[Credential]:
    """Yield the public certificate, unless the Garden names one or there is a wildcard one."""
    if dashboard_of(landscape).tls_secret_name or landscape.wildcard_certificate is not None:
        return
    names = hosts(landscape)
    config = Certificate(
        name=_GENERATED, common_name=NAME, hosts=names, for_server=True, publish_ca=False
    )
    signed = Options(signed_by=SigningCA(authorities.GARDENER), validity=_TWO_YEARS)
    yield Credential(config, signed)


def exposure(landscape: Landscape) -> tuple[JsonObject, ...]:
    """Return the objects that route requests from the gateway to the dashboard.

    Raises:
        ReferenceMissing: The Secret with the certificate that the Garden names does not exist.
    """
    if not dashboard_of(landscape).ingress.enabled:
        return ()
    labels, names = PROGRAM.labels, hosts(landscape)
    secret = _certificate(landscape)
    served = istio.https_server(names, istio.certificate_name(NAME, name_of(secret)))
    authority = istio.authority(
        f"{_GENERATED}-ca", labels, landscape.credentials.bundle(authorities.RUNTIME)
    )
    encrypted = istio.verified(name_of(authority), istio.service_host(NAME))
    return (
        istio.gateway(NAME, labels, served),
        istio.http_routes(NAME, labels, names, istio.route(NAME, PORT)),
        istio.destination_rule(NAME, labels, NAME, encrypted),
        istio.certificate(NAME, labels, secret),
        authority,
    )


def _certificate(landscape: Landscape) -> JsonObject:
    named = dashboard_of(landscape).tls_secret_name
    if named:
        return secret_object(landscape, named)
    if landscape.wildcard_certificate is not None:
        return landscape.wildcard_certificate
    return landscape.credentials.current(_GENERATED).obj
