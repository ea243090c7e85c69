"""`pergola extension`: runs extensions."""

from typing import TYPE_CHECKING, Final

from cyclopts import App

from pergola.cli.extension.options import ExtensionCommandError, Process, Several, split
from pergola.cli.extension.register import register

if TYPE_CHECKING:
    from pergola.extensions.actuator import Actuator

_DEFAULT: Final = Process()

app: Final = App(
    name="extension",
    help="Run extensions: actuators for extension resources, such as Networks.",
)
app.command(register)


@app.command
def run(
    *actuators: str,
    process: Process = _DEFAULT,
    max_concurrent_reconciles: int | None = None,
    reconcile_timeout: str | None = None,
    ignore_operation_annotation: bool | None = None,
    extension_classes: Several = None,
    controllers: Several = None,
    disable_controllers: Several = None,
    sharding_controller_ring: str | None = None,
    heartbeat_namespace: str | None = None,
    heartbeat_renew_interval_seconds: int | None = None,
    healthcheck_sync_period: str | None = None,
    healthcheck_max_concurrent_reconciles: int | None = None,
    gardener_version: str = "",
    self_hosted_shoot_cluster: bool = False,
) -> None:
    """Run actuators at a seed: each manages the extension resources of its kind and type.

    Runs until SIGTERM or SIGINT. Without a namespace in the variable LEADER_ELECTION_NAMESPACE or
    an option, as on a developer's machine, there is neither leader election nor heartbeat.

    Parameters
    ----------
    actuators
        calico, cilium, aws or another installed extension; or module:Class or ./file.py:Class,
        without the class if there is only one. The first one names the Lease and the webhooks.
    max_concurrent_reconciles
        The number of resources of a kind that are reconciled at once; 5 by default.
    reconcile_timeout
        The time limit of one run of an actuator, such as 5m; by default 20m for Workers,
        Infrastructures and Bastions, and 3m for others.
    ignore_operation_annotation
        Reconcile each new generation of a resource, instead of only on request by annotation.
    extension_classes
        The classes to serve: shoot, seed, garden; shoot by default.
    controllers
        The names of the controllers to run; all by default.
    disable_controllers
        The names of controllers not to run.
    sharding_controller_ring
        The ControllerRing that each replica joins as a shard; none by default.
    heartbeat_namespace
        The namespace of the Lease gardener-extension-heartbeat.
    heartbeat_renew_interval_seconds
        Seconds between two heartbeats; 30 by default.
    healthcheck_sync_period
        The time between two health checks of a resource; 30s by default.
    healthcheck_max_concurrent_reconciles
        The number of resources that are checked at once; 5 by default.
    gardener_version
        The version of the Gardener that the extension serves; only logged.
    self_hosted_shoot_cluster
        Whether the extension runs in a Shoot that hosts its own control plane; only logged.
    """
    from pergola.extensions.process import run as run_process
    from pergola.runtime.logging import get_logger

    _check_named(actuators, "run")
    process.configure_logging()
    get_logger("extension").info(
        "versions",
        gardener_version=gardener_version,
        self_hosted_shoot_cluster=self_hosted_shoot_cluster,
    )
    ring = sharding_controller_ring
    options = process.options(
        {
            "sharding": None if ring is None else {"controllerRing": ring},
            "maxConcurrentReconciles": max_concurrent_reconciles,
            "reconcileTimeout": reconcile_timeout,
            "ignoreOperationAnnotation": ignore_operation_annotation,
            "extensionClasses": split(extension_classes),
            "controllers": split(controllers),
            "disableControllers": split(disable_controllers),
            "heartbeatNamespace": heartbeat_namespace,
            "heartbeatRenewIntervalSeconds": heartbeat_renew_interval_seconds,
            "healthcheckSyncPeriod": healthcheck_sync_period,
            "healthcheckMaxConcurrentReconciles": healthcheck_max_concurrent_reconciles,
        }
    )
    run_process(process.config(), _loaded(actuators), options)


@app.command
def admission(*actuators: str, process: Process = _DEFAULT) -> None:
    """Run the admission webhooks of actuators at the garden: defaults and validation of Shoots.

    Runs until SIGTERM or SIGINT. The kubeconfig is the garden's, which also stores the
    certificates: --webhook-config-namespace names one of its existing namespaces.

    Parameters
    ----------
    actuators
        calico, cilium, aws or another installed extension; or module:Class or ./file.py:Class,
        without the class if there is only one. The first one names the component.
    """
    from pergola.extensions.garden_process import run as run_admission

    _check_named(actuators, "admission")
    process.configure_logging()
    options = process.options()
    run_admission(process.config(), _loaded(actuators), options)


def _check_named(actuators: tuple[str, ...], command: str) -> None:
    if not actuators:
        raise ExtensionCommandError(
            f"name an extension: pergola extension {command} calico, or one of your own as"
            " module:Actuator or ./file.py:Actuator"
        )


def _loaded(references: tuple[str, ...]) -> "list[Actuator]":
    from pergola.extensions.loading import load_actuators

    return load_actuators(references)
