"""Private keys: elliptic curve and RSA, in PEM."""

from enum import Enum
from functools import lru_cache
from typing import NamedTuple, TypeAlias

from cryptography.hazmat.primitives import serialization
from cryptography.hazmat.primitives.asymmetric import ec, rsa

from pergola.pki.errors import CertificateError

PrivateKey: TypeAlias = ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey
"""A private key for certificates and tokens."""
PublicKey: TypeAlias = ec.EllipticCurvePublicKey | rsa.RSAPublicKey


class KeyAlgorithm(Enum):
    """The algorithm of a key.

    An elliptic curve key takes less than a millisecond; RSA takes up to seconds of CPU time, so
    generate it outside the event loop.
    """

    EC_P256 = "ec-p256"
    RSA_3072 = "rsa-3072"
    RSA_4096 = "rsa-4096"


class Pair(NamedTuple):
    """A certificate (or public key) and its private key, both PEM."""

    public: bytes
    private: bytes


def generate_key(algorithm: KeyAlgorithm = KeyAlgorithm.EC_P256) -> PrivateKey:
    """Generate a private key."""
    match algorithm:
        case KeyAlgorithm.EC_P256:
            return ec.generate_private_key(ec.SECP256R1())
        case KeyAlgorithm.RSA_3072:
            return rsa.generate_private_key(public_exponent=65537, key_size=3072)
        case KeyAlgorithm.RSA_4096:
            return rsa.generate_private_key(public_exponent=65537, key_size=4096)


def key_pair(algorithm: KeyAlgorithm = KeyAlgorithm.EC_P256) -> Pair:
    """Generate a key pair for signing and verifying tokens."""
    key = generate_key(algorithm)
    return Pair(public_pem(key.public_key()), private_pem(key))


@lru_cache(maxsize=64)
def read_private_key(pem: bytes) -> PrivateKey:
    """Parse an unencrypted PEM private key.

    Checking an RSA key takes 0.05 to 0.3 s of CPU time, so the most recent keys are cached.

    Raises:
        CertificateError: It is not PEM, is encrypted, or is neither RSA nor elliptic curve.
    """
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"not a PEM private key: {error}") from None
    if isinstance(key, ec.EllipticCurvePrivateKey | rsa.RSAPrivateKey):
        return key
    raise CertificateError("the private key is neither an RSA key nor an elliptic curve key")


def private_pem(key: PrivateKey) -> bytes:
    """Encode a private key in its traditional form, the only one Kubernetes' token signer reads."""
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def public_pem(key: PublicKey) -> bytes:
    """Encode a public key."""
    return key.public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
