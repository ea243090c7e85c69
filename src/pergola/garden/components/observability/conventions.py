"""Conventions that the observability components share (spec 20 §16.8)."""

from collections.abc import Iterator, Mapping
from datetime import timedelta
from typing import Final

from pergola.api.objects import JsonObject, name_of
from pergola.garden.components import authorities, istio
from pergola.garden.components.component import Managed, Target
from pergola.garden.components.conventions import volume_size
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.secrets_manager import Certificate, Options, SigningCA, Use

HEALTHY: Final = "ObservabilityComponentsHealthy"
"""The Garden's condition that covers these components."""
CREDENTIAL: Final = "observability-ingress"
"""The credential with the password of all hosts."""

UNKNOWN_VERSION: Final = "v0.0.0"
"""The version for an operator if an image has only a digest, as in the original."""

_ORGANIZATION: Final = "gardener.cloud:monitoring:ingress"
_VALIDITY: Final = timedelta(days=730)


def application(name: str) -> dict[str, str]:
    """Return the label by which dashboards select the pods of a component."""
    return {"observability.gardener.cloud/app": name}


def managed(name: str, *objects: JsonObject, target: Target = Target.RUNTIME) -> Managed:
    """Return a ManagedResource that the condition of observability covers."""
    return Managed(name=name, objects=objects, target=target, condition=HEALTHY)


def volume_claim(landscape: Landscape, name: str, size: str) -> JsonObject:
    """Return the template of a volume claim, at least as large as the Garden requires."""
    resources = {"requests": {"storage": volume_size(landscape, size)}}
    spec = {"accessModes": ["ReadWriteOnce"], "resources": resources}
    return {"metadata": {"name": name}, "spec": spec}


def host(landscape: Landscape, name: str) -> str:
    """Return the public host name of a component."""
    return f"{name}.{landscape.ingress_domain}"


def host_credentials(landscape: Landscape, owner: str, name: str) -> Iterator[Credential]:
    """Yield the certificate of a host, unless the wildcard certificate serves it.

    Args:
        owner: The name of the component.
        name: The first label of the host.
    """
    if landscape.wildcard_certificate is None:
        certificate = Certificate(
            name=_certificate(owner),
            common_name=owner,
            organizations=(_ORGANIZATION,),
            hosts=(host(landscape, name),),
            for_server=True,
            publish_ca=False,
        )
        signer = SigningCA(authorities.RUNTIME, Use.CURRENT)
        yield Credential(certificate, Options(signed_by=signer, validity=_VALIDITY))


def exposed(
    landscape: Landscape,
    owner: str,
    name: str,
    labels: Mapping[str, str],
    port: int,
    *refused: JsonObject,
) -> list[JsonObject]:
    """Return the objects that expose a Service to users with the password.

    Args:
        owner: The name of the component and its Service.
        name: The first label of the host.
        port: The port of the Service.
        refused: Routes that reject requests.
    """
    secret = _certificate_secret(landscape, owner)
    hosts = [host(landscape, name)]
    served = istio.https_server(hosts, istio.certificate_name(owner, name_of(secret)))
    identity = f"virtual-garden-{name}"
    protected = {**labels, **istio.basic_auth(CREDENTIAL)}
    return [
        istio.certificate(owner, labels, secret),
        istio.gateway(identity, labels, served),
        istio.http_routes(identity, protected, hosts, *refused, istio.route(owner, port)),
        istio.destination_rule(identity, labels, owner),
    ]


def _certificate_secret(landscape: Landscape, owner: str) -> JsonObject:
    if landscape.wildcard_certificate is not None:
        return landscape.wildcard_certificate
    return landscape.credentials.current(_certificate(owner)).obj


def _certificate(owner: str) -> str:
    return f"{owner}-tls"
