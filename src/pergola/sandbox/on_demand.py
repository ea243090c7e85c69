"""Go modules whose programs are built only on request: for an image, or for a test that runs one.

`pergola sandbox build` leaves them out, because together they take an hour.
"""

from typing import Final

from pergola.sandbox.module import GO_MODULES, Module, kubernetes_stamps

ETCD_DRUID: Final = "etcd-druid"
ETCD_BACKUP_RESTORE: Final = "etcd-backup-restore"
ETCD_WRAPPER: Final = "etcd-wrapper"
GARDENER_APISERVER: Final = "gardener-apiserver"
GARDENER_CONTROLLER_MANAGER: Final = "gardener-controller-manager"
GARDENER_SCHEDULER: Final = "gardener-scheduler"
GARDENER_ADMISSION_CONTROLLER: Final = "gardener-admission-controller"
TERMINAL_CONTROLLER_MANAGER: Final = "terminal-controller-manager"

DRUID: Final = Module(
    directory=GO_MODULES / "etcd-druid",
    packages={ETCD_DRUID: "github.com/gardener/etcd-druid/cmd"},
    versioned="github.com/gardener/etcd-druid",
    stamps={"github.com/gardener/etcd-druid/internal/version.gitVersion": "{version}"},
    unlisted=("github.com/gardener/etcd-druid", "github.com/gardener/etcd-druid/api"),
)
# One module for both, so that the etcd that runs is the one that validates and restores its data.
BACKUP_RESTORE: Final = Module(
    directory=GO_MODULES / "etcd-backup-restore",
    packages={
        ETCD_BACKUP_RESTORE: "github.com/gardener/etcd-backup-restore",
        ETCD_WRAPPER: "./etcd-wrapper",
    },
    versioned="github.com/gardener/etcd-backup-restore",
    stamps={"github.com/gardener/etcd-backup-restore/pkg/version.Version": "{version}"},
    unlisted=("github.com/gardener/etcd-backup-restore", "go.etcd.io"),
)
GARDENER: Final = Module(
    directory=GO_MODULES / "gardener",
    packages={
        name: f"github.com/gardener/gardener/cmd/{name}"
        for name in (
            GARDENER_APISERVER,
            GARDENER_CONTROLLER_MANAGER,
            GARDENER_SCHEDULER,
            GARDENER_ADMISSION_CONTROLLER,
        )
    },
    versioned="github.com/gardener/gardener",
    stamps=kubernetes_stamps("k8s.io/component-base/version"),
)
TERMINALS: Final = Module(
    directory=GO_MODULES / "terminal-controller-manager",
    packages={TERMINAL_CONTROLLER_MANAGER: "github.com/gardener/terminal-controller-manager"},
    versioned="github.com/gardener/terminal-controller-manager",
)
ON_DEMAND: Final = (DRUID, BACKUP_RESTORE, GARDENER, TERMINALS)
