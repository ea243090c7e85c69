"""Envoy's TLS settings: towards clients, and towards the servers that requests are passed on to."""

from collections.abc import Mapping, Sequence
from typing import Final

from pergola.api.objects import JsonObject, Key
from pergola.pki import CertificateError
from pergola.sandbox.istiod.credentials import Credential, read

SIMPLE: Final = "SIMPLE"
MUTUAL: Final = "MUTUAL"
OPTIONAL_MUTUAL: Final = "OPTIONAL_MUTUAL"
TERMINATING: Final = (SIMPLE, MUTUAL, OPTIONAL_MUTUAL)
_TLS: Final = "type.googleapis.com/envoy.extensions.transport_sockets.tls.v3"
_SOCKET: Final = "envoy.transport_sockets.tls"
_PLAIN: Final = ("", "DISABLE")
_PROTOCOLS: Final = ("h2", "http/1.1")


def server_credential(
    settings: JsonObject, namespace: str, secrets: Mapping[Key, Mapping[str, str]]
) -> Credential:
    """Return the credential of a Gateway's server that decrypts connections.

    Args:
        settings: `tls` of the server.
        namespace: of the gateway's pods.

    Raises:
        CertificateError: the credential cannot be used.
    """
    key = Key(namespace, settings.get("credentialName", ""))
    if not key.name:
        raise CertificateError("tls has no credentialName")
    found = read(key, secrets, pair=True)
    if settings["mode"] == SIMPLE:
        return found._replace(authority="")
    if not found.authority:
        raise CertificateError(f"Secret {key} has no authority of clients (ca.crt)")
    return found


def downstream(credential: Credential, mode: str) -> JsonObject:
    """Return the settings of connections from clients."""
    common = {"alpn_protocols": list(_PROTOCOLS), **_common(credential)}
    context = {
        "@type": f"{_TLS}.DownstreamTlsContext",
        "common_tls_context": common,
        "require_client_certificate": mode == MUTUAL,
    }
    return {"name": _SOCKET, "typed_config": context}


def upstream(
    settings: JsonObject, namespace: str, secrets: Mapping[Key, Mapping[str, str]]
) -> JsonObject | None:
    """Return the settings of connections to a Service; None if they are not encrypted.

    Args:
        settings: `tls` of a DestinationRule.
        namespace: of the gateway's pods.

    Raises:
        CertificateError: they must be encrypted, and cannot be.
    """
    mode = settings.get("mode", "")
    if mode in _PLAIN:
        return None
    if mode not in (SIMPLE, MUTUAL):
        raise CertificateError(f"tls mode {mode} is not supported")
    name = settings.get("credentialName", "")
    if mode == MUTUAL and not name:
        raise CertificateError("tls has no credentialName")
    credential = read(Key(namespace, name), secrets, pair=mode == MUTUAL) if name else Credential()
    common = _common(credential, settings.get("subjectAltNames", ()))
    if not credential.authority and not settings.get("insecureSkipVerify"):
        raise CertificateError("tls needs a credentialName with an authority (ca.crt)")
    context = {"@type": f"{_TLS}.UpstreamTlsContext", "common_tls_context": common}
    if settings.get("sni"):
        context["sni"] = settings["sni"]
    return {"name": _SOCKET, "typed_config": context}


def _common(credential: Credential, names: Sequence[str] = ()) -> JsonObject:
    common: JsonObject = {}
    if credential.certificate:
        pair = {
            "certificate_chain": {"inline_string": credential.certificate},
            "private_key": {"inline_string": credential.key},
        }
        common["tls_certificates"] = [pair]
    if credential.authority:
        trust: JsonObject = {"trusted_ca": {"inline_string": credential.authority}}
        if names:
            trust["match_typed_subject_alt_names"] = [
                {"san_type": "DNS", "matcher": {"exact": name}} for name in names
            ]
        common["validation_context"] = trust
    return common
