"""Images of a Garden: Gardener's control plane, its etcd, and vertical autoscaling."""

from typing import Final

from pergola.sandbox.images.offer import Offer, Program
from pergola.sandbox.module import CHOWN, OWN
from pergola.sandbox.on_demand import (
    BACKUP_RESTORE,
    DRUID,
    ETCD_BACKUP_RESTORE,
    ETCD_DRUID,
    ETCD_WRAPPER,
    GARDENER,
    GARDENER_ADMISSION_CONTROLLER,
    GARDENER_APISERVER,
    GARDENER_CONTROLLER_MANAGER,
    GARDENER_SCHEDULER,
    GARDENLET,
    SEED_AGENT,
    TERMINAL_CONTROLLER_MANAGER,
    TERMINALS,
    VERTICAL_AUTOSCALING,
    VPA_ADMISSION_CONTROLLER,
    VPA_RECOMMENDER,
    VPA_UPDATER,
)

_PROJECT: Final = "europe-docker.pkg.dev/gardener-project"
_RELEASES: Final = f"{_PROJECT}/releases/gardener"
_PUBLIC: Final = f"{_PROJECT}/public/gardener"

GARDEN: Final[tuple[Offer, ...]] = (
    Program(
        GARDENER_APISERVER,
        f"{_RELEASES}/apiserver",
        GARDENER,
        aliases=(f"{_PUBLIC}/apiserver",),
    ),
    Program(
        GARDENER_CONTROLLER_MANAGER,
        f"{_RELEASES}/controller-manager",
        GARDENER,
        aliases=(f"{_PUBLIC}/controller-manager",),
    ),
    Program(
        GARDENER_SCHEDULER,
        f"{_RELEASES}/scheduler",
        GARDENER,
        aliases=(f"{_PUBLIC}/scheduler",),
    ),
    Program(
        GARDENER_ADMISSION_CONTROLLER,
        f"{_RELEASES}/admission-controller",
        GARDENER,
        aliases=(f"{_PUBLIC}/admission-controller",),
    ),
    Program(
        GARDENLET,
        f"{_RELEASES}/gardenlet",
        SEED_AGENT,
        aliases=(f"{_PUBLIC}/gardenlet",),
    ),
    Program(
        TERMINAL_CONTROLLER_MANAGER,
        f"{_RELEASES}/terminal-controller-manager",
        TERMINALS,
        aliases=(f"{_PUBLIC}/terminal-controller-manager",),
    ),
    Program(ETCD_DRUID, f"{_RELEASES}/etcd-druid", DRUID, aliases=(f"{_PUBLIC}/etcd-druid",)),
    Program(
        ETCD_BACKUP_RESTORE,
        f"{_PUBLIC}/etcdbrctl",
        BACKUP_RESTORE,
        aliases=(f"{_RELEASES}/etcdbrctl",),
    ),
    Program(
        ETCD_WRAPPER,
        f"{_PUBLIC}/etcd-wrapper",
        BACKUP_RESTORE,
        requires="go.etcd.io/etcd/server/v3",
        aliases=(f"{_RELEASES}/etcd-wrapper",),
        stand_in="runs the real etcd with the configuration from etcd-backup-restore",
    ),
    *(
        Program(
            name,
            f"registry.k8s.io/autoscaling/{name}",
            VERTICAL_AUTOSCALING,
            also=(name.removeprefix("vpa-"),),
        )
        for name in (VPA_RECOMMENDER, VPA_UPDATER, VPA_ADMISSION_CONTROLLER)
    ),
    Program(
        CHOWN,
        f"{_PROJECT}/public/3rd/alpine",
        OWN,
        user="0:0",
        stand_in="contains only chown, which etcd-druid uses to prepare local backups",
    ),
)
