"""The pool of AWS clients and the credentials they use: spec 30 §2 item 6."""

import base64
from collections.abc import Mapping
from datetime import UTC, datetime, timedelta

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.cloud.aws import AwsClients, Place
from pergola.cloud.aws.identity import decoded, role_of
from pergola.cloud.errors import CredentialsInvalid

NOW = datetime(2026, 1, 1, tzinfo=UTC)
PLACE = Place(Key("shoot--p--s", "cloudprovider"), "eu-west-1")
OF = "Secret shoot--p--s/cloudprovider"


class Secrets:
    """Secrets of a seed; each write creates a new version."""

    def __init__(self) -> None:
        self.version = 0
        self.data: dict[str, str] | None = None

    def put(self, data: Mapping[str, str]) -> None:
        self.version += 1
        self.data = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}

    async def read(self, gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        assert (gvk.kind, key) == ("Secret", PLACE.secret)
        if self.data is None:
            return None
        metadata = {"uid": "u", "resourceVersion": str(self.version)}
        return {"metadata": metadata, "data": self.data}


@pytest.fixture
def secrets() -> Secrets:
    found = Secrets()
    found.put({"accessKeyID": "AKIA", "secretAccessKey": "one"})
    return found


async def test_a_client_is_reused_while_its_secret_is_unchanged(secrets: Secrets) -> None:
    clients = AwsClients()
    async with clients.use(secrets.read, PLACE, NOW) as first:
        pass
    async with clients.use(secrets.read, PLACE, NOW + timedelta(days=30)) as second:
        assert second is first


async def test_another_region_has_another_client(secrets: Secrets) -> None:
    clients = AwsClients()
    elsewhere = PLACE._replace(region="us-east-1")
    async with (
        clients.use(secrets.read, PLACE, NOW) as here,
        clients.use(secrets.read, elsewhere, NOW) as there,
    ):
        assert (here.region, there.region) == ("eu-west-1", "us-east-1")


async def test_a_rotated_secret_gets_a_new_client_while_the_old_one_is_in_use(
    secrets: Secrets,
) -> None:
    clients = AwsClients()
    async with clients.use(secrets.read, PLACE, NOW) as old:
        secrets.put({"accessKeyID": "AKIA", "secretAccessKey": "two"})
        async with clients.use(secrets.read, PLACE, NOW) as new:
            assert new is not old
    async with clients.use(secrets.read, PLACE, NOW) as kept:
        assert kept is new


async def test_a_deleted_secret_is_reported_as_missing_credentials() -> None:
    with pytest.raises(CredentialsInvalid, match="does not exist; create it"):
        async with AwsClients().use(Secrets().read, PLACE, NOW):
            pass


async def test_no_error_shows_data_of_a_secret(secrets: Secrets) -> None:
    secrets.put({"accessKeyID": "AKIAVERYSECRET"})
    with pytest.raises(CredentialsInvalid) as caught:
        async with AwsClients().use(secrets.read, PLACE, NOW):
            pass

    assert "AKIAVERYSECRET" not in str(caught.value)
    assert "secretAccessKey" in str(caught.value)


def test_data_that_is_not_valid_base64_is_refused() -> None:
    with pytest.raises(CredentialsInvalid, match="not valid base64"):
        decoded({"data": {"accessKeyID": "a"}}, OF)


@pytest.mark.parametrize(
    ("data", "role"),
    [
        ({"accessKeyID": b"a", "secretAccessKey": b"b"}, None),
        ({"accessKeyID": b"a", "secretAccessKey": b"b", "roleARN": b"r", "token": b"t"}, None),
        ({"accessKeyID": b"", "roleARN": b"r", "token": b"t"}, "r"),
        ({"roleARN": b"arn:aws:iam::1:role/r\n", "token": b"t"}, "arn:aws:iam::1:role/r"),
        ({"config": b"roleARN: arn:aws:iam::1:role/c\n", "token": b"t"}, "arn:aws:iam::1:role/c"),
    ],
)
def test_a_secret_has_keys_or_a_role_with_a_token(data: dict[str, bytes], role: str | None) -> None:
    assert role_of(data, OF) == role


@pytest.mark.parametrize(
    ("data", "missing"),
    [
        ({"roleARN": b"arn"}, "no token"),
        ({"token": b"t"}, "no roleARN"),
        ({"token": b"t", "config": b": :"}, "no roleARN"),
        ({"token": b"t", "config": b"[1]"}, "no roleARN"),
    ],
)
def test_a_workload_identity_needs_a_role_and_a_token(data: dict[str, bytes], missing: str) -> None:
    with pytest.raises(CredentialsInvalid, match=missing):
        role_of(data, OF)


async def test_without_a_secret_the_default_chain_is_used_with_a_client_per_region(
    secrets: Secrets,
) -> None:
    clients = AwsClients()
    chain = Place(None, "eu-west-1")
    async with clients.use(secrets.read, chain, NOW) as first:
        pass
    async with clients.use(secrets.read, chain, NOW + timedelta(days=30)) as second:
        assert second is first


async def test_secrets_with_the_same_keys_share_connections() -> None:
    data = {"accessKeyID": "QUtJQQ==", "secretAccessKey": "b25l"}

    async def read(gvk: GroupVersionKind, key: Key) -> JsonObject | None:
        return {"metadata": {"uid": key.namespace, "resourceVersion": "1"}, "data": data}

    clients, opened = AwsClients(), set()
    for number in range(200):
        place = Place(Key(f"shoot--p--{number}", "cloudprovider"), "eu-west-1")
        async with clients.use(read, place, NOW) as aws:
            opened.add(id(aws.services))

    assert len(opened) == 1
