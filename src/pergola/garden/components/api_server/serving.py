"""The connection of an API server to etcd, its serving certificate, and its limits."""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.garden.components import authorities
from pergola.garden.components.api_server.part import (
    ApiServer,
    Part,
    Settings,
    feature_gates,
    mounted_secret,
)
from pergola.garden.components.etcds import access
from pergola.garden.components.tls import CIPHER_SUITES
from pergola.garden.landscape import Landscape

_GROUP_READABLE: Final = 0o640
_ETCD_CA: Final = "/srv/kubernetes/etcd/ca"
_ETCD_CLIENT: Final = "/srv/kubernetes/etcd/client"
_SERVER: Final = "/srv/kubernetes/apiserver"


def serving(
    landscape: Landscape,
    server: ApiServer,
    certificate: str,
    gates: Mapping[str, bool] | None = None,
) -> Part:
    """Return the flags and files that every API server needs for etcd and TLS.

    Args:
        certificate: The name of the credential with its serving certificate.
        gates: Extra feature gates; those in the settings take precedence.
    """
    credentials = landscape.credentials
    args = (*_fixed(), *feature_gates({**(gates or {}), **server.settings.feature_gates}))
    files = (
        mounted_secret("ca-etcd", _ETCD_CA, credentials.bundle_name(authorities.ETCD)),
        mounted_secret(
            "etcd-client", _ETCD_CLIENT, credentials.name(access.CLIENT), mode=_GROUP_READABLE
        ),
        mounted_secret("server", _SERVER, credentials.name(certificate), mode=_GROUP_READABLE),
    )
    return sum(files, Part(args=(*args, *limits(server.settings))))


def _fixed() -> tuple[str, ...]:
    return (
        "--http2-max-streams-per-connection=1000",
        f"--etcd-cafile={_ETCD_CA}/bundle.crt",
        f"--etcd-certfile={_ETCD_CLIENT}/tls.crt",
        f"--etcd-keyfile={_ETCD_CLIENT}/tls.key",
        f"--etcd-servers=https://{access.client_service(access.MAIN)}:{access.CLIENT_PORT}",
        "--livez-grace-period=1m",
        "--profiling=false",
        "--shutdown-delay-duration=15s",
        f"--tls-cert-file={_SERVER}/tls.crt",
        f"--tls-private-key-file={_SERVER}/tls.key",
        f"--tls-cipher-suites={','.join(CIPHER_SUITES)}",
    )


def limits(settings: Settings) -> Iterator[str]:
    """Yield the flags about requests in flight, logs and watch caches.

    API servers ignore the default size of watch caches, and their flag for it is deprecated.
    """
    requests, logging = settings.requests, settings.logging
    flags = {
        "--max-requests-inflight": requests and requests.max_non_mutating_inflight,
        "--max-mutating-requests-inflight": requests and requests.max_mutating_inflight,
        "--vmodule=httplog": logging and logging.http_access_verbosity,
        "--v": logging and logging.verbosity,
    }
    for flag, value in flags.items():
        if value is not None:
            yield f"{flag}={value}"
    sizes = settings.watch_cache_sizes
    resources = [
        f"{each.resource}.{each.api_group}#{each.size}"
        if each.api_group
        else f"{each.resource}#{each.size}"
        for each in (sizes.resources if sizes else ())
    ]
    if resources:
        yield f"--watch-cache-sizes={','.join(resources)}"
