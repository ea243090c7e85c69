"""Alerts about the etcds of the virtual cluster and their backups."""

from collections.abc import Iterator
from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components.monitoring import (
    GARDEN,
    alert,
    prometheus_rule,
    record,
    rules,
)
from pergola.garden.components.observability.prometheus_garden.alerting import (
    CRITICAL,
    INFO,
    LANDSCAPE,
    WARNING,
)

_ETCD: Final = 'job="virtual-garden-etcd"'
_BACKUP: Final = 'job="virtual-garden-etcd-backup"'
_MAIN: Final = 'role="virtual-garden-etcd-main"'
_SERVICE: Final = {"service": "VirtualGardenEtcd"}
_LARGE: Final = 6442450944
_FULL: Final = 8589900000


def etcd_rules() -> JsonObject:
    """Return alerts about availability, size and backups of the etcds."""
    each = (
        _quorum_lost("Main", "5m", CRITICAL, "The virtual cluster is unreachable."),
        _quorum_lost("Events", "15m", INFO, "Events of the virtual cluster are lost."),
        _no_leader("Main", "10m", CRITICAL),
        _no_leader("Events", "15m", INFO),
        record(
            "virtual_garden:apiserver_storage_objects:max_by_resource",
            "max by (resource) (apiserver_storage_objects)",
        ),
        *_size(),
        _backup("EtcdDeltaBackupFailed", "Incr", "delta", 900, "30 minutes"),
        _backup("EtcdFullBackupFailed", "Full", "full", 86400, "24 hours"),
        _restoration(),
    )
    return prometheus_rule(GARDEN, "etcd", rules("etcd", *each))


def _quorum_lost(which: str, lasting: str, labels: dict[str, str], consequence: str) -> JsonObject:
    role = which.lower()
    members = f'up{{{_ETCD},role="virtual-garden-etcd-{role}"}}'
    return alert(
        f"Etcd{which}Down",
        f"sum({members}) <= count({members}) / 2",
        lasting=lasting,
        **labels,
        **_SERVICE,
        role=role,
        summary=f"Virtual garden etcd {role} cluster is down in landscape {LANDSCAPE}.",
        description=f"Too few members of etcd {role} answer to have a quorum. {consequence}",
    )


def _no_leader(which: str, lasting: str, labels: dict[str, str]) -> JsonObject:
    role = which.lower()
    members = f'etcd_server_has_leader{{{_ETCD},role="virtual-garden-etcd-{role}"}}'
    return alert(
        f"Etcd{which}NoLeader",
        f"sum({members}) < count({members})",
        lasting=lasting,
        **labels,
        **_SERVICE,
        role=role,
        summary=f"Virtual garden etcd {role} has no leader in landscape {LANDSCAPE}.",
        description=f"A member of etcd {role} knows no leader; the network may be partitioned.",
    )


def _size() -> Iterator[JsonObject]:
    size = f"etcd_mvcc_db_total_size_in_bytes{{{_ETCD}}}"
    now = "The database has {{$value | humanize1024}}B of the 8GB that are practical."
    yield alert(
        "EtcdDbSizeLimitApproaching",
        f"({size} > {_LARGE}) <= {_FULL}",
        **WARNING,
        **_SERVICE,
        summary=f"Virtual garden etcd {{{{$labels.role}}}} fills up in landscape {LANDSCAPE}.",
        description=f"{now} A larger quota may be necessary soon.",
    )
    yield alert(
        "EtcdDbSizeLimitCrossed",
        f"{size} > {_FULL}",
        **CRITICAL,
        **_SERVICE,
        summary=f"Virtual garden etcd {{{{$labels.role}}}} is full in landscape {LANDSCAPE}.",
        description=f"{now} It takes no updates until its quota is larger.",
    )


def _backup(name: str, kind: str, word: str, seconds: int, late: str) -> JsonObject:
    """Return an alert about overdue snapshots of the etcd leader."""
    latest = f'etcdbr_snapshot_latest_timestamp{{{_BACKUP},kind="{kind}",{_MAIN}}}'
    required = f'etcdbr_snapshot_required{{kind="{kind}",{_MAIN}}}'
    leader = f"etcd_server_is_leader{{{_BACKUP},{_MAIN}}} == 1"
    return alert(
        name,
        f"(time() - {latest} > {seconds}) and on (pod, role) ({required} >= 1) "
        f"and on (pod, role) ({leader})",
        lasting="15m",
        **CRITICAL,
        **_SERVICE,
        summary=f"Virtual garden etcd {word} snapshot failure in landscape {LANDSCAPE}.",
        description=f"The leader has taken no {word} snapshot for {late}, though one is due.",
    )


def _restoration() -> JsonObject:
    count = "etcdbr_restoration_duration_seconds_count"
    return alert(
        "EtcdRestorationFailed",
        f'rate({count}{{{_BACKUP},{_MAIN},succeeded="false"}}[2m]) > 0',
        lasting="1m",
        severity="critical",
        **_SERVICE,
        summary="Virtual garden etcd data restoration failure.",
        description="The data of etcd main was to be restored from a backup, which failed.",
    )
