"""Workload identities: who issues their tokens, and with which key (spec 20 §16.2, §16.7)."""

from typing import Final

from pergola.operator.garden.credentials import Credential
from pergola.operator.garden.landscape import Landscape
from pergola.secrets_manager import Options, Rotate, RsaKey

KEY: Final = "gardener-apiserver-workload-identity-signing-key"
"""The credential with which gardener-apiserver signs tokens."""


def signing_key(landscape: Landscape) -> Credential:
    """Return the key; while it is rotated, tokens of the old one are accepted, too."""
    rotation = landscape.rotation.workload_identity_key
    is_completing = rotation is not None and rotation.phase == "Completing"
    return Credential(RsaKey(KEY), Options(rotate=Rotate.KEEP_OLD, ignore_old=is_completing))


def discovery_host(landscape: Landscape) -> str:
    """Return the name under which the discovery server publishes keys.

    It is part of every token, whether the server is deployed or not.
    """
    server = landscape.virtual.gardener.discovery_server
    if server is not None and server.domain is not None:
        return server.domain.name
    return f"discovery.{landscape.ingress_domain}"


def issuer(landscape: Landscape) -> str:
    """Return the issuer that tokens name, a URL."""
    return f"https://{discovery_host(landscape)}/garden/workload-identity/issuer"
