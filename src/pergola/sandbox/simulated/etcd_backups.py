"""The pods that take snapshots of one `Etcd`.

They are separate from the pods of etcd, because a process node runs only one container of a pod;
they mount the same claim.
"""

from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject, labels_of, map_at, name_of, namespace_of
from pergola.manifests import https_probe, manifest, mount, port
from pergola.sandbox.images.catalogue import named
from pergola.sandbox.on_demand import ETCD_BACKUP_RESTORE
from pergola.sandbox.simulated.etcd_pods import DATA, TlsFiles, data_claim, pod_labels

PORT: Final = 8080
PORT_NAME: Final = "backup-restore"

_DATA: Final = "data"


def has_backups(etcd: JsonObject) -> bool:
    """Return whether an etcd is backed up."""
    return "store" in map_at(etcd, "spec", "backup")


def backup_stateful_set(etcd: JsonObject, folder: Path | None) -> JsonObject:
    """Return the StatefulSet of the pods.

    Args:
        folder: for the snapshots; None to take none.
    """
    labels = {**pod_labels(etcd), "app.kubernetes.io/component": PORT_NAME}
    tls = TlsFiles(map_at(etcd, "spec", "backup", "tls"))
    data = {"name": _DATA, "persistentVolumeClaim": {"claimName": data_claim(etcd)}}
    pod = {"containers": [_container(tls, folder)], "volumes": [*tls.volumes(), data]}
    return manifest(
        "apps/v1",
        "StatefulSet",
        f"{name_of(etcd)}-{PORT_NAME}",
        namespace=namespace_of(etcd),
        labels=labels_of(etcd),
        spec={
            "replicas": min(map_at(etcd, "spec")["replicas"], 1),
            "serviceName": f"{name_of(etcd)}-peer",
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": pod},
        },
    )


def _container(tls: TlsFiles, folder: Path | None) -> JsonObject:
    image = named([ETCD_BACKUP_RESTORE])[0]
    return {
        "name": PORT_NAME,
        "image": f"{image.repository}:{image.version}",
        "args": [
            "--address=0.0.0.0",
            f"--port={PORT}",
            f"--certificate={tls.certificate}",
            f"--key={tls.key}",
            *([f"--data={DATA}", f"--snapshots={folder}"] if folder else []),
        ],
        "ports": [port(PORT_NAME, PORT)],
        "readinessProbe": https_probe("/healthz", PORT, periodSeconds=5),
        "volumeMounts": [*tls.mounts(), mount(_DATA, DATA)],
    }
