"""The flags of the kube-apiserver for APIs, storage, tokens, limits and SNI (spec 20 §15.2)."""

from collections.abc import Iterator, Sequence
from typing import Final
from urllib.parse import urlsplit

from pergola.api.durations import format_duration
from pergola.api.objects import name_of
from pergola.garden.components.api_server.part import Part, mounted_secret
from pergola.garden.components.etcds import access
from pergola.garden.components.kube_apiserver_exposure.hosts import other_certificate
from pergola.garden.components.virtual_apis import runtime_config
from pergola.garden.landscape import Landscape

PORT: Final = 443

_GARDENER: Final = "gardener"
_AUDIENCES: Final = ("kubernetes", _GARDENER)
_SNI_PATH: Final = "/srv/kubernetes/tls-sni/0"
_GROUP_READABLE: Final = 0o640


def flags(landscape: Landscape) -> Part:
    """Return the flags that are neither about identities nor shared with gardener-apiserver."""
    args = (*_served(landscape), *_stored(landscape), *_tokens(landscape), *_limits(landscape))
    return Part(args=args) + _names(landscape)


def _served(landscape: Landscape) -> Iterator[str]:
    settings = landscape.api_server
    apis = ",".join(
        f"{api}={str(on).lower()}" for api, on in sorted(runtime_config(landscape).items())
    )
    yield f"--api-audiences={','.join(_audiences(settings.api_audiences))}"
    yield "--enable-aggregator-routing=true"
    yield "--enable-bootstrap-token-auth=true"
    yield "--bind-address=::"
    yield f"--secure-port={PORT}"
    yield f"--external-hostname={external_host(landscape)}"
    yield f"--runtime-config={apis}"
    yield f"--service-cluster-ip-range={','.join(landscape.virtual.networking.services)}"
    if settings.tls_min_version is not None:
        yield f"--tls-min-version={settings.tls_min_version}"


def _audiences(chosen: Sequence[str]) -> Sequence[str]:
    """Return the audiences of tokens; Gardener's own components need theirs."""
    if not chosen:
        return _AUDIENCES
    return chosen if _GARDENER in chosen else (*chosen, _GARDENER)


def external_host(landscape: Landscape) -> str:
    """Return the host that the API server advertises: that of its issuer, if it is its own."""
    config = landscape.api_server.service_account_config
    issuer = urlsplit(config.issuer or "" if config is not None else "")
    if issuer.hostname not in landscape.api_hosts:
        return landscape.api_hosts[0]
    return issuer.netloc.rpartition("@")[2]


def _stored(landscape: Landscape) -> Iterator[str]:
    """Yield the flag that stores events and configured resources in the etcd for events."""
    server = f"https://{access.client_service(access.EVENTS)}:{access.CLIENT_PORT}"
    resources = [
        "/events",
        "events.k8s.io/events",
        *(
            f"{each.group}/{each.resource}"
            for each in landscape.api_server.resources_to_store_in_etcd_events
        ),
    ]
    overrides = ",".join(f"{resource}#{server}" for resource in resources)
    yield f"--etcd-servers-overrides={overrides}"


def _tokens(landscape: Landscape) -> Iterator[str]:
    """Yield the flags for ServiceAccount tokens; the first issuer signs them.

    Tokens of the API server's own address stay valid when another issuer is chosen.
    """
    config = landscape.api_server.service_account_config
    default = f"https://{external_host(landscape)}"
    chosen = (config.issuer or default, *config.accepted_issuers, default) if config else (default,)
    for issuer in dict.fromkeys(chosen):
        yield f"--service-account-issuer={issuer}"
    if config is None:
        return
    if config.extend_token_expiration is not None:
        extends = str(config.extend_token_expiration).lower()
        yield f"--service-account-extend-token-expiration={extends}"
    if config.max_token_expiration is not None:
        longest = format_duration(config.max_token_expiration)
        yield f"--service-account-max-token-expiration={longest}"


def _limits(landscape: Landscape) -> Iterator[str]:
    settings = landscape.api_server
    yield f"--event-ttl={format_duration(settings.event_ttl)}"
    seconds = {
        "not-ready": settings.default_not_ready_toleration_seconds,
        "unreachable": settings.default_unreachable_toleration_seconds,
    }
    for name, value in seconds.items():
        if value is not None:
            yield f"--default-{name}-toleration-seconds={value}"


def _names(landscape: Landscape) -> Part:
    """Return the SNI certificate for extra names, or an empty part if there are none.

    Raises:
        CertificateMissing: The Garden has no certificate for these names.
    """
    sni = landscape.api_server.sni
    if sni is None or not sni.domain_patterns:
        return Part()
    secret = _certificate(landscape)
    pair = f"{_SNI_PATH}/tls.crt,{_SNI_PATH}/tls.key"
    files = mounted_secret("tls-sni-0", _SNI_PATH, secret, mode=_GROUP_READABLE, read_only=True)
    return files + Part(args=(f"--tls-sni-cert-key={pair}:{','.join(sni.domain_patterns)}",))


def _certificate(landscape: Landscape) -> str:
    sni = landscape.api_server.sni
    if sni is not None and sni.secret_name:
        return sni.secret_name
    return name_of(other_certificate(landscape))
