"""Certificate authorities, and the certificates they issue.

A certificate becomes valid slightly in the past, because clocks of machines differ, and expires
with its authority at the latest.
"""

from collections.abc import Iterable
from dataclasses import dataclass
from datetime import datetime, timedelta
from typing import Final

from cryptography import x509
from cryptography.hazmat.primitives import hashes, serialization
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pergola.api.ip_ranges import parse_address
from pergola.pki.certificates import read_certificate, signed_by
from pergola.pki.errors import CertificateError
from pergola.pki.keys import (
    KeyAlgorithm,
    Pair,
    PrivateKey,
    PublicKey,
    generate_key,
    private_pem,
    read_private_key,
)

BACKDATED: Final = timedelta(hours=1)
"""How long before its creation a certificate becomes valid, for clocks that are slow."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Template:
    """The content of a certificate.

    Attributes:
        common_name: At most 64 characters; the user name, for a client of Kubernetes.
        organizations: The groups, for a client of Kubernetes.
        hosts: DNS names and IP addresses of a server.
        for_server: Whether a server may present it.
        for_client: Whether a client may present it.
        backdated: How long before its creation it becomes valid.
        may_outlive: Whether its lifetime may exceed that of its authority.
    """

    common_name: str
    lifetime: timedelta
    organizations: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    for_server: bool = False
    for_client: bool = False
    backdated: timedelta = BACKDATED
    may_outlive: bool = False


class Authority:
    """A certificate authority.

    Args:
        pair: Its certificate and key.
        key: The pair's key, if already parsed, which takes long for RSA.

    Raises:
        CertificateError: The certificate or key cannot be read, or they do not belong together.
    """

    def __init__(self, pair: Pair, key: PrivateKey | None = None) -> None:
        self.pair = pair
        self.certificate = read_certificate(pair.public)
        self._key = key or read_private_key(pair.private)
        if self.certificate.public_key() != self._key.public_key():
            raise CertificateError("the authority's key does not belong to its certificate")

    @classmethod
    def create(
        cls,
        name: str,
        now: datetime,
        lifetime: timedelta,
        *,
        algorithm: KeyAlgorithm = KeyAlgorithm.EC_P256,
        backdated: timedelta = BACKDATED,
    ) -> "Authority":
        """Create a self-signed authority.

        Args:
            name: Its common name, at most 64 characters.
            now: An aware time.
        """
        key = generate_key(algorithm)
        subject = _subject(name)
        certificate = (
            _builder(subject, subject, key.public_key(), key.public_key())
            .not_valid_before(now - backdated)
            .not_valid_after(now + lifetime)
            .add_extension(x509.BasicConstraints(ca=True, path_length=None), critical=True)
            .add_extension(_usage(key, signs_certificates=True), critical=True)
            .sign(key, hashes.SHA256())
        )
        return cls(Pair(_pem(certificate), private_pem(key)), key)

    def issue(
        self, template: Template, now: datetime, algorithm: KeyAlgorithm = KeyAlgorithm.EC_P256
    ) -> Pair:
        """Issue a certificate with a new key.

        Raises:
            CertificateError: The template has a name that is not valid in a certificate.
        """
        key, until = generate_key(algorithm), now + template.lifetime
        if not template.may_outlive:
            until = min(until, self.certificate.not_valid_after_utc)
        builder = (
            _builder(
                _subject(template.common_name, template.organizations),
                self.certificate.subject,
                key.public_key(),
                self._key.public_key(),
            )
            .not_valid_before(now - template.backdated)
            .not_valid_after(until)
            .add_extension(x509.BasicConstraints(ca=False, path_length=None), critical=True)
            .add_extension(_usage(key, signs_certificates=False), critical=True)
            .add_extension(x509.ExtendedKeyUsage(_purposes(template)), critical=False)
        )
        if template.hosts:
            names = x509.SubjectAlternativeName([_host(host) for host in template.hosts])
            builder = builder.add_extension(names, critical=False)
        return Pair(_pem(builder.sign(self._key, hashes.SHA256())), private_pem(key))

    def issue_server(
        self, name: str, hosts: Iterable[str], now: datetime, lifetime: timedelta
    ) -> Pair:
        """Issue a server certificate with an elliptic curve key."""
        template = Template(
            common_name=name, hosts=tuple(hosts), lifetime=lifetime, for_server=True
        )
        return self.issue(template, now)

    def issue_client(
        self, name: str, organizations: Iterable[str], now: datetime, lifetime: timedelta
    ) -> Pair:
        """Issue a client certificate with an elliptic curve key.

        Args:
            name: The user name in Kubernetes.
            organizations: The groups in Kubernetes.
        """
        template = Template(
            common_name=name,
            organizations=tuple(organizations),
            lifetime=lifetime,
            for_client=True,
        )
        return self.issue(template, now)

    def has_signed(self, pem: bytes) -> bool:
        """Return whether this authority signed a certificate, valid or expired."""
        return signed_by(read_certificate(pem), self.certificate)


def _builder(
    subject: x509.Name, issuer: x509.Name, key: PublicKey, issuer_key: PublicKey
) -> x509.CertificateBuilder:
    issuer_id = x509.AuthorityKeyIdentifier.from_issuer_public_key(issuer_key)
    return (
        x509.CertificateBuilder()
        .subject_name(subject)
        .issuer_name(issuer)
        .public_key(key)
        .serial_number(x509.random_serial_number())
        .add_extension(x509.SubjectKeyIdentifier.from_public_key(key), critical=False)
        .add_extension(issuer_id, critical=False)
    )


def _subject(name: str, organizations: Iterable[str] = ()) -> x509.Name:
    attributes = [(NameOID.ORGANIZATION_NAME, value) for value in organizations]
    attributes.append((NameOID.COMMON_NAME, name))
    try:
        return x509.Name([x509.NameAttribute(oid, value) for oid, value in attributes])
    except ValueError as error:
        raise CertificateError(f"no certificate can carry the name {name!r}: {error}") from None


def _purposes(template: Template) -> list[x509.ObjectIdentifier]:
    server = [ExtendedKeyUsageOID.SERVER_AUTH] if template.for_server else []
    client = [ExtendedKeyUsageOID.CLIENT_AUTH] if template.for_client else []
    if not server and not client:
        raise CertificateError(
            f"certificate {template.common_name!r} is for neither a server nor a client"
        )
    return [*server, *client]


def _host(host: str) -> x509.GeneralName:
    try:
        return x509.IPAddress(parse_address(host))
    except ValueError:
        pass
    try:
        return x509.DNSName(host)
    except ValueError:
        raise CertificateError(f"{host!r} is not a DNS name or IP address") from None


def _usage(key: PrivateKey, *, signs_certificates: bool) -> x509.KeyUsage:
    is_rsa = not hasattr(key, "curve")
    return x509.KeyUsage(
        digital_signature=True,
        content_commitment=False,
        key_encipherment=is_rsa,
        data_encipherment=False,
        key_agreement=False,
        key_cert_sign=signs_certificates,
        crl_sign=signs_certificates,
        encipher_only=False,
        decipher_only=False,
    )


def _pem(certificate: x509.Certificate) -> bytes:
    return certificate.public_bytes(serialization.Encoding.PEM)
