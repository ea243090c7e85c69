"""The SSH key pair of nodes: spec 30 §10.4, with moto as AWS."""

from dataclasses import replace

import pytest

from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import NotFound
from pergola.flow import FlowFailed, State
from pergola.flow.picture import Fate
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import key_pair
from pergola.providers.aws.resources.step import Step
from pergola.providers.aws.resources.tags import specification
from pergola.providers.aws.state import (
    KEY_PAIR,
    KEY_PAIR_FINGERPRINT,
    KEY_PAIR_SPEC_FINGERPRINT,
)
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.sandbox.aws.world import Network
from tests.support.aws.flows import Flows, MortalAws
from tests.support.aws.steps import OTHER_PUBLIC_KEY, TECHNICAL_ID, StepsOf
from tests.support.documented.symptoms import symptom

NAME = f"{TECHNICAL_ID}-ssh-publickey"
REPLACED = ["ec2 DeleteKeyPair", "ec2 ImportKeyPair"]


@pytest.fixture
async def cluster(aws: CorrectedAws, client: AwsClient) -> StepsOf:
    """Return a cluster with its key pair."""
    cluster = StepsOf.byo(client, await Network.create(client))
    aws.writes()
    await cluster.ensure(key_pair.steps)
    return cluster


async def fingerprint(client: AwsClient) -> str:
    (pair,) = await client.pages("ec2", "DescribeKeyPairs", "KeyPairs", KeyNames=[NAME])
    return str(pair["KeyFingerprint"])


async def test_the_public_key_is_imported(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    assert aws.writes() == ["ec2 ImportKeyPair"]
    (pair,) = await client.pages("ec2", "DescribeKeyPairs", "KeyPairs", KeyNames=[NAME])
    assert tags_of(pair) == {
        f"kubernetes.io/cluster/{TECHNICAL_ID}": "owned",
        "Name": TECHNICAL_ID,
    }
    assert cluster.saved[KEY_PAIR] == NAME
    assert cluster.saved[KEY_PAIR_FINGERPRINT] == pair["KeyFingerprint"]
    assert cluster.saved[KEY_PAIR_SPEC_FINGERPRINT] == key_pair.spec_fingerprint(
        cluster.desired.ssh_public_key
    )


async def test_a_second_run_writes_nothing(aws: CorrectedAws, cluster: StepsOf) -> None:
    aws.writes()

    await cluster.ensure(key_pair.steps)

    assert aws.writes() == []
    assert (await cluster.plan(key_pair.steps))[key_pair.NAME].fate is Fate.KEEP


async def test_a_rotation_is_one_deletion_and_one_import(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    before = await fingerprint(client)
    cluster.want(ssh_public_key=OTHER_PUBLIC_KEY)
    planned = (await cluster.plan(key_pair.steps))[key_pair.NAME]
    aws.writes()

    await cluster.ensure(key_pair.steps)

    assert aws.writes() == REPLACED
    assert await fingerprint(client) != before
    assert planned.why == f"{NAME}: the public key has changed"


async def test_a_key_that_was_changed_in_aws_is_replaced(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    before = await fingerprint(client)
    await client.call("ec2", "DeleteKeyPair", KeyName=NAME)
    await client.call("ec2", "ImportKeyPair", KeyName=NAME, PublicKeyMaterial=OTHER_PUBLIC_KEY)
    aws.writes()

    await cluster.ensure(key_pair.steps)

    assert aws.writes() == REPLACED
    assert await fingerprint(client) == before


async def test_a_key_with_an_unknown_fingerprint_is_imported_once(
    aws: CorrectedAws, cluster: StepsOf
) -> None:
    cluster.saved = {}
    aws.writes()

    await cluster.ensure(key_pair.steps)
    await cluster.ensure(key_pair.steps)

    assert aws.writes() == REPLACED


@pytest.mark.parametrize("is_rotation", [False, True])
async def test_a_run_that_was_killed_after_the_import_does_not_repeat_it(
    moto_server: str, *, is_rotation: bool
) -> None:
    async with MortalAws(moto_server) as aws, aws.client("eu-west-1", retry=QUICK) as client:
        desired = StepsOf.byo(client, await Network.create(client)).desired
        cluster = Flows(aws, client, desired)
        if is_rotation:
            await cluster.run(only_key_pair)
            cluster.desired = replace(desired, ssh_public_key=OTHER_PUBLIC_KEY)

        assert await cluster.is_killed_after(2 if is_rotation else 1, only_key_pair)
        imported = await fingerprint(client)
        aws.writes()
        await cluster.run(only_key_pair)
        await cluster.run(only_key_pair)

        assert aws.writes() == []
        assert cluster.saved[KEY_PAIR] == NAME
        assert cluster.saved[KEY_PAIR_FINGERPRINT] == imported


async def test_a_rotation_that_was_killed_between_deletion_and_import_is_completed(
    moto_server: str,
) -> None:
    async with MortalAws(moto_server) as aws, aws.client("eu-west-1", retry=QUICK) as client:
        desired = StepsOf.byo(client, await Network.create(client)).desired
        cluster = Flows(aws, client, desired)
        await cluster.run(only_key_pair)
        before = await fingerprint(client)
        cluster.desired = replace(desired, ssh_public_key=OTHER_PUBLIC_KEY)

        assert await cluster.is_killed_after(1, only_key_pair)
        aws.writes()
        await cluster.run(only_key_pair)

        assert aws.writes() == ["ec2 ImportKeyPair"]
        assert await fingerprint(client) != before


def only_key_pair(desired: Desired, state: State) -> list[Step]:
    del state
    return key_pair.steps(desired)


async def test_without_a_public_key_there_is_no_key_pair(
    aws: CorrectedAws, client: AwsClient, cluster: StepsOf
) -> None:
    cluster.want(ssh_public_key=b"")
    aws.writes()

    await cluster.ensure(key_pair.steps)
    await cluster.ensure(key_pair.steps)

    assert aws.writes() == ["ec2 DeleteKeyPair"]
    assert KEY_PAIR not in cluster.saved
    with pytest.raises(NotFound):
        await fingerprint(client)


async def test_a_key_that_is_not_visible_does_not_stop_the_flow(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = StepsOf.byo(client, await Network.create(client))

    async def first(_: object) -> None:
        await client.call(
            "ec2",
            "ImportKeyPair",
            KeyName=NAME,
            PublicKeyMaterial=OTHER_PUBLIC_KEY,
            TagSpecifications=specification("key-pair", cluster.desired.tags()),
        )

    aws.before("ImportKeyPair", first)
    await cluster.ensure(key_pair.steps)

    assert cluster.saved[KEY_PAIR_FINGERPRINT] == await fingerprint(client)


@pytest.mark.parametrize("is_visible", [True, False])
@pytest.mark.parametrize("value", ["shared", ""])
async def test_a_key_pair_of_the_user_with_the_name_of_the_cluster_is_reported_and_kept(
    aws: CorrectedAws, client: AwsClient, value: str, *, is_visible: bool
) -> None:
    cluster = StepsOf.byo(client, await Network.create(client))
    tags = {cluster.desired.cluster_tag: value} if value else {"team": "a"}

    async def first(_: object) -> None:
        await client.call(
            "ec2",
            "ImportKeyPair",
            KeyName=NAME,
            PublicKeyMaterial=OTHER_PUBLIC_KEY,
            TagSpecifications=specification("key-pair", tags),
        )

    if is_visible:
        await first(None)
    else:
        aws.before("ImportKeyPair", first)

    with pytest.raises(FlowFailed, match=symptom("A key pair exists already")):
        await cluster.ensure(key_pair.steps)

    (before,) = await client.pages("ec2", "DescribeKeyPairs", "KeyPairs", KeyNames=[NAME])
    await cluster.ensure(lambda _: key_pair.delete_steps())
    assert await client.pages("ec2", "DescribeKeyPairs", "KeyPairs", KeyNames=[NAME]) == [before]
    assert tags_of(before) == tags


async def test_an_invalid_public_key_is_refused(client: AwsClient) -> None:
    cluster = StepsOf.byo(client, await Network.create(client))
    cluster.want(ssh_public_key=b"ssh-rsa AAAA")

    with pytest.raises(FlowFailed, match="InvalidKey"):
        await cluster.ensure(key_pair.steps)

    assert KEY_PAIR not in cluster.saved
