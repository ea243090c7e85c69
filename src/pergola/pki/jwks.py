"""Public keys in the format of OpenID clients: a JSON Web Key Set."""

import base64
import hashlib
import re
from typing import Final

from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from pergola.api.objects import JsonObject
from pergola.pki.errors import CertificateError

ALGORITHM: Final = "RS256"
"""The algorithm of the signatures that the keys of a set verify."""

_KEY: Final = re.compile(rb"-----BEGIN PUBLIC KEY-----.+?-----END PUBLIC KEY-----", re.DOTALL)


def key_set(bundle: bytes) -> JsonObject:
    """Return the set of the RSA keys in a PEM text, in order.

    Raises:
        CertificateError: One of them cannot be read or is of another type.
    """
    return {"keys": [_web_key(_read(pem)) for pem in _KEY.findall(bundle)]}


def _read(pem: bytes) -> RSAPublicKey:
    try:
        key = load_pem_public_key(pem)
    except ValueError as error:
        raise CertificateError(f"not a PEM public key: {error}") from None
    if not isinstance(key, RSAPublicKey):
        raise CertificateError(f"not an RSA key, but {type(key).__name__}: generate an RSA key")
    return key


def _web_key(key: RSAPublicKey) -> JsonObject:
    """Return a key under its name in tokens: the digest of its standard form."""
    numbers = key.public_numbers()
    encoded = key.public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    return {
        "use": "sig",
        "kty": "RSA",
        "alg": ALGORITHM,
        "kid": _base64(hashlib.sha256(encoded).digest()),
        "n": _number(numbers.n),
        "e": _number(numbers.e),
    }


def _number(value: int) -> str:
    return _base64(value.to_bytes((value.bit_length() + 7) // 8, "big"))


def _base64(value: bytes) -> str:
    return base64.urlsafe_b64encode(value).rstrip(b"=").decode()
