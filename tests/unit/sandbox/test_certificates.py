import ssl
from datetime import UTC, datetime
from pathlib import Path

from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.ec import EllipticCurvePrivateKey
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pergola.sandbox.certificates import Authority, key_pair

NOW = datetime(2030, 1, 1, tzinfo=UTC)


def test_the_serving_certificate_is_for_its_hosts_and_signed_by_the_authority() -> None:
    authority = Authority("sandbox", NOW)
    certificate = x509.load_pem_x509_certificate(
        authority.issue("server", ("127.0.0.1", "localhost")).public
    )
    ca = x509.load_pem_x509_certificate(authority.pair.public)

    certificate.verify_directly_issued_by(ca)
    names = certificate.extensions.get_extension_for_class(x509.SubjectAlternativeName).value
    assert names.get_values_for_type(x509.DNSName) == ["localhost"]
    assert [str(ip) for ip in names.get_values_for_type(x509.IPAddress)] == ["127.0.0.1"]
    assert certificate.not_valid_before_utc < NOW < certificate.not_valid_after_utc


def test_a_tls_server_can_be_made_of_it(tmp_path: Path) -> None:
    pair = Authority("sandbox").issue("server", ("localhost",))
    (tmp_path / "crt").write_bytes(pair.public)
    (tmp_path / "key").write_bytes(pair.private)

    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(tmp_path / "crt", tmp_path / "key")


def test_token_keys_are_in_the_form_that_kubernetes_reads() -> None:
    pair = key_pair()

    assert pair.private.startswith(b"-----BEGIN EC PRIVATE KEY-----")
    assert pair.public.startswith(b"-----BEGIN PUBLIC KEY-----")
    assert isinstance(load_pem_private_key(pair.private, None), EllipticCurvePrivateKey)
