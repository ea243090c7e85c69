"""Workload identities: the issuer of their tokens, and its key (spec 20 §16.2, §16.7)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.garden.landscape.lost_secrets import given_up_in, published
from pergola.garden.landscape.phases import COMPLETING, phase_of
from pergola.pki import ALGORITHM, key_set
from pergola.secrets_manager import Options, Rotate, RsaKey

KEY: Final = "gardener-apiserver-workload-identity-signing-key"
"""The credential with which gardener-apiserver signs tokens."""


def signing_key(landscape: Landscape) -> Credential:
    """Return the key; during a rotation, the old key remains valid for verification."""
    phase = phase_of(landscape.rotation.workload_identity_key)
    options = Options(
        rotate=Rotate.KEEP_OLD,
        ignore_old=phase == COMPLETING,
        irreplaceable=published(
            "sign tokens that cloud providers accept", phase, given_up_in(landscape)
        ),
    )
    return Credential(RsaKey(KEY), options)


def discovery_host(landscape: Landscape) -> str:
    """Return the host on which the discovery server publishes keys.

    It is part of every token, whether the server is deployed or not.
    """
    server = landscape.virtual.gardener.discovery_server
    if server is not None and server.domain is not None:
        return server.domain.name
    return f"discovery.{landscape.ingress_domain}"


def issuer(landscape: Landscape) -> str:
    """Return the URL of the issuer in tokens."""
    return f"https://{discovery_host(landscape)}/garden/workload-identity/issuer"


def openid_configuration(landscape: Landscape) -> JsonObject:
    """Return the OpenID discovery document for providers that accept workload identities."""
    return {
        "issuer": issuer(landscape),
        "jwks_uri": f"{issuer(landscape)}/jwks",
        "response_types_supported": ["id_token"],
        "subject_types_supported": ["public"],
        "id_token_signing_alg_values_supported": [ALGORITHM],
    }


def published_keys(landscape: Landscape) -> JsonObject:
    """Return the key set that verifies tokens; during a rotation it includes the old key."""
    return key_set(landscape.credentials.bundle(KEY).data["bundle.key"])
