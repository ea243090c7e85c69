"""Default classes for volumes and snapshots, and definitions of kinds (spec 31 §6)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests import manifest
from pergola.providers.aws.control_plane.render.ebs_nodes import DRIVER
from pergola.providers.aws.control_plane.render.values import Values

_NAME: Final = "default"


def storage_classes(values: Values) -> list[JsonObject]:
    """Return the classes; they are the defaults unless the owner has others."""
    is_default = values.config.manages_default_classes

    def default(annotation: str) -> dict[str, str]:
        return {annotation: "true"} if is_default else {}

    return [
        manifest(
            "storage.k8s.io/v1",
            "StorageClass",
            _NAME,
            annotations={
                "resources.gardener.cloud/delete-on-invalid-update": "true",
                **default("storageclass.kubernetes.io/is-default-class"),
            },
            provisioner=DRIVER,
            parameters={"encrypted": "true"},
            allowVolumeExpansion=True,
            volumeBindingMode="WaitForFirstConsumer",
        ),
        manifest(
            "snapshot.storage.k8s.io/v1",
            "VolumeSnapshotClass",
            _NAME,
            annotations=default("snapshot.storage.kubernetes.io/is-default-class"),
            driver=DRIVER,
            deletionPolicy="Delete",
        ),
    ]
