import base64
from datetime import UTC, datetime, timedelta

import pytest
from cryptography import x509
from cryptography.hazmat.primitives.asymmetric.rsa import RSAPublicKey
from cryptography.hazmat.primitives.serialization import (
    Encoding,
    NoEncryption,
    PrivateFormat,
)
from cryptography.x509.oid import ExtendedKeyUsageOID, NameOID

from pergola.pki import (
    Authority,
    CertificateError,
    ClientCertificate,
    KeyAlgorithm,
    Pair,
    Template,
    Token,
    TokenFile,
    key_pair,
    kubeconfig,
    read_certificate,
    read_private_key,
)

NOW = datetime(2030, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)


@pytest.fixture(scope="module")
def rsa_authority() -> Authority:
    minute = timedelta(minutes=1)
    return Authority.create("ca", NOW, YEAR, algorithm=KeyAlgorithm.RSA_3072, backdated=minute)


@pytest.fixture(scope="module")
def ec_authority() -> Authority:
    return Authority.create("ca", NOW, YEAR)


def purposes(pem: bytes) -> list[x509.ObjectIdentifier]:
    extension = read_certificate(pem).extensions.get_extension_for_class(x509.ExtendedKeyUsage)
    return list(extension.value)


def test_an_rsa_authority_signs_with_a_key_that_it_can_read_back(rsa_authority: Authority) -> None:
    reread = Authority(rsa_authority.pair)
    server = reread.issue_server("server", ["a.example"], NOW, YEAR)

    key = read_certificate(rsa_authority.pair.public).public_key()
    assert isinstance(key, RSAPublicKey)
    assert key.key_size == 3072
    assert rsa_authority.pair.private.startswith(b"-----BEGIN RSA PRIVATE KEY-----")
    assert rsa_authority.has_signed(server.public)


def test_the_start_of_validity_can_be_in_the_past(rsa_authority: Authority) -> None:
    certificate = read_certificate(rsa_authority.pair.public)

    assert certificate.not_valid_before_utc == NOW - timedelta(minutes=1)


def test_a_client_certificate_names_the_user_and_its_groups(ec_authority: Authority) -> None:
    pair = ec_authority.issue_client("jane", ["admins", "viewers"], NOW, YEAR)

    subject = read_certificate(pair.public).subject
    names = [attribute.value for attribute in subject.get_attributes_for_oid(NameOID.COMMON_NAME)]
    groups = subject.get_attributes_for_oid(NameOID.ORGANIZATION_NAME)
    assert names == ["jane"]
    assert [attribute.value for attribute in groups] == ["admins", "viewers"]
    assert purposes(pair.public) == [ExtendedKeyUsageOID.CLIENT_AUTH]


def test_a_certificate_can_be_for_servers_and_clients(ec_authority: Authority) -> None:
    template = Template(
        common_name="etcd", hosts=("etcd-0",), lifetime=YEAR, for_server=True, for_client=True
    )
    pair = ec_authority.issue(template, NOW, KeyAlgorithm.RSA_3072)

    assert purposes(pair.public) == [
        ExtendedKeyUsageOID.SERVER_AUTH,
        ExtendedKeyUsageOID.CLIENT_AUTH,
    ]
    usage = read_certificate(pair.public).extensions.get_extension_for_class(x509.KeyUsage).value
    assert usage.key_encipherment  # RSA key exchange of older TLS versions needs it


@pytest.mark.parametrize(
    ("template", "message"),
    [
        (Template(common_name="x" * 65, lifetime=YEAR, for_client=True), "can carry the name"),
        (Template(common_name="", lifetime=YEAR, for_client=True), "can carry the name"),
        (Template(common_name="x", lifetime=YEAR), "neither a server nor a client"),
        (
            Template(common_name="x", lifetime=YEAR, hosts=("münchen",), for_server=True),
            "not a DNS name or IP address",
        ),
    ],
)
def test_an_invalid_certificate_request_is_refused_in_one_sentence(
    ec_authority: Authority, template: Template, message: str
) -> None:
    with pytest.raises(CertificateError, match=message):
        ec_authority.issue(template, NOW)


def test_a_key_of_another_kind_or_an_encrypted_key_is_refused() -> None:
    from cryptography.hazmat.primitives.asymmetric import ed25519
    from cryptography.hazmat.primitives.serialization import BestAvailableEncryption

    other = ed25519.Ed25519PrivateKey.generate().private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, NoEncryption()
    )
    encrypted = read_private_key(key_pair().private).private_bytes(
        Encoding.PEM, PrivateFormat.PKCS8, BestAvailableEncryption(b"secret")
    )
    with pytest.raises(CertificateError, match="neither an RSA key nor an elliptic curve key"):
        read_private_key(other)
    with pytest.raises(CertificateError, match="not a PEM private key"):
        read_private_key(encrypted)


@pytest.mark.parametrize(
    ("user", "expected"),
    [
        (Token("t0"), {"token": "t0"}),
        (TokenFile("/run/token"), {"tokenFile": "/run/token"}),
        (
            ClientCertificate(Pair(b"crt", b"key")),
            {"client-certificate-data": "Y3J0", "client-key-data": "a2V5"},
        ),
    ],
)
def test_a_kubeconfig_has_one_context_for_its_user(
    user: Token | TokenFile | ClientCertificate, expected: dict[str, str]
) -> None:
    config = kubeconfig("garden", "https://api.example", b"CA", user, namespace="garden")

    assert config["current-context"] == "garden"
    assert config["contexts"] == [
        {
            "name": "garden",
            "context": {"cluster": "garden", "user": "garden", "namespace": "garden"},
        }
    ]
    assert config["users"] == [{"name": "garden", "user": expected}]
    ca = config["clusters"][0]["cluster"]["certificate-authority-data"]
    assert base64.b64decode(ca) == b"CA"


def test_a_kubeconfig_without_a_bundle_trusts_the_system() -> None:
    config = kubeconfig("garden", "https://api.example", b"", Token("t0"))

    assert config["clusters"][0]["cluster"] == {"server": "https://api.example"}
