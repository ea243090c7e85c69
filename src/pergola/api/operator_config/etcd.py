"""`controllers.garden.etcdConfig` of the operator's configuration: settings of etcd-druid."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from msgspec import field

from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration


class EtcdController(Value):
    """The controller of etcd-druid that reconciles etcds."""

    workers: int = 50
    """How many etcds it reconciles at once."""


class CustodianController(Value):
    """The controller of etcd-druid that watches over the state of etcds."""

    workers: int = 10
    """How many etcds it looks at at once."""


class BackupCompactionController(Value):
    """The controller of etcd-druid that compacts backups."""

    workers: int = 3
    """How many backups it compacts at once."""
    enable_backup_compaction: bool = False
    """Whether backups are compacted."""
    events_threshold: int = 1_000_000
    """After how many changes a backup is compacted."""
    active_deadline_duration: Duration = Duration(hours=3)
    """How long a compaction may take."""
    metrics_scrape_wait_duration: Duration = Duration(seconds=60)
    """How long a compaction waits for its metrics to be read."""


class BackupLeaderElection(Value):
    """How the backup sidecars of an etcd elect a leader."""

    reelection_period: Duration | None = None
    """The time between two elections; etcd-druid's default if absent."""
    etcd_connection_timeout: Duration | None = None
    """How long a sidecar waits for its etcd; etcd-druid's default if absent."""


class EtcdConfig(Value):
    """Settings of etcd-druid."""

    etcd_controller: EtcdController = field(default_factory=EtcdController)
    """The controller that reconciles etcds."""
    custodian_controller: CustodianController = field(default_factory=CustodianController)
    """The controller that watches over the state of etcds."""
    backup_compaction_controller: BackupCompactionController = field(
        default_factory=BackupCompactionController
    )
    """The controller that compacts backups."""
    backup_leader_election: BackupLeaderElection | None = None
    """How the backup sidecars elect a leader."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of etcd-druid."""
    delta_snapshot_retention_period: Duration | None = None
    """How long incremental snapshots are kept; etcd-druid's default if absent."""
