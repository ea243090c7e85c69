"""A claim of a Shoot on AWS gets a volume, by the controllers of volumes that Pergola renders.

external-provisioner and external-attacher are the originals; the driver of EBS is a stand-in,
because its module cannot be had. They run with the arguments, variables and files of their
containers.
"""

import asyncio
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from conformance.places.audit import AuditLog, refused
from pergola.api.kinds import CSI_NODE, NODE, POD, PVC
from pergola.api.objects import JsonObject, Key, name_of
from pergola.cloud.aws.network import tags_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.manifests import manifest
from pergola.providers.aws.control_plane.render.ebs_controller import NAME
from pergola.providers.aws.control_plane.render.ebs_nodes import DRIVER
from pergola.providers.aws.iam_policy import Mode, iam_policy
from pergola.sandbox import ALL, Sandbox, binaries
from pergola.sandbox.aws.corrections import QUICK
from pergola.sandbox.aws.world import managed_config
from pergola.testing.shared import private
from pergola.testing.waiting import until, until_gone
from tests.support.aws.authorization import AskingAws
from tests.support.aws.cloud_controller_site import control_plane, deployed, join_node
from tests.support.aws.cloud_volumes import (
    ATTACHMENT,
    PERSISTENT_VOLUME,
    PROGRAMS,
    ZONE,
    attachment_key,
    claim_of,
    is_attached,
    is_bound,
    pod_with,
    volume_of,
)
from tests.support.aws.container_process import ContainerProcess, pod_folders
from tests.support.aws.fixtures import REGION
from tests.support.aws.steps import StepsOf

pytestmark = pytest.mark.soak("originals")

ACCOUNTS: Final = "system:serviceaccounts"


@pytest.fixture
def log(tmp_path: Path) -> AuditLog:
    return AuditLog(tmp_path, "shoot", groups=(ACCOUNTS,))


@pytest.fixture
def sandbox(log: AuditLog) -> Iterator[Sandbox]:
    with private(ALL, apiserver_flags=log.flags()) as own:
        yield own


@pytest.fixture
def folder() -> Iterator[Path]:
    """Yield a folder with a path that is short enough for sockets."""
    with tempfile.TemporaryDirectory(prefix="csi-") as path:
        yield Path(path)


@pytest_asyncio.fixture
async def client(sandbox: Sandbox) -> AsyncIterator[Client]:
    async with Client.connect(load(sandbox.kubeconfig)) as client:
        yield client


async def test_a_claim_gets_a_volume_in_the_zone_of_its_node_and_returns_it(
    moto_server: str, sandbox: Sandbox, client: Client, log: AuditLog, folder: Path
) -> None:
    async with (
        AskingAws(moto_server) as aws,
        aws.client(REGION, retry=QUICK) as account,
        AsyncExitStack() as stack,
    ):
        cluster = StepsOf.created(account, managed_config(REGION, zones="ab"))
        await stack.enter_async_context(
            control_plane(sandbox, client, cluster, "csi-provisioner", "csi-attacher")
        )
        technical_id = cluster.desired.technical_id
        pod, objects = await deployed(client, technical_id, NAME)
        found = await asyncio.to_thread(binaries.find, (*PROGRAMS.values(),))
        folders = pod_folders(pod, folder)
        processes = [
            ContainerProcess(pod, container, objects, folder, aws.url, folders)
            for container in PROGRAMS
        ]
        for process, program in zip(processes, PROGRAMS.values(), strict=True):
            await asyncio.to_thread(process.write_files)
            await stack.enter_async_context(process.started(found[program]))
        zone = f"{REGION}b"
        instance, node = await join_node(client, cluster, zone)
        await register_driver(client, node, instance["InstanceId"], zone)

        claim = await client.create(claim_of("data"))
        user = await client.create(pod_with("database", name_of(claim), zone))
        binding: Awaitable[JsonObject] = until(client, PVC, Key.of(claim), is_bound)
        for process in processes:
            binding = process.survive(binding)
        bound = await binding
        shipped = await client.get(PERSISTENT_VOLUME, Key("", bound["spec"]["volumeName"]))
        volume = await volume_of(account, shipped)
        assert volume["AvailabilityZone"] == zone
        assert (volume["Size"], volume["Encrypted"]) == (3, True)
        assert tags_of(volume)[f"kubernetes.io/cluster/{technical_id}"] == "owned"
        await until(client, ATTACHMENT, attachment_key(volume, name_of(node)), is_attached)
        (attachment,) = (await volume_of(account, shipped))["Attachments"]
        assert attachment["InstanceId"] == instance["InstanceId"]

        await client.delete(POD, Key.of(user))
        await client.delete(PVC, Key.of(claim))
        await until_gone(client, PERSISTENT_VOLUME, Key.of(shipped))
        left = (await account.call("ec2", "DescribeVolumes"))["Volumes"]
        assert volume["VolumeId"] not in {each["VolumeId"] for each in left}

        policy = iam_policy(Mode.CONTROL_PLANE, names=technical_id)
        assert [each for each in aws.asked if not each.is_allowed(policy)] == []
        assert [*refused(log.requests())] == []


async def register_driver(client: Client, node: JsonObject, instance: str, zone: str) -> None:
    """Write what a kubelet writes once the driver on its node has registered itself."""
    metadata = {
        "labels": {ZONE: zone},
        "annotations": {"volumes.kubernetes.io/controller-managed-attach-detach": "true"},
    }
    await client.patch(NODE, Key.of(node), {"metadata": metadata})
    driver: JsonObject = {
        "name": DRIVER,
        "nodeID": instance,
        "topologyKeys": [ZONE],
        "allocatable": {"count": 25},
    }
    spec = {"drivers": [driver]}
    await client.create(manifest(CSI_NODE.api_version, CSI_NODE.kind, name_of(node), spec=spec))
