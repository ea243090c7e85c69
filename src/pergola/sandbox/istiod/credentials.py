"""Read the certificates of gateways from the Secrets in their namespace."""

from base64 import b64decode
from binascii import Error
from collections.abc import Mapping
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key, map_at
from pergola.pki import CertificateError, read_bundle, read_private_key

# The entries of a Secret: those of kubernetes.io/tls first, then Istio's own.
_CERTIFICATE: Final = ("tls.crt", "cert")
_KEY: Final = ("tls.key", "key")
_AUTHORITY: Final = ("ca.crt", "cacert")
_ENTRIES: Final = frozenset((*_CERTIFICATE, *_KEY, *_AUTHORITY))
_SEPARATE: Final = "-cacert"  # of the Secret that may hold the authority alone


class Credential(NamedTuple):
    """A certificate chain with its key, and an authority, all PEM; empty if there is none."""

    certificate: str = ""
    key: str = ""
    authority: str = ""


def entries_of(secret: JsonObject) -> dict[str, str]:
    """Return the entries of a Secret that can be part of a credential, in Base64."""
    return {name: text for name, text in map_at(secret, "data").items() if name in _ENTRIES}


def read(key: Key, secrets: Mapping[Key, Mapping[str, str]], *, pair: bool) -> Credential:
    """Return the credential in a Secret.

    Args:
        pair: whether certificate and key are needed.

    Raises:
        CertificateError: the Secret is missing, or Envoy would not accept its content.
    """
    entries = secrets.get(key)
    if entries is None:
        raise CertificateError(f"Secret {key} does not exist")
    separate = secrets.get(Key(key.namespace, f"{key.name}{_SEPARATE}"), {})
    authority = _entry(key, _AUTHORITY, entries) or _entry(key, _AUTHORITY, separate)
    found = Credential(authority=authority)
    if pair:
        found = found._replace(
            certificate=_entry(key, _CERTIFICATE, entries), key=_entry(key, _KEY, entries)
        )
    try:
        _check(found, pair=pair)
    except CertificateError as error:
        raise CertificateError(f"Secret {key} cannot be used: {error}") from None
    return found


def _entry(key: Key, names: tuple[str, ...], entries: Mapping[str, str]) -> str:
    encoded = next((entries[name] for name in names if name in entries), "")
    try:
        return b64decode(encoded).decode()
    except (Error, UnicodeDecodeError):
        raise CertificateError(f"Secret {key} has a {names[0]} that is not text") from None


def _check(credential: Credential, *, pair: bool) -> None:
    read_bundle(credential.authority.encode())
    if not pair:
        return
    chain = read_bundle(credential.certificate.encode())
    if not chain:
        raise CertificateError("it has no certificate")
    if read_private_key(credential.key.encode()).public_key() != chain[0].public_key():
        raise CertificateError("the key is not that of the certificate")
