"""The host names of the API server, by certificate."""

from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError

_ANY: Final = "*."


class CertificateMissing(OperatorError):
    """A certificate for host names is missing; the text says which, and what to do."""


@dataclass(frozen=True, slots=True)
class Hosts:
    """The host names of the API server.

    Attributes:
        own: Names in the API server's own certificate, which the cluster's authority signed.
        other: Names with the certificate of `spec.virtualCluster.kubernetes.kubeAPIServer.sni`.
    """

    own: tuple[str, ...]
    other: tuple[str, ...]


def hosts_of(landscape: Landscape) -> Hosts:
    """Return the host names, grouped by certificate."""
    sni = landscape.api_server.sni
    patterns = sni.domain_patterns if sni else []
    other = [host for host in landscape.api_hosts if any(_matches(host, p) for p in patterns)]
    own = [host for host in landscape.api_hosts if host not in other]
    return Hosts(tuple(own), tuple(other))


def _matches(host: str, pattern: str) -> bool:
    """Return whether the pattern of a certificate covers the host; `*` matches one label."""
    if not pattern.startswith(_ANY):
        return host == pattern
    _, _, domain = host.partition(".")
    return domain == pattern.removeprefix(_ANY)


def other_certificate(landscape: Landscape) -> JsonObject:
    """Return the Secret with the certificate of `Hosts.other`.

    Raises:
        CertificateMissing: The Secret does not exist, or none is configured.
    """
    sni = landscape.api_server.sni
    if sni is None or sni.secret_name is None:
        if landscape.wildcard_certificate is None:
            raise CertificateMissing(
                "spec.virtualCluster.kubernetes.kubeAPIServer.sni names no Secret, and the garden "
                "has no wildcard certificate: set sni.secretName, or create a Secret with the "
                f"label gardener.cloud/role=garden-cert in namespace {NAMESPACE}"
            )
        return landscape.wildcard_certificate
    key = Key(NAMESPACE, sni.secret_name)
    found = landscape.references.get((SECRET.kind, key))
    if found is None:
        raise CertificateMissing(
            f"Secret {key}, which spec.virtualCluster.kubernetes.kubeAPIServer.sni.secretName "
            "names, does not exist: create it, or name another one"
        )
    return found
