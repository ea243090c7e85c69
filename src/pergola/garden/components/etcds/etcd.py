"""The `Etcd` objects (spec 20 §15.1)."""

from collections.abc import Mapping
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.garden.components.conventions import (
    GARDEN_SCRAPES,
    TO_DNS,
    TO_PRIVATE_NETWORKS,
    TO_PUBLIC_NETWORKS,
    TO_RUNTIME_API_SERVER,
    nearest_first,
    open_ports,
    raised,
    to_service,
    volume_size,
)
from pergola.garden.components.etcds import access, backups, schedules
from pergola.garden.components.priority_classes import P500
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.manifests import manifest, requests, selector

API_VERSION: Final = "druid.gardener.cloud/v1alpha1"
BACKUP_PORT: Final = 8080

_PEER_PORT: Final = 2380
_WRAPPER_PORT: Final = 9095
_ALLOW_UNHEALTHY_EVICTION: Final = "resources.druid.gardener.cloud/allow-unhealthy-pod-eviction"
_SAFE_TO_EVICT: Final = "cluster-autoscaler.kubernetes.io/safe-to-evict"
_MEMBERS: Final = 3


class _Traits(NamedTuple):
    """The settings that differ between the two etcds."""

    metrics: str
    cpu: str
    memory: str
    backup_cpu: str
    backup_memory: str
    storage: str
    claim: str
    defragmented: str


_TRAITS: Final = {
    access.MAIN: _Traits(
        "extensive", "150m", "500M", "20m", "80Mi", "25Gi", "main-virtual-garden-etcd", "*"
    ),
    access.EVENTS: _Traits(
        "basic", "30m", "150M", "10m", "40Mi", "10Gi", "virtual-garden-etcd-events", "*/3"
    ),
}
_LEAST_MEMORY: Final = {access.MAIN: "300M", access.EVENTS: "60M"}


def etcd(landscape: Landscape, role: str) -> JsonObject:
    """Return one `Etcd`; the annotation that triggers druid is added when it is written."""
    labels = {"gardener.cloud/role": "controlplane", "role": role}
    pods = {"app": "etcd-statefulset", **labels}
    is_events = role == access.EVENTS
    return manifest(
        API_VERSION,
        "Etcd",
        access.name(role),
        namespace=NAMESPACE,
        labels=labels,
        annotations={_ALLOW_UNHEALTHY_EVICTION: ""} if is_events else None,
        spec={
            "selector": selector(pods),
            "labels": {**pods, **_open_networks(landscape, role)},
            **_pod_annotations(landscape, role),
            "replicas": _MEMBERS if landscape.is_highly_available else 1,
            "priorityClassName": P500,
            "etcd": _etcd(landscape, role),
            "backup": _backup(landscape, role),
            "sharedConfig": {},
            "schedulingConstraints": {},
            **_storage(landscape, role),
        },
    )


def least(landscape: Landscape, role: str) -> JsonObject:
    """Return the least that the autoscaler may request."""
    etcds = landscape.virtual.etcd
    chosen = etcds.main.autoscaling if role == access.MAIN else etcds.events.autoscaling
    return {"memory": _LEAST_MEMORY[role], **(chosen.min_allowed if chosen else {})}


def _pod_annotations(landscape: Landscape, role: str) -> JsonObject:
    """Return the annotation that keeps cluster-autoscaler from evicting a lone main etcd."""
    if role == access.EVENTS or landscape.is_highly_available:
        return {}
    return {"annotations": {_SAFE_TO_EVICT: "false"}}


def _open_networks(landscape: Landscape, role: str) -> Mapping[str, str]:
    labels = {**TO_DNS, **TO_PUBLIC_NETWORKS, **TO_PRIVATE_NETWORKS, **TO_RUNTIME_API_SERVER}
    if landscape.is_highly_available:
        for port in (access.CLIENT_PORT, _PEER_PORT, BACKUP_PORT):
            labels |= to_service(access.client_service(role), port)
    return labels


def _etcd(landscape: Landscape, role: str) -> JsonObject:
    traits = _TRAITS[role]
    desired = {"cpu": traits.cpu, "memory": traits.memory}
    scraped = open_ports(GARDEN_SCRAPES, access.CLIENT_PORT, BACKUP_PORT)
    settings: JsonObject = {
        "metrics": traits.metrics,
        "quota": "8Gi",
        "resources": {"requests": raised(desired, least(landscape, role))},
        "clientPort": access.CLIENT_PORT,
        "serverPort": _PEER_PORT,
        "wrapperPort": _WRAPPER_PORT,
        "clientService": {"annotations": scraped, **nearest_first(landscape)},
        "clientUrlTls": access.client_tls(landscape, role),
        "defragmentationSchedule": schedules.defragmentation(landscape.garden).cron(
            traits.defragmented
        ),
    }
    if landscape.is_highly_available:
        settings["peerUrlTls"] = access.peer_tls(landscape, role)
    return settings


def _backup(landscape: Landscape, role: str) -> JsonObject:
    traits = _TRAITS[role]
    settings: JsonObject = {
        "port": BACKUP_PORT,
        "tls": access.client_tls(landscape, role),
        "resources": requests(cpu=traits.backup_cpu, memory=traits.backup_memory),
        "garbageCollectionPolicy": "Exponential",
        "garbageCollectionPeriod": "12h0m0s",
        "compression": {"enabled": True, "policy": "gzip"},
        "snapshotCompaction": {"resources": requests(cpu="600m", memory="3Gi")},
    }
    store = backups.store(landscape) if role == access.MAIN else None
    if store is None:
        return settings
    return settings | _stored(landscape, store)


def _stored(landscape: Landscape, store: backups.Store) -> JsonObject:
    fields: JsonObject = {
        "store": {
            "provider": store.provider,
            "container": store.container,
            "prefix": store.prefix,
            "secretRef": {"name": store.secret},
        },
        "fullSnapshotSchedule": store.schedule,
        "deltaSnapshotPeriod": "5m0s",
        "deltaSnapshotMemoryLimit": "100Mi",
        "deltaSnapshotRetentionPeriod": landscape.etcd_config.get("deltaSnapshotRetentionPeriod"),
        "leaderElection": landscape.etcd_config.get("backupLeaderElection"),
    }
    return {name: value for name, value in fields.items() if value is not None}


def _storage(landscape: Landscape, role: str) -> JsonObject:
    etcds = landscape.virtual.etcd
    chosen = etcds.main.storage if role == access.MAIN else etcds.events.storage
    traits = _TRAITS[role]
    capacity = traits.storage if chosen is None else str(chosen.capacity)
    fields: JsonObject = {
        "storageCapacity": volume_size(landscape, capacity),
        "volumeClaimTemplate": traits.claim,
    }
    if chosen is not None and chosen.class_name is not None:
        fields["storageClass"] = chosen.class_name
    return fields
