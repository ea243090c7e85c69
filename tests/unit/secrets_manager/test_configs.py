"""The contents of each credential."""

import base64
import csv
import io
import os
from collections import Counter
from datetime import UTC, datetime, timedelta

import bcrypt
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from pergola.api.objects import maps_at
from pergola.kube.yaml import parse
from pergola.pki import Authority, KeyAlgorithm, TokenFile, kubeconfig, read_certificate
from pergola.secrets_manager import (
    BasicAuth,
    Certificate,
    CertificateAuthority,
    ClientKubeconfig,
    EncryptionKey,
    Kubeconfig,
    RsaKey,
    SecretConfig,
    SecretsManagerError,
    StaticToken,
    StaticTokens,
)
from pergola.secrets_manager.configs import Inputs, SecretData
from pergola.secrets_manager.configs.passwords import random_text

NOW = datetime(2030, 1, 1, tzinfo=UTC)
YEAR = timedelta(days=365)
EC = KeyAlgorithm.EC_P256
CLIENT = ClientKubeconfig(
    name="bootstrap",
    user="admin",
    groups=("system:masters",),
    server="https://api.example",
    server_ca=b"CA",
    context="garden",
)


@pytest.fixture(scope="module")
def signer() -> Authority:
    return Authority.create("ca", NOW, YEAR)


def generated(config: SecretConfig, signer: Authority | None = None) -> SecretData:
    inputs = Inputs(
        object_name=f"{config.name}-0",
        now=NOW,
        lifetime=YEAR,
        random_bytes=os.urandom,
        signer=signer,
    )
    return config.generate(inputs)


def test_a_password_has_the_given_length_and_a_matching_htpasswd_line() -> None:
    data = generated(BasicAuth("ingress", length=32))

    assert data["username"] == b"admin"
    assert len(data["password"]) == 32
    user, _, hashed = data["auth"].partition(b":")
    assert user == b"admin"
    assert bcrypt.checkpw(data["password"], hashed)


def test_an_encryption_key_is_named_after_its_time_and_has_raw_bytes() -> None:
    data = generated(EncryptionKey("etcd-key"))

    assert data["key"] == b"key1893456000"
    assert len(data["secret"]) == 32
    assert (data["provider"], data["encoding"]) == (b"", b"none")


def test_a_static_token_file_is_a_table_that_the_api_server_reads() -> None:
    users = (StaticToken("health-check"), StaticToken("o,dd", ("a", "b")))
    text = generated(StaticTokens("tokens", users))["static_tokens.csv"].decode()

    rows = list(csv.reader(io.StringIO(text)))
    assert [row[1:] for row in rows] == [
        ["health-check", "health-check"],
        ["o,dd", "o,dd", "a,b"],
    ]
    assert len({row[0] for row in rows}) == 2
    assert all(len(row[0]) == 128 for row in rows)


def test_a_client_kubeconfig_contains_the_certificate(signer: Authority) -> None:
    data = generated(CLIENT, signer)

    assert set(data) == {"ca.crt", "bootstrap.crt", "bootstrap.key", "kubeconfig"}
    assert data["ca.crt"] == signer.pair.public
    config = parse(data["kubeconfig"])
    assert isinstance(config, dict)
    (user,) = maps_at(config, "users")
    assert base64.b64decode(user["user"]["client-certificate-data"]) == data["bootstrap.crt"]
    subject = read_certificate(data["bootstrap.crt"]).subject.rfc4514_string()
    assert subject == "CN=admin,O=system:masters"


def test_the_published_authority_is_the_signer(signer: Authority) -> None:
    shown = Certificate(name="a", common_name="a", hosts=("a",), for_server=True, algorithm=EC)
    hidden = Certificate(
        name="a", common_name="a", hosts=("a",), for_server=True, algorithm=EC, publish_ca=False
    )

    assert generated(shown, signer)["ca.crt"] == signer.pair.public
    assert set(generated(hidden, signer)) == {"tls.crt", "tls.key"}


@pytest.mark.parametrize("config", [CLIENT, Certificate(name="a", common_name="a")])
def test_a_certificate_without_a_signer_is_an_error(config: SecretConfig) -> None:
    with pytest.raises(SecretsManagerError, match="needs an authority to sign it"):
        generated(config)


@pytest.mark.parametrize(
    ("config", "data", "problem"),
    [
        (CertificateAuthority("ca"), {}, "it lacks ca.crt, ca.key"),
        (RsaKey("key"), {"id_rsa": b""}, "it lacks id_rsa"),
        (RsaKey("key"), {"id_rsa": b"x"}, "not a PEM private key"),
        (BasicAuth("auth"), {"username": b"admin", "password": b"x"}, "it lacks auth"),
        (EncryptionKey("key"), {"key": b"key1"}, "it lacks secret"),
        (
            BasicAuth("auth", "root"),
            {"username": b"admin", "password": b"x", "auth": b"admin:x"},
            "it is for another user",
        ),
        (StaticTokens("tokens", ()), {}, "it lacks static_tokens.csv"),
        (
            StaticTokens("tokens", (StaticToken("a", ("b",)), StaticToken("c"))),
            {"static_tokens.csv": b"x,a,a,b"},
            "it is for other users or groups",
        ),
        (
            StaticTokens("tokens", (StaticToken("a"),)),
            {"static_tokens.csv": b"x,a,a," + b"b" * 200_000},
            "it is for other users or groups",
        ),
        (Kubeconfig("generic", b"a"), {"kubeconfig": b"b"}, "its content differs"),
        (CLIENT, {}, "it is always regenerated"),
    ],
)
def test_data_that_cannot_be_adopted_is_reported(
    config: SecretConfig, data: SecretData, problem: str
) -> None:
    assert config.problem_with(data, None).startswith(problem)


def test_tokens_that_the_original_wrote_can_be_adopted() -> None:
    tokens = StaticTokens("tokens", (StaticToken("health-check"), StaticToken("a", ("b", "c"))))
    data = {"static_tokens.csv": b'x,health-check,health-check,\ny,a,a,"b,c"'}

    assert tokens.problem_with(data, None) == ""


def test_generated_data_can_be_adopted(signer: Authority) -> None:
    certificate = Certificate(
        name="a", common_name="a", hosts=("b", "a"), for_server=True, algorithm=EC
    )
    generic = kubeconfig("garden", "https://api.example", b"CA", TokenFile("/run/token"))
    for config in (
        CertificateAuthority("ca", EC),
        certificate,
        RsaKey("key", EC),
        BasicAuth("auth"),
        EncryptionKey("key"),
        StaticTokens("tokens", (StaticToken("x"), StaticToken("y", ("a", "b")))),
        Kubeconfig.of("generic", generic),
    ):
        data = generated(config, signer if config.is_signed else None)
        assert config.problem_with(data, signer) == ""


@pytest.mark.parametrize(
    ("changed", "problem"),
    [
        (Certificate(name="a", common_name="a", hosts=("b",), for_server=True), "other hosts"),
        (Certificate(name="a", common_name="b", hosts=("a",), for_server=True), "another name"),
    ],
)
def test_a_certificate_with_another_purpose_is_not_adopted(
    signer: Authority, changed: Certificate, problem: str
) -> None:
    issued = Certificate(name="a", common_name="a", hosts=("a",), for_server=True, algorithm=EC)
    data = generated(issued, signer)

    assert problem in changed.problem_with(data, signer)
    assert "another authority" in issued.problem_with(data, Authority.create("x", NOW, YEAR))


def test_fingerprints_never_contain_secrets_and_ignore_the_order_of_hosts() -> None:
    one = Certificate(name="a", common_name="a", hosts=("a", "b"))
    other = Certificate(name="a", common_name="a", hosts=("b", "a"))
    assert one.fingerprint() == other.fingerprint()
    # A release that prefers another kind of key must not replace a running cluster's authority.
    assert CertificateAuthority("ca").fingerprint() == CertificateAuthority("ca", EC).fingerprint()


@given(st.integers(0, 300))
@settings(max_examples=30)
def test_random_text_has_the_given_length_and_only_letters_and_digits(length: int) -> None:
    text = random_text(length, os.urandom)

    assert len(text) == length
    assert text == "" or text.isalnum()
    assert text.isascii()


def test_random_text_is_uniformly_distributed() -> None:
    every_byte = bytes(range(256))

    counts = Counter(random_text(248, lambda _: every_byte))

    assert set(counts.values()) == {4}
    assert len(counts) == 62
