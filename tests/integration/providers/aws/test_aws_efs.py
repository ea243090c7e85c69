"""File systems for nodes: spec 30 §10.2, with moto as AWS."""

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.flow import State
from pergola.flow.picture import Fate
from pergola.providers.aws.resources import efs, security_group
from pergola.providers.aws.state import (
    FILE_SYSTEM,
    MOUNT_TARGETS,
    NODES_SECURITY_GROUP,
    mount_target_key,
)
from pergola.providers.aws.status import provider_status
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import Network
from tests.support.aws.steps import TECHNICAL_ID, StepsOf

ENABLED: JsonObject = {"enabled": True}


async def with_file_system(client: AwsClient, *zones: str) -> StepsOf:
    cluster = await StepsOf.managed(client, zones=zones or ("a",), elasticFileSystem=ENABLED)
    await cluster.ensure(security_group.steps, efs.steps)
    return cluster


async def file_systems(client: AwsClient) -> dict[str, JsonObject]:
    found = await client.pages("efs", "DescribeFileSystems", "FileSystems")
    return {system["FileSystemId"]: system for system in found}


async def targets(client: AwsClient, system: str) -> dict[str, JsonObject]:
    found = await client.pages("efs", "DescribeMountTargets", "MountTargets", FileSystemId=system)
    return {target["SubnetId"]: target for target in found}


def remembered(cluster: StepsOf) -> dict[str, str]:
    return State(cluster.saved).under(MOUNT_TARGETS)


async def test_a_file_system_is_created_with_a_mount_target_in_each_zone(
    client: AwsClient,
) -> None:
    cluster = await with_file_system(client, "a", "b")

    ((name, system),) = (await file_systems(client)).items()
    assert system["Encrypted"]
    assert system["CreationToken"] == cluster.desired.shoot_uid
    assert tags_of(system) == {
        f"kubernetes.io/cluster/{TECHNICAL_ID}": "owned",
        "Name": TECHNICAL_ID,
        "managed-by-gardener": "true",
    }
    group = cluster.saved[NODES_SECURITY_GROUP]
    mounted = await targets(client, name)
    assert set(mounted) == set(cluster.network.workers.values())
    for subnet, target in mounted.items():
        assert cluster.saved[mount_target_key(name, subnet, group)] == target["MountTargetId"]
        answer = await client.call(
            "efs", "DescribeMountTargetSecurityGroups", MountTargetId=target["MountTargetId"]
        )
        assert answer["SecurityGroups"] == [group]
    status = provider_status(cluster.desired, State(cluster.saved))
    assert status["elasticFileSystem"] == {"ID": name}


@pytest.mark.parametrize("families", [("IPv4", "IPv6"), ("IPv6",)])
async def test_a_cluster_with_ipv6_gets_mount_targets(
    client: AwsClient, families: tuple[str, ...]
) -> None:
    cluster = await StepsOf.managed(client, elasticFileSystem=ENABLED)
    cluster.want(families=families)

    await cluster.ensure(security_group.steps, efs.steps)

    mounted = await targets(client, cluster.saved[FILE_SYSTEM])
    assert set(mounted) == set(cluster.network.workers.values())


async def test_a_second_run_writes_nothing(aws: CorrectedAws, client: AwsClient) -> None:
    cluster = await with_file_system(client)
    aws.writes()

    await cluster.ensure(efs.steps)

    assert aws.writes() == []
    plans = await cluster.plan(efs.steps)
    assert {note.fate for note in plans.values()} == {Fate.KEEP}


async def test_a_file_system_missing_in_the_state_is_found_again(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await with_file_system(client)
    before = dict(cluster.saved)
    cluster.saved = {k: v for k, v in before.items() if not k.startswith("efs")}
    aws.writes()

    await cluster.ensure(efs.steps)

    assert aws.writes() == []
    assert cluster.saved == before


async def test_a_file_system_is_not_created_twice_if_the_answer_was_lost(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client, elasticFileSystem=ENABLED)
    token, tags = cluster.desired.shoot_uid, [{"Key": "Name", "Value": "other"}]

    async def first(_: object) -> None:
        await client.call("efs", "CreateFileSystem", CreationToken=token, Tags=tags)

    aws.before("CreateFileSystem", first)
    await cluster.ensure(security_group.steps, efs.steps)

    ((name, system),) = (await file_systems(client)).items()
    assert cluster.saved[FILE_SYSTEM] == name
    assert tags_of(system)["Name"] == TECHNICAL_ID


async def test_a_deleted_mount_target_is_recreated(aws: CorrectedAws, client: AwsClient) -> None:
    cluster = await with_file_system(client, "a", "b")
    before = await targets(client, cluster.saved[FILE_SYSTEM])
    lost = before[cluster.network.workers["b"]]
    await client.call("efs", "DeleteMountTarget", MountTargetId=lost["MountTargetId"])
    planned = (await cluster.plan(efs.steps))[efs.MOUNT_TARGETS]
    aws.writes()

    await cluster.ensure(efs.steps)

    assert aws.writes() == ["elasticfilesystem CreateMountTarget"]
    assert set(await targets(client, cluster.saved[FILE_SYSTEM])) == set(before)
    assert (planned.fate, planned.why) == (Fate.CREATE, "mount targets in eu-west-1b")


async def test_a_mount_target_with_another_group_is_replaced(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await with_file_system(client)
    group = await cluster.network.security_group("other")
    cluster.configure(networks={**cluster.raw["networks"], "nodesSecurityGroupID": group})
    aws.writes()

    await cluster.ensure(efs.steps)

    assert aws.writes() == [
        "elasticfilesystem DeleteMountTarget",
        "elasticfilesystem CreateMountTarget",
    ]
    (key,) = remembered(cluster)
    assert key.endswith(f"_{group}")


async def test_a_user_provided_file_system_replaces_ours(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await with_file_system(client)
    users = await cluster.network.file_system()
    cluster.configure(elasticFileSystem={"enabled": True, "id": users})

    await cluster.ensure(efs.steps)

    assert set(await file_systems(client)) == {users}
    assert set(await targets(client, users)) == set(cluster.network.workers.values())
    assert FILE_SYSTEM not in cluster.saved


async def test_a_mount_target_of_the_user_is_not_changed(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    await cluster.ensure(security_group.steps)
    users = await cluster.network.file_system()
    internal = cluster.network.internal["a"]
    await client.call("efs", "CreateMountTarget", FileSystemId=users, SubnetId=internal)
    cluster.configure(elasticFileSystem={"enabled": True, "id": users})
    aws.writes()

    await cluster.ensure(efs.steps)

    assert aws.writes() == []
    assert remembered(cluster) == {}
    (warning,) = cluster.warnings
    assert "make its security group allow tcp 2049" in warning


async def test_in_user_provided_subnets_mount_targets_are_only_recorded(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client, zones=("a", "b"))
    users = await network.file_system("a", "b")
    cluster = StepsOf.byo(client, network, elasticFileSystem={"enabled": True, "id": users})
    aws.writes()

    await cluster.ensure(efs.steps)

    assert aws.writes() == []
    assert set(remembered(cluster)) == {f"{users}_{each}" for each in network.workers.values()}


async def test_a_mount_target_that_the_user_deleted_is_forgotten(
    aws: CorrectedAws, client: AwsClient
) -> None:
    network = await Network.create(client, zones=("a", "b"))
    users = await network.file_system("a", "b")
    cluster = StepsOf.byo(client, network, elasticFileSystem={"enabled": True, "id": users})
    await cluster.ensure(efs.steps)
    gone = (await targets(client, users))[network.workers["b"]]
    await client.call("efs", "DeleteMountTarget", MountTargetId=gone["MountTargetId"])

    await cluster.ensure(efs.steps)

    assert set(remembered(cluster)) == {f"{users}_{network.workers['a']}"}


async def test_no_file_system_is_created_unless_requested(
    aws: CorrectedAws, client: AwsClient
) -> None:
    cluster = await StepsOf.managed(client)
    aws.taken()

    await cluster.ensure(efs.steps)

    assert not [call for call in aws.taken() if call.startswith("elasticfilesystem")]
