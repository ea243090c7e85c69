"""`pergola extension`: runs what an author of an extension wrote."""

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
    help_format="plaintext",
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
    heartbeat_namespace: str | None = None,
    heartbeat_renew_interval_seconds: int | None = None,
    healthcheck_sync_period: str | None = None,
    healthcheck_max_concurrent_reconciles: int | None = None,
    gardener_version: str = "",
    self_hosted_shoot_cluster: bool = False,
) -> None:
    """Run actuators at a seed: each looks after the extension resources of its kind and type.

    Runs until SIGTERM or SIGINT. Where the variable LEADER_ELECTION_NAMESPACE or an option names
    no namespace, as on a developer's machine, there is neither leader election nor heartbeat.

    Parameters
    ----------
    actuators
        calico, cilium, aws or another installed extension; or module:Class or ./file.py:Class,
        without the class if there is only one. The first one names the Lease and the webhooks.
    max_concurrent_reconciles
        How many resources of a kind are worked on at once; 5 unless given.
    reconcile_timeout
        How long one run of an actuator may take, such as 5m; 3m unless given.
    ignore_operation_annotation
        Work on each new generation of a resource, instead of what callers ask for by annotation.
    extension_classes
        The classes that are served: shoot, seed, garden; shoot unless given.
    controllers
        The names of the controllers that run; all unless given.
    disable_controllers
        The names of controllers that do not run.
    heartbeat_namespace
        Where the Lease gardener-extension-heartbeat is kept.
    heartbeat_renew_interval_seconds
        From one heartbeat to the next; 30 unless given.
    healthcheck_sync_period
        From one health check of a resource to the next; 30s unless given.
    healthcheck_max_concurrent_reconciles
        How many resources are checked at once; 5 unless given.
    gardener_version
        Of the Gardener that the extension serves; only logged.
    self_hosted_shoot_cluster
        Whether the extension runs in a Shoot that hosts its own control plane; only logged.
    """
    from pergola.extensions.process import run as run_process
    from pergola.runtime.logging import get_logger

    _check_named(actuators, "run")
    process.configure_logging()
    get_logger("extension").info(
        "surroundings",
        gardener_version=gardener_version,
        self_hosted_shoot_cluster=self_hosted_shoot_cluster,
    )
    options = process.options(
        {
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
    run_process(process.cluster(), _loaded(actuators), options)


@app.command
def admission(*actuators: str, process: Process = _DEFAULT) -> None:
    """Run what actuators say to Shoots at the garden: their defaults and their refusals.

    Runs until SIGTERM or SIGINT. The kubeconfig is that of the garden, where the certificates are
    kept too: --webhook-config-namespace names an existing namespace of it.

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
    run_admission(process.cluster(), _loaded(actuators), options)


def _check_named(actuators: tuple[str, ...], command: str) -> None:
    if not actuators:
        raise ExtensionCommandError(
            f"name an extension: pergola extension {command} calico, or one of your own as"
            " module:Actuator or ./file.py:Actuator"
        )


def _loaded(references: tuple[str, ...]) -> "list[Actuator]":
    from pergola.extensions.loading import load_actuators

    return load_actuators(references)
