"""Workload identities: who issues their tokens, and with which key (spec 20 §16.2, §16.7)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.operator.garden.credentials import Credential
from pergola.operator.garden.landscape import Landscape
from pergola.pki import ALGORITHM, key_set
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


def openid_configuration(landscape: Landscape) -> JsonObject:
    """Return what providers that accept tokens of workload identities read first."""
    return {
        "issuer": issuer(landscape),
        "jwks_uri": f"{issuer(landscape)}/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }


def published_keys(landscape: Landscape) -> JsonObject:
    """Return the keys that verify tokens; during a rotation the old one, too."""
    return key_set(landscape.credentials.bundle(KEY).data["bundle.key"])
