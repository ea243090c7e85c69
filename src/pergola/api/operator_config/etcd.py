"""`controllers.garden.etcdConfig` of the operator's configuration: settings of etcd-druid."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from msgspec import field

from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration


class EtcdController(Value):
    """The controller of etcd-druid that reconciles etcds."""

    workers: int = 50
    """The number of etcds reconciled in parallel."""


class CustodianController(Value):
    """The controller of etcd-druid that monitors the state of etcds."""

    workers: int = 10
    """The number of etcds checked in parallel."""


class BackupCompactionController(Value):
    """The controller of etcd-druid that compacts backups."""

    workers: int = 3
    """The number of backups compacted in parallel."""
    enable_backup_compaction: bool = False
    """Whether backups are compacted."""
    events_threshold: int = 1_000_000
    """The number of changes after which a backup is compacted."""
    active_deadline_duration: Duration = Duration(hours=3)
    """The time limit of a compaction."""
    metrics_scrape_wait_duration: Duration = Duration(seconds=60)
    """The time for which a compaction waits for its metrics to be scraped."""


class BackupLeaderElection(Value):
    """The leader election of an etcd's backup sidecars."""

    reelection_period: Duration | None = None
    """The time between two elections; etcd-druid's default if absent."""
    etcd_connection_timeout: Duration | None = None
    """The time limit of a sidecar's connection to its etcd; etcd-druid's default if absent."""


class EtcdConfig(Value):
    """Settings of etcd-druid."""

    etcd_controller: EtcdController = field(default_factory=EtcdController)
    """The controller that reconciles etcds."""
    custodian_controller: CustodianController = field(default_factory=CustodianController)
    """The controller that monitors the state of etcds."""
    backup_compaction_controller: BackupCompactionController = field(
        default_factory=BackupCompactionController
    )
    """The controller that compacts backups."""
    backup_leader_election: BackupLeaderElection | None = None
    """The leader election of the backup sidecars."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of etcd-druid."""
    delta_snapshot_retention_period: Duration | None = None
    """The lifetime of incremental snapshots; etcd-druid's default if absent."""
