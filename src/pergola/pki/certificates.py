"""Certificates and the authorities that sign them: elliptic curves, made in milliseconds.

Everything is PEM on the outside. A certificate's validity begins a little in the past, because
clocks of machines differ.
"""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final, NamedTuple

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pergola.api.ip_ranges import parse_address

BACKDATED: Final = timedelta(hours=1)
_RENEW_AT: Final = 0.8
_RENEW_BEFORE: Final = timedelta(days=10)


class CertificateError(Exception):
    """A certificate or key cannot be used; the text says which and why."""


class Pair(NamedTuple):
    """A certificate (or public key) and its private key, both PEM."""

    public: bytes
    private: bytes


class Authority:
    """A certificate authority.

    Raises:
        CertificateError: certificate or key cannot be read, or do not belong together.
    """

    def __init__(self, pair: Pair) -> None:
        self.pair = pair
        self._certificate = read_certificate(pair.public)
        self._key = _read_key(pair.private)
        if self._certificate.public_key() != self._key.public_key():
            raise CertificateError("the authority's key does not belong to its certificate")

    @classmethod
    def create(cls, name: str, now: datetime, lifetime: timedelta) -> "Authority":
        """A new authority that signs itself.

        Args:
            name: its common name.
            now: aware.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        subject = _named(name)
        certificate = (
            _builder(subject, subject, key.public_key(), key.public_key(), now, now + lifetime)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(Pair(_pem(certificate), _private(key)))

    def issue(self, name: str, hosts: Iterable[str], now: datetime, lifetime: timedelta) -> Pair:
        """A serving certificate; it ends with the authority's at the latest.

        Args:
            hosts: DNS names and IP addresses.
        """
        key = ec.generate_private_key(ec.SECP256R1())
        until = min(now + lifetime, self._certificate.not_valid_after_utc)
        issuer = self._certificate
        certificate = (
            _builder(
                _named(name), issuer.subject, key.public_key(), self._key.public_key(), now, until
            )
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage([ExtendedKeyUsageOID.SERVER_AUTH]), critical=False)
            .add_extension(x509.SubjectAlternativeName([_host(h) for h in hosts]), critical=False)
            .sign(self._key, hashes.SHA256())
        )
        return Pair(_pem(certificate), _private(key))

    def has_signed(self, pem: bytes) -> bool:
        """Whether a certificate was signed by this authority; says nothing of its validity."""
        return signed_by(read_certificate(pem), self._certificate)


def key_pair() -> Pair:
    """A key pair to sign and check tokens with."""
    key = ec.generate_private_key(ec.SECP256R1())
    public = key.public_key().public_bytes(
        serialization.Encoding.PEM, serialization.PublicFormat.SubjectPublicKeyInfo
    )
    return Pair(public, _private(key))


def read_certificate(pem: bytes) -> x509.Certificate:
    """The first certificate of a PEM text.

    Raises:
        CertificateError: there is none.
    """
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"no PEM certificate: {error}") from None


def read_bundle(pem: bytes) -> list[x509.Certificate]:
    """All certificates of a PEM text, in its order; none if it is empty.

    Raises:
        CertificateError: one of them cannot be read.
    """
    if not pem.strip():
        return []
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError(f"no PEM bundle of certificates: {error}") from None


def renewal_of(certificate: x509.Certificate) -> datetime:
    """When to renew: after 80 % of the validity, or 10 days before its end, whichever is first.

    The ten days do not count where they would have it renewed in the first half of its life.
    """
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    span = ends - begins
    early = ends - _RENEW_BEFORE
    at = begins + span * _RENEW_AT
    return min(at, early) if early > begins + span / 2 else at


def signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Whether one certificate was signed with the key of another one."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def hosts_of(certificate: x509.Certificate) -> frozenset[str]:
    """The DNS names and IP addresses that a certificate is for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    dns = names.get_values_for_type(x509.DNSName)
    return frozenset([*dns, *map(str, names.get_values_for_type(x509.IPAddress))])


def _builder(
    subject: x509.Name,
    issuer: x509.Name,
    key: ec.EllipticCurvePublicKey,
    issuer_key: ec.EllipticCurvePublicKey,
    now: datetime,
    until: datetime,
) -> x509.CertificateBuilder:
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .not_valid_before(now - BACKDATED)
        .not_valid_after(until)
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(
            x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key), critical=False
        )
    )


def _named(name: str) -> x509.Name:
    return x509.Name([x509.NameAttribute(NameOID.COMMON_NAME, name)])


def _read_key(pem: bytes) -> ec.EllipticCurvePrivateKey:
    try:
        key = serialization.load_pem_private_key(pem, password=None)
    except (ValueError, TypeError) as error:
        raise CertificateError(f"no PEM private key: {error}") from None
    if not isinstance(key, ec.EllipticCurvePrivateKey):
        raise CertificateError("the authority's key is no elliptic curve key")
    return key


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)


def _private(key: ec.EllipticCurvePrivateKey) -> bytes:
    # Kubernetes' token signer reads EC keys in the traditional form only.
    return key.private_bytes(
        serialization.Encoding.PEM,
        serialization.PrivateFormat.TraditionalOpenSSL,
        serialization.NoEncryption(),
    )


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(parse_address(host))
    except ValueError:
        return x509.DNSName(host)


def _usage(*, signs_certificates: bool) -> x509.KeyUsage:
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=False,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )
