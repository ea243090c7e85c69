"""Public keys as OpenID clients read them."""

import base64
import hashlib

import pytest
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    PublicFormat,
    load_pem_public_key,
)

from pergola.api.objects import maps_at
from pergola.pki import CertificateError, KeyAlgorithm, generate_key, key_set, public_pem


def decoded(value: object) -> bytes:
    assert isinstance(value, str)
    return base64.urlsafe_b64decode(value + "=" * (-len(value) % 4))


def test_a_set_has_the_keys_of_a_bundle_in_its_order() -> None:
    bundle = [public_pem(generate_key(KeyAlgorithm.RSA_3072).public_key()) for _ in range(2)]
    first, second = maps_at(key_set(b"".join(bundle)), "keys")
    for pem, found in zip(bundle, (first, second), strict=True):
        key = load_pem_public_key(pem)
        assert isinstance(key, RSAPublicKey)
        numbers = key.public_numbers()
        assert int.from_bytes(decoded(found["n"]), "big") == numbers.n
        assert int.from_bytes(decoded(found["e"]), "big") == numbers.e


def test_key_ids_are_the_digests_that_gardener_puts_into_tokens() -> None:
    pem = public_pem(generate_key(KeyAlgorithm.RSA_3072).public_key())
    der = load_pem_public_key(pem).public_bytes(Encoding.DER, PublicFormat.SubjectPublicKeyInfo)
    (found,) = maps_at(key_set(pem), "keys")
    assert decoded(found["kid"]) == hashlib.sha256(der).digest()


def test_a_key_of_another_type_is_an_error() -> None:
    pem = public_pem(generate_key(KeyAlgorithm.EC_P256).public_key())
    with pytest.raises(CertificateError, match="RSA"):
        key_set(pem)


def test_no_keys_are_an_empty_set() -> None:
    assert key_set(b"") == {"keys": []}
