"""Keys in Secrets."""

import pytest

from pergola.cloud.aws import Credentials, credentials_of
from pergola.cloud.errors import CredentialsInvalid


@pytest.mark.parametrize(
    "names",
    [
        ("accessKeyID", "secretAccessKey", "sessionToken"),
        ("AccessKeyID", "SecretAccessKey", "SessionToken"),
        ("AWS_ACCESS_KEY_ID", "AWS_SECRET_ACCESS_KEY", "AWS_SESSION_TOKEN"),
    ],
    ids=["gardener", "cluster-api", "environment"],
)
def test_keys_are_found_under_all_their_names(names: tuple[str, str, str]) -> None:
    key, secret, token = names
    data = {key: b"AKIA1", secret: b"s3cret\n"}
    assert credentials_of(data, "Secret a/b") == Credentials("AKIA1", "s3cret")
    data[token] = b"t0ken"
    assert credentials_of(data, "Secret a/b") == Credentials("AKIA1", "s3cret", "t0ken")


@pytest.mark.parametrize(
    ("data", "said"),
    [
        ({}, "Secret a/b has no keys accessKeyID and secretAccessKey"),
        ({"accessKeyID": b"AKIA1"}, "Secret a/b: key secretAccessKey is missing"),
        ({"secretAccessKey": b"s3cret"}, "Secret a/b: key accessKeyID is missing"),
        ({"accessKeyID": b" ", "secretAccessKey": b"s3cret"}, "key accessKeyID is missing, empty"),
        ({"accessKeyID": b"AKIA1", "secretAccessKey": b"\xff"}, "key secretAccessKey is missing"),
    ],
)
def test_missing_keys_are_reported_without_values(data: dict[str, bytes], said: str) -> None:
    with pytest.raises(CredentialsInvalid) as raised:
        credentials_of(data, "Secret a/b")
    assert said in str(raised.value)
    assert "AKIA1" not in str(raised.value)
    assert "s3cret" not in str(raised.value)


def test_secrets_are_not_in_the_repr() -> None:
    shown = repr(Credentials("AKIA1", "s3cret", "t0ken"))
    assert "s3cret" not in shown
    assert "t0ken" not in shown
