import ssl
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pergola.pki import (
    Authority,
    CertificateError,
    Pair,
    hosts_of,
    key_pair,
    read_bundle,
    read_certificate,
    renewal_of,
    signed_by,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
DAY = timedelta(days=1)


def test_the_serving_certificate_is_for_its_hosts_and_signed_by_the_authority() -> None:
    authority = Authority.create("sandbox", NOW, YEAR)
    certificate = x509.load_pem_x509_certificate(
        authority.issue_server("server", ("127.0.0.1", "localhost"), NOW, YEAR).public
    )
    ca = x509.load_pem_x509_certificate(authority.pair.public)

    certificate.verify_directly_issued_by(ca)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert certificate.not_valid_before_utc < NOW < certificate.not_valid_after_utc


def test_a_tls_server_can_use_the_certificate(tmp_path: Path) -> None:
    pair = Authority.create("sandbox", NOW, YEAR).issue_server("server", ("localhost",), NOW, YEAR)
    (tmp_path / "crt").write_bytes(pair.public)
    (tmp_path / "key").write_bytes(pair.private)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")


def test_token_keys_have_the_format_of_kubernetes() -> None:
    pair = key_pair()

    assert pair.private.startswith(b"-----BEGIN EC PRIVATE KEY-----")
    assert pair.public.startswith(b"-----BEGIN PUBLIC KEY-----")
    assert isinstance(load_pem_private_key(pair.private, None), EllipticCurvePrivateKey)


def test_a_certificate_expires_no_later_than_its_authority() -> None:
    authority = Authority.create("ca", NOW, 10 * DAY)
    pair = authority.issue_server("server", ("localhost",), NOW + 5 * DAY, YEAR)

    assert read_certificate(pair.public).not_valid_after_utc == NOW + 10 * DAY


def test_an_authority_recognizes_its_certificates() -> None:
    one, other = Authority.create("ca", NOW, YEAR), Authority.create("ca", NOW, YEAR)
    served = one.issue_server("server", ("a.example", "::1"), NOW, YEAR).public

    assert one.has_signed(served)
    assert not other.has_signed(served)
    assert signed_by(read_certificate(one.pair.public), read_certificate(one.pair.public))
    assert hosts_of(read_certificate(served)) == {"a.example", "::1"}
    assert hosts_of(read_certificate(one.pair.public)) == frozenset()


@pytest.mark.parametrize(
    ("lifetime", "renewed"),
    [
        (30 * DAY, NOW + 20 * DAY),
        (timedelta(hours=9), NOW + timedelta(hours=7)),  # 80 % of nine hours and one in the past
        (YEAR, None),
    ],
)
def test_certificates_are_renewed_before_they_expire(
    lifetime: timedelta, renewed: datetime | None
) -> None:
    certificate = read_certificate(Authority.create("ca", NOW, lifetime).pair.public)

    begins, ends = certificate.not_valid_before_utc, certificate.not_valid_after_utc
    assert renewal_of(certificate) == (renewed or begins + (ends - begins) * 0.8)


def test_an_unreadable_certificate_is_reported() -> None:
    pair = Authority.create("ca", NOW, YEAR).pair
    with pytest.raises(CertificateError, match="not a PEM certificate"):
        read_certificate(b"nonsense")
    with pytest.raises(CertificateError, match="not a PEM private key"):
        Authority(Pair(pair.public, b"nonsense"))
    with pytest.raises(CertificateError, match="does not belong"):
        Authority(Pair(pair.public, key_pair().private))
    with pytest.raises(CertificateError, match="not a PEM bundle"):
        read_bundle(b"nonsense")
    assert read_bundle(b"") == []
