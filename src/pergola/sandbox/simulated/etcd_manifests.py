"""The objects that one `Etcd` requires."""

from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject, labels_of, map_at, name_of, namespace_of, uid_of
from pergola.kube.quantities import parse_quantity
from pergola.manifests import http_probe, manifest, mount, port, service, service_port
from pergola.sandbox.images.catalogue import named
from pergola.sandbox.simulated.etcd_backups import (
    PORT,
    PORT_NAME,
    backup_stateful_set,
    has_backups,
)
from pergola.sandbox.simulated.etcd_pods import DATA, TlsFiles, pod_labels, volume_claim

CLIENT_PORT: Final = 2379

_PEERS: Final = "http://localhost:2380"
_METRICS_PORT: Final = 9095
_STORAGE: Final = "16Gi"


def objects(etcd: JsonObject, snapshots: Path | None = None) -> list[JsonObject]:
    """Return the Service for clients, and the StatefulSets.

    The etcd has one member, whatever the number of replicas.

    Args:
        snapshots: the folder for its snapshots; None to take none.
    """
    owner = {
        "apiVersion": etcd["apiVersion"],
        "kind": etcd["kind"],
        "name": name_of(etcd),
        "uid": uid_of(etcd),
        "controller": True,
        "blockOwnerDeletion": True,
    }
    made = [_service(etcd), _stateful_set(etcd)]
    if has_backups(etcd):
        made.append(backup_stateful_set(etcd, snapshots))
    for obj in made:
        obj["metadata"]["ownerReferences"] = [owner]
    return made


def _service(etcd: JsonObject) -> JsonObject:
    return service(
        f"{name_of(etcd)}-client",
        namespace_of(etcd),
        pod_labels(etcd),
        service_port("client", CLIENT_PORT, "client"),
        service_port(PORT_NAME, PORT, PORT_NAME),
        labels=labels_of(etcd),
        annotations=map_at(etcd, "spec", "etcd", "clientService", "annotations"),
    )


def _stateful_set(etcd: JsonObject) -> JsonObject:
    spec = map_at(etcd, "spec")
    claim = volume_claim(etcd)
    labels = {**map_at(spec, "labels"), **pod_labels(etcd)}
    pod = {
        "containers": [_container(etcd, claim)],
        "volumes": _tls(etcd).volumes(),
        **({"priorityClassName": spec["priorityClassName"]} if "priorityClassName" in spec else {}),
    }
    storage = {
        "accessModes": ["ReadWriteOnce"],
        "resources": {"requests": {"storage": spec.get("storageCapacity", _STORAGE)}},
    }
    if "storageClass" in spec:
        storage["storageClassName"] = spec["storageClass"]
    return manifest(
        "apps/v1",
        "StatefulSet",
        name_of(etcd),
        namespace=namespace_of(etcd),
        labels=labels_of(etcd),
        spec={
            "replicas": min(spec["replicas"], 1),
            "serviceName": f"{name_of(etcd)}-peer",
            "selector": {"matchLabels": pod_labels(etcd)},
            "template": {"metadata": {"labels": labels}, "spec": pod},
            "volumeClaimTemplates": [{"metadata": {"name": claim}, "spec": storage}],
        },
    )


def _container(etcd: JsonObject, claim: str) -> JsonObject:
    image = named(["etcd"])[0]
    ports = map_at(etcd, "spec", "etcd")
    return {
        "name": "etcd",
        "image": f"{image.repository}:{image.version}",
        "command": ["etcd"],
        "args": _flags(etcd),
        "ports": [
            port("client", ports.get("clientPort", CLIENT_PORT)),
            port("metrics", _METRICS_PORT),
        ],
        "readinessProbe": http_probe("/readyz", _METRICS_PORT, periodSeconds=5),
        "volumeMounts": [
            mount(claim, DATA),
            *_tls(etcd).mounts(),
        ],
    }


def _flags(etcd: JsonObject) -> list[str]:
    name = name_of(etcd)
    quota = map_at(etcd, "spec", "etcd").get("quota")
    tls = _tls(etcd)
    scheme = "https" if tls.settings else "http"
    flags = [
        f"--name={name}-0",
        f"--data-dir={DATA}/new.etcd",
        f"--listen-client-urls={scheme}://0.0.0.0:{CLIENT_PORT}",
        f"--advertise-client-urls={scheme}://{name}-client:{CLIENT_PORT}",
        "--listen-peer-urls=http://0.0.0.0:2380",
        f"--initial-advertise-peer-urls={_PEERS}",
        f"--initial-cluster={name}-0={_PEERS}",
        f"--listen-metrics-urls=http://0.0.0.0:{_METRICS_PORT}",
        "--log-level=warn",
    ]
    if quota:
        flags.append(f"--quota-backend-bytes={int(parse_quantity(quota))}")
    if tls.settings:
        flags += [
            "--client-cert-auth",
            f"--trusted-ca-file={tls.authority}",
            f"--cert-file={tls.certificate}",
            f"--key-file={tls.key}",
        ]
    return flags


def _tls(etcd: JsonObject) -> TlsFiles:
    return TlsFiles(map_at(etcd, "spec", "etcd", "clientUrlTls"))
