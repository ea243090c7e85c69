"""The command-line options that all processes of extensions share."""

import os
import sys
from dataclasses import dataclass, replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final, Literal

from cyclopts import Parameter

from pergola.cli.cluster_options import ClusterOptions

if TYPE_CHECKING:
    from pergola.api.objects import JsonValue
    from pergola.extensions.process import Options
    from pergola.kube.kubeconfig import ClusterConfig

Several = Annotated[list[str] | None, Parameter(negative="", consume_multiple=False)]

_NAMESPACE: Final = "LEADER_ELECTION_NAMESPACE"


class ExtensionCommandError(Exception):
    """The command cannot run; the text says why and what to do."""


@Parameter(name="*")
@dataclass(frozen=True, kw_only=True)
class Process(ClusterOptions):
    """Options of a process.

    Attributes:
        master: The URL of the API server, instead of the kubeconfig's.
        leader_election: Whether replicas elect a leader.
        leader_election_id: The name of their Lease; `EXTENSION-leader-election` by default.
        leader_election_namespace: The namespace of their Lease.
        metrics_bind_address: host:port of /metrics; :8080 by default, 0 for none.
        health_bind_address: host:port of /healthz and /readyz; :8081 by default, 0 for none.
        webhook_config_mode: The way in which API servers reach the webhooks: by a Service, by a
            url, or by the Service's name as a URL.
        webhook_config_url: Host and port of the webhooks, for the mode url.
        webhook_config_namespace: The namespace of their Service, and of the Secret with their
            certificates.
        webhook_config_owner_namespace: The namespace whose deletion deletes the webhook
            configurations, too.
        webhook_config_server_host: The address to listen on; all addresses by default.
        webhook_config_server_port: The port to listen on; 10250 by default.
        webhook_config_cert_dir: The directory of the certificate; a temporary one by default.
        webhook_config_client_ca_file: A PEM file: only clients with a certificate of these
            authorities may connect; all by default.
        disable_webhooks: The names, or the first parts of the names, of webhooks to disable.
        feature_gates: Feature gates of the actuators, as Name=true.
        log_level: debug, info or error.
        log_format: json or text; by default text on a terminal.
        config_file: A YAML file with the same options in camelCase; the command line takes
            precedence.
    """

    master: str = ""
    leader_election: bool | None = None
    leader_election_id: str | None = None
    leader_election_namespace: str | None = None
    metrics_bind_address: str | None = None
    health_bind_address: str | None = None
    webhook_config_mode: Literal["service", "url", "url-service"] | None = None
    webhook_config_url: str | None = None
    webhook_config_namespace: str | None = None
    webhook_config_owner_namespace: str | None = None
    webhook_config_server_host: str | None = None
    webhook_config_server_port: int | None = None
    webhook_config_cert_dir: str | None = None
    webhook_config_client_ca_file: str | None = None
    disable_webhooks: Several = None
    feature_gates: Several = None
    log_level: Literal["debug", "info", "error"] = "info"
    log_format: Literal["json", "text"] | None = None
    config_file: Path | None = None

    def config(self) -> "ClusterConfig":
        """Return the API server and the credentials for it."""
        config = super().config()
        return replace(config, server=self.master.rstrip("/")) if self.master else config

    def configure_logging(self) -> None:
        """Send log lines to standard error from now on."""
        from pergola.runtime.logging import configure

        configure(self.log_level, self.log_format or ("text" if sys.stderr.isatty() else "json"))

    def options(self, extra: "dict[str, JsonValue] | None" = None) -> "Options":
        """Return the options that apply.

        Args:
            extra: options of one command, by their names in a configuration file.
        """
        from pergola.extensions.options import options_from

        given = self._given() | (extra or {})
        return options_from(self.config_file, given, os.environ.get(_NAMESPACE, ""))

    def _given(self) -> "dict[str, JsonValue]":
        return {
            "leaderElection": self.leader_election,
            "leaderElectionId": self.leader_election_id,
            "leaderElectionNamespace": self.leader_election_namespace,
            "metricsBindAddress": self.metrics_bind_address,
            "healthBindAddress": self.health_bind_address,
            "webhookConfigMode": self.webhook_config_mode,
            "webhookConfigUrl": self.webhook_config_url,
            "webhookConfigNamespace": self.webhook_config_namespace,
            "webhookConfigOwnerNamespace": self.webhook_config_owner_namespace,
            "webhookConfigServerHost": self.webhook_config_server_host,
            "webhookConfigServerPort": self.webhook_config_server_port,
            "webhookConfigCertDir": self.webhook_config_cert_dir,
            "webhookConfigClientCAFile": self.webhook_config_client_ca_file,
            "disableWebhooks": split(self.disable_webhooks),
            "featureGates": _gates(split(self.feature_gates)),
        }


def split(values: list[str] | None) -> "JsonValue":
    """Split values at commas, so that an option may be repeated or hold a list."""
    if values is None:
        return None
    return [part for value in values for part in value.split(",") if part]


def _gates(values: "JsonValue") -> "JsonValue":
    if not isinstance(values, list):
        return None
    gates: dict[str, JsonValue] = {}
    for value in map(str, values):
        name, _, state = value.partition("=")
        if not name or state not in ("true", "false"):
            raise ExtensionCommandError(f'--feature-gates is "{value}"; write Name=true')
        gates[name] = state == "true"
    return gates
