"""Reading certificates: their purpose, their signer, and their renewal time."""

from collections.abc import Iterable
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.exceptions import InvalidSignature
from cryptography.hazmat.primitives.serialization import Encoding

from pergola.pki.errors import CertificateError

RENEW_AT: Final = 0.8
_RENEW_BEFORE: Final = timedelta(days=10)


def read_certificate(pem: bytes) -> x509.Certificate:
    """Parse the first certificate of a PEM text.

    Raises:
        CertificateError: The text contains no certificate.
    """
    try:
        return x509.load_pem_x509_certificate(pem)
    except ValueError as error:
        raise CertificateError(f"not a PEM certificate: {error}") from None


def read_bundle(pem: bytes) -> list[x509.Certificate]:
    """Parse all certificates in a PEM text, in order; an empty text contains none.

    Raises:
        CertificateError: One of them cannot be read.
    """
    if not pem.strip():
        return []
    try:
        return x509.load_pem_x509_certificates(pem)
    except ValueError as error:
        raise CertificateError(f"not a PEM bundle of certificates: {error}") from None


def write_bundle(certificates: Iterable[x509.Certificate]) -> bytes:
    """Encode certificates as one PEM text."""
    return b"".join(certificate.public_bytes(Encoding.PEM) for certificate in certificates)


def renewal_of(certificate: x509.Certificate) -> datetime:
    """Return when to renew: after 80 % of the validity, or 10 days before expiry if that is first.

    The ten days do not apply if they would renew a certificate in the first half of its life.
    """
    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    span = ends - begins
    early = ends - _RENEW_BEFORE
    at = begins + span * RENEW_AT
    return min(at, early) if early > begins + span / 2 else at


def signed_by(certificate: x509.Certificate, authority: x509.Certificate) -> bool:
    """Return whether an authority's key signed a certificate."""
    try:
        certificate.verify_directly_issued_by(authority)
    except (ValueError, TypeError, InvalidSignature):
        return False
    return True


def hosts_of(certificate: x509.Certificate) -> frozenset[str]:
    """Return the DNS names and IP addresses that a certificate is valid for."""
    try:
        names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    except x509.ExtensionNotFound:
        return frozenset()
    dns = names.get_values_for_type(x509.DNSName)
    return frozenset([*dns, *map(str, names.get_values_for_type(x509.IPAddress))])
