"""`pergola extension`: runs what an author of an extension wrote."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import App, Parameter

if TYPE_CHECKING:
    from pergola.api.objects import JsonValue
    from pergola.kube.kubeconfig import ClusterConfig

Several = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]

_NAMESPACE: Final = "LEADER_ELECTION_NAMESPACE"

app: Final = App(
    name="extension",
    help="Run extensions: actuators for extension resources, such as Networks.",
    help_format="plaintext",
)


class ExtensionCommandError(Exception):
    """The command cannot do what it was asked for; the text says why and what to do."""


@app.command
def run(
    *actuators: str,
    kubeconfig: Path | None = None,
    context: str | None = None,
    master: str = "",
    leader_election: bool | None = None,
    leader_election_id: str | None = None,
    leader_election_namespace: str | None = None,
    metrics_bind_address: str | None = None,
    health_bind_address: str | None = None,
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
    webhook_config_mode: Literal["service", "url", "url-service"] | None = None,
    webhook_config_url: str | None = None,
    webhook_config_namespace: str | None = None,
    webhook_config_owner_namespace: str | None = None,
    webhook_config_server_host: str | None = None,
    webhook_config_server_port: int | None = None,
    webhook_config_cert_dir: str | None = None,
    disable_webhooks: Several = None,
    gardener_version: str = "",
    self_hosted_shoot_cluster: bool = False,
    log_level: Literal["debug", "info", "error"] = "info",
    log_format: Literal["json", "text"] | None = None,
    config_file: Path | None = None,
) -> None:
    """Run actuators: each looks after the extension resources of its kind and type.

    Runs until SIGTERM or SIGINT. Where the variable LEADER_ELECTION_NAMESPACE or an option names
    no namespace, as on a developer's machine, there is neither leader election nor heartbeat.

    Parameters
    ----------
    actuators
        module:Class or ./file.py:Class; the class may be left out where there is only one.
    kubeconfig
        The seed, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    master
        The URL of the seed's API server, instead of the kubeconfig's.
    leader_election
        Whether replicas agree on the one that works.
    leader_election_id
        The name of their Lease; <extension>-leader-election unless given.
    leader_election_namespace
        The namespace of their Lease.
    metrics_bind_address
        host:port of /metrics, :8080 unless given; 0 for none.
    health_bind_address
        host:port of /healthz and /readyz, :8081 unless given; 0 for none.
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
    webhook_config_mode
        How API servers reach the webhooks: by a Service, by a url, or by the Service's name as a
        URL.
    webhook_config_url
        Host and port of the webhooks, for the mode url.
    webhook_config_namespace
        The namespace of their Service, and of the Secret with their certificates.
    webhook_config_owner_namespace
        The namespace with which the webhook configurations go.
    webhook_config_server_host
        The address to listen on; all addresses unless given.
    webhook_config_server_port
        The port to listen on; 10250 unless given.
    webhook_config_cert_dir
        Where the certificate is kept; a temporary directory unless given.
    disable_webhooks
        The first parts of the names of webhooks that are not wanted.
    gardener_version
        Of the Gardener that the extension serves; only logged.
    self_hosted_shoot_cluster
        Whether the extension runs in a Shoot that hosts its own control plane; only logged.
    log_level
        debug, info or error.
    log_format
        json or text; text on a terminal unless given.
    config_file
        A YAML file with these options, named as on the command line, which wins.
    """
    from pergola.extensions.loading import load_actuator
    from pergola.extensions.options import options_from
    from pergola.extensions.process import run as run_process
    from pergola.runtime.logging import configure, get_logger

    given: dict[str, JsonValue] = {
        "leaderElection": leader_election,
        "leaderElectionId": leader_election_id,
        "leaderElectionNamespace": leader_election_namespace,
        "metricsBindAddress": metrics_bind_address,
        "healthBindAddress": health_bind_address,
        "maxConcurrentReconciles": max_concurrent_reconciles,
        "reconcileTimeout": reconcile_timeout,
        "ignoreOperationAnnotation": ignore_operation_annotation,
        "extensionClasses": _split(extension_classes),
        "controllers": _split(controllers),
        "disableControllers": _split(disable_controllers),
        "heartbeatNamespace": heartbeat_namespace,
        "heartbeatRenewIntervalSeconds": heartbeat_renew_interval_seconds,
        "healthcheckSyncPeriod": healthcheck_sync_period,
        "healthcheckMaxConcurrentReconciles": healthcheck_max_concurrent_reconciles,
        "webhookConfigMode": webhook_config_mode,
        "webhookConfigUrl": webhook_config_url,
        "webhookConfigNamespace": webhook_config_namespace,
        "webhookConfigOwnerNamespace": webhook_config_owner_namespace,
        "webhookConfigServerHost": webhook_config_server_host,
        "webhookConfigServerPort": webhook_config_server_port,
        "webhookConfigCertDir": webhook_config_cert_dir,
        "disableWebhooks": _split(disable_webhooks),
    }
    if not actuators:
        raise ExtensionCommandError(
            "name an actuator: pergola extension run module:Actuator, or ./file.py:Actuator"
        )
    configure(log_level, log_format or ("text" if sys.stderr.isatty() else "json"))
    get_logger("extension").info(
        "surroundings",
        gardener_version=gardener_version,
        self_hosted_shoot_cluster=self_hosted_shoot_cluster,
    )
    options = options_from(config_file, given, os.environ.get(_NAMESPACE, ""))
    loaded = [load_actuator(reference) for reference in actuators]
    run_process(_cluster(kubeconfig, context, master), loaded, options)


def _cluster(kubeconfig: Path | None, context: str | None, master: str) -> "ClusterConfig":
    from dataclasses import replace

    from pergola.kube.kubeconfig import load

    config = load(kubeconfig, context)
    return replace(config, server=master.rstrip("/")) if master else config


def _split(values: list[str] | None) -> "JsonValue":
    """Several values, each of which may be several separated by commas."""
    if values is None:
        return None
    return [part for value in values for part in value.split(",") if part]
