"""A claim of a Shoot on AWS gets a volume, by the controllers of volumes that Pergola renders.

external-provisioner and external-attacher are the originals; the driver of EBS is a stand-in,
because its module cannot be had. They run with the arguments, variables and files of their
containers.
"""

import asyncio
import hashlib
import tempfile
from collections.abc import AsyncIterator, Awaitable, Iterator
from contextlib import AsyncExitStack
from pathlib import Path
from typing import Final

import pytest
import pytest_asyncio

from conformance.places.audit import AuditLog, refused
from pergola.api.kinds import POD, PVC
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, name_of
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.providers.aws.control_plane.render.ebs_controller import NAME
from pergola.providers.aws.control_plane.render.ebs_nodes import DRIVER
from pergola.providers.aws.iam_policy import Mode, iam_policy
from pergola.sandbox import ALL, Sandbox, binaries
from pergola.sandbox.aws.corrections import QUICK
from pergola.sandbox.aws.world import managed_config
from pergola.sandbox.on_demand import CSI_ATTACHER, CSI_DRIVER_AWS, CSI_PROVISIONER
from pergola.testing.shared import private
from pergola.testing.waiting import until, until_gone
from tests.support.aws.authorization import AskingAws
from tests.support.aws.cloud_controller_site import control_plane, deployed, join_node
from tests.support.aws.container_process import ContainerProcess
from tests.support.aws.fixtures import REGION
from tests.support.aws.steps import StepsOf

pytestmark = pytest.mark.soak("originals")

ACCOUNTS: Final = "system:serviceaccounts"
ZONE: Final = f"topology.{DRIVER}/zone"
SOCKETS: Final = "/var/lib/csi/sockets/pluginproxy"
PROGRAMS: Final = {
    "aws-csi-driver": CSI_DRIVER_AWS,
    "aws-csi-provisioner": CSI_PROVISIONER,
    "aws-csi-attacher": CSI_ATTACHER,
}
"""The programs of containers."""
PERSISTENT_VOLUME: Final = GroupVersionKind("", "v1", "PersistentVolume")
ATTACHMENT: Final = GroupVersionKind("storage.k8s.io", "v1", "VolumeAttachment")


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
        processes = [
            ContainerProcess(pod, container, objects, folder / container, aws.url)
            for container in PROGRAMS
        ]
        for process, program in zip(processes, PROGRAMS.values(), strict=True):
            await asyncio.to_thread(share_sockets, process, folder)
            await stack.enter_async_context(process.started(found[program]))
        zone = f"{REGION}b"
        instance, node = await join_node(client, cluster, zone, labels={ZONE: zone})
        await register_driver(client, name_of(node), instance["InstanceId"])

        claim = await client.create(claim_of("data"))
        user = await client.create(pod_with("database", name_of(claim), zone))
        binding: Awaitable[JsonObject] = until(
            client, PVC, Key.of(claim), lambda obj: map_at(obj, "status").get("phase") == "Bound"
        )
        for process in processes:
            binding = process.survive(binding)
        bound = await binding
        shipped = await client.get(PERSISTENT_VOLUME, Key("", bound["spec"]["volumeName"]))
        volume = await volume_of(account, shipped)
        assert volume["AvailabilityZone"] == zone
        assert (volume["Size"], volume["Encrypted"]) == (3, True)
        assert tags_of(volume)[f"kubernetes.io/cluster/{technical_id}"] == "owned"
        handle = volume["VolumeId"]
        await until(client, ATTACHMENT, attachment_key(handle, name_of(node)), is_attached)
        (attachment,) = (await volume_of(account, shipped))["Attachments"]
        assert attachment["InstanceId"] == instance["InstanceId"]

        await client.delete(POD, Key.of(user))
        await client.delete(PVC, Key.of(claim))
        await until_gone(client, PERSISTENT_VOLUME, Key.of(shipped))
        left = (await account.call("ec2", "DescribeVolumes"))["Volumes"]
        assert handle not in {each["VolumeId"] for each in left}

        policy = iam_policy(Mode.CONTROL_PLANE, names=technical_id)
        assert [each for each in aws.asked if not each.is_allowed(policy)] == []
        assert [*refused(log.requests())] == []


def share_sockets(process: ContainerProcess, folder: Path) -> None:
    """Write the files of a container, and make its folder of sockets that of the others."""
    process.write_files()
    shared = folder / "sockets"
    shared.mkdir(exist_ok=True)
    own = process.place.file(SOCKETS)
    own.parent.mkdir(parents=True, exist_ok=True)
    own.symlink_to(shared)


async def register_driver(client: Client, node: str, instance: str) -> None:
    """Write what a kubelet writes once the driver on its node has registered itself."""
    driver: JsonObject = {
        "name": DRIVER,
        "nodeID": instance,
        "topologyKeys": [ZONE],
        "allocatable": {"count": 25},
    }
    await client.create(
        {
            "apiVersion": "storage.k8s.io/v1",
            "kind": "CSINode",
            "metadata": {"name": node},
            "spec": {"drivers": [driver]},
        }
    )


def claim_of(name: str) -> JsonObject:
    """Return a claim of the default class."""
    spec = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "3Gi"}}}
    metadata = {"name": name, "namespace": "default"}
    return {"apiVersion": "v1", "kind": PVC.kind, "metadata": metadata, "spec": spec}


def pod_with(name: str, claim: str, zone: str) -> JsonObject:
    """Return a pod for nodes with the driver in a zone; it mounts the volume of a claim."""
    volume = {"name": "data", "persistentVolumeClaim": {"claimName": claim}}
    container = {
        "name": "main",
        "image": "registry.example/database:1",
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }
    return {
        "apiVersion": "v1",
        "kind": POD.kind,
        "metadata": {"name": name, "namespace": "default"},
        "spec": {
            "nodeSelector": {ZONE: zone},
            "containers": [container],
            "volumes": [volume],
        },
    }


async def volume_of(account: AwsClient, shipped: JsonObject) -> JsonObject:
    """Return the volume in AWS of a PersistentVolume."""
    handle = shipped["spec"]["csi"]["volumeHandle"]
    (volume,) = (await account.call("ec2", "DescribeVolumes", VolumeIds=[handle]))["Volumes"]
    return dict(volume)


def attachment_key(handle: str, node: str) -> Key:
    """Return the key of the VolumeAttachment that kube-controller-manager creates."""
    digest = hashlib.sha256(f"{handle}{DRIVER}{node}".encode()).hexdigest()
    return Key("", f"csi-{digest}")


def is_attached(attachment: JsonObject) -> bool:
    return map_at(attachment, "status").get("attached") is True
