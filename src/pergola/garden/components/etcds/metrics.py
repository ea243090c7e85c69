"""The ServiceMonitors of the etcds (spec 20 §15.1)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import monitoring
from pergola.garden.components.etcds import access
from pergola.garden.landscape import Landscape

_JOB: Final = "virtual-garden-etcd"
_BACKUP_JOB: Final = "virtual-garden-etcd-backup"
_ROLE: Final = "__meta_kubernetes_service_label_app_kubernetes_io_part_of"
_PARTS: Final = ("bucket", "count", "sum")
_DURATIONS: Final = ("defragmentation", "restoration", "snapshot", "validation")
_BACKUP_METRICS: Final = (
    *(f"etcdbr_{what}_duration_seconds_{part}" for what in _DURATIONS for part in _PARTS),
    "etcdbr_network_received_bytes",
    "etcdbr_network_transmitted_bytes",
    "etcdbr_snapshot_gc_total",
    "etcdbr_snapshot_latest_revision",
    "etcdbr_snapshot_latest_timestamp",
    "etcdbr_snapshot_required",
    "etcdbr_snapshotter_failure",
    "etcdbr_cluster_size",
    "etcdbr_is_learner",
    "etcdbr_is_learner_count_total",
    "etcdbr_add_learner_duration_seconds_(bucket|sum)",
    "etcdbr_member_(remove|promote)_duration_seconds_(bucket|sum)",
    "process_resident_memory_bytes",
    "process_cpu_seconds_total",
)


def service_monitor(landscape: Landscape, role: str) -> JsonObject:
    """Return the ServiceMonitor of an etcd and its backup sidecars."""
    name = access.name(role)
    services = {
        "app.kubernetes.io/name": access.client_service(role),
        "app.kubernetes.io/part-of": name,
    }
    return monitoring.service_monitor(
        monitoring.GARDEN,
        name,
        services,
        _endpoint(landscape, "client", _JOB),
        _endpoint(landscape, "backuprestore", _BACKUP_JOB, *_BACKUP_METRICS),
    )


def _endpoint(landscape: Landscape, port: str, job: str, *metrics: str) -> JsonObject:
    certificate = landscape.credentials.name(access.CLIENT)
    kept = monitoring.kept_metrics(*metrics) if metrics else []
    return monitoring.endpoint(
        port,
        targets=[monitoring.replace("role", "", _ROLE), monitoring.job(job)],
        metrics=[monitoring.drop_labels("^instance$"), *kept],
        scheme="HTTPS",
        tlsConfig={
            # The certificate does not cover the IP addresses of members.
            "insecureSkipVerify": True,
            "cert": {"secret": {"name": certificate, "key": "tls.crt"}},
            "keySecret": {"name": certificate, "key": "tls.key"},
        },
    )
