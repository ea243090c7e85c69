"""Volumes of a Shoot on AWS: claims and pods, and what they become in the cluster and in EBS."""

import hashlib
from typing import Final

from pergola.api.kinds import POD, PVC
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.cloud.aws import AwsClient
from pergola.providers.aws.control_plane.render.ebs_nodes import DRIVER
from pergola.sandbox.on_demand import CSI_ATTACHER, CSI_DRIVER_AWS, CSI_PROVISIONER

PROGRAMS: Final = {
    "aws-csi-driver": CSI_DRIVER_AWS,
    "aws-csi-provisioner": CSI_PROVISIONER,
    "aws-csi-attacher": CSI_ATTACHER,
}
"""The programs of containers."""
PERSISTENT_VOLUME: Final = GroupVersionKind("", "v1", "PersistentVolume")
ATTACHMENT: Final = GroupVersionKind("storage.k8s.io", "v1", "VolumeAttachment")
ZONE: Final = f"topology.{DRIVER}/zone"
"""The label of a node with the driver."""


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


def is_bound(claim: JsonObject) -> bool:
    """Return whether a claim has a volume."""
    return map_at(claim, "status").get("phase") == "Bound"


async def volume_of(account: AwsClient, shipped: JsonObject) -> JsonObject:
    """Return the volume in AWS of a PersistentVolume."""
    handle = shipped["spec"]["csi"]["volumeHandle"]
    (volume,) = (await account.call("ec2", "DescribeVolumes", VolumeIds=[handle]))["Volumes"]
    return dict(volume)


def attachment_key(volume: JsonObject, node: str) -> Key:
    """Return the key of the VolumeAttachment that kube-controller-manager creates.

    Args:
        volume: as AWS describes it.
    """
    digest = hashlib.sha256(f"{volume['VolumeId']}{DRIVER}{node}".encode()).hexdigest()
    return Key("", f"csi-{digest}")


def is_attached(attachment: JsonObject) -> bool:
    """Return whether a volume is attached to its node."""
    return map_at(attachment, "status").get("attached") is True
