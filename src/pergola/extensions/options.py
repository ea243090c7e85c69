"""The options of an extension's process, from a file and the command line (spec 40 §3.3)."""

# ruff: noqa: RUF012 - Structs give every value its own copy of an empty default

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Final, Literal

from msgspec import Meta, field

from pergola.api.component_config import ZERO_IS_UNSET, Sharding, without_zeros
from pergola.api.core_v1_validation import is_dns_label
from pergola.api.objects import GroupVersionKind, JsonObject, JsonValue, without_nulls
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration
from pergola.api.schema.read import Malformed
from pergola.extensions.health_checks import Settings as HealthSettings
from pergola.extensions.heartbeat import RENEW_SECONDS
from pergola.extensions.lifecycle import Settings
from pergola.extensions.process import Options
from pergola.extensions.provider_config import read_strict
from pergola.extensions.webhooks.declare import WebhookError
from pergola.extensions.webhooks.settings import PORT, Mode, WebhookSettings
from pergola.kube.yaml import YamlError, parse
from pergola.runtime.process.options import StartError

KIND: Final = GroupVersionKind("extensions.pergola.dev", "v1alpha1", "ExtensionOptions")
Positive = Annotated[int, Meta(ge=1)]


class ExtensionOptions(Value):
    """The options of `pergola extension run`, which configure the process of an extension."""

    leader_election: bool = True
    """Whether replicas elect a leader."""
    leader_election_id: str = ""
    """The name of their Lease; `<extension>-leader-election` if empty."""
    leader_election_namespace: str = ""
    """The namespace of their Lease; that of the process if empty."""
    sharding: Sharding = field(default_factory=Sharding)
    """Replicas that share the resources of a ring."""
    metrics_bind_address: Annotated[str, ZERO_IS_UNSET] = ":8080"
    """`host:port` of /metrics; `0` for no endpoint."""
    health_bind_address: Annotated[str, ZERO_IS_UNSET] = ":8081"
    """`host:port` of /healthz and /readyz; `0` for no endpoint."""
    max_concurrent_reconciles: Annotated[Positive, ZERO_IS_UNSET] = 5
    """The number of resources of a kind reconciled in parallel."""
    reconcile_timeout: Duration = Duration()
    """The time limit of a run; 0 for 20 minutes for machines and infrastructure, else 3."""
    ignore_operation_annotation: bool = False
    """Whether to reconcile every new generation, even without the operation annotation."""
    extension_classes: list[Literal["shoot", "seed", "garden"]] = []
    """The classes that are served; `shoot` if empty."""
    controllers: list[str] = []
    """The names of the controllers that run; all if empty."""
    disable_controllers: list[str] = []
    """The names of controllers that do not run."""
    heartbeat_namespace: str = ""
    """The namespace of the Lease `gardener-extension-heartbeat`; that of the process if empty."""
    heartbeat_renew_interval_seconds: Annotated[int, ZERO_IS_UNSET] = RENEW_SECONDS
    """The interval between heartbeats."""
    healthcheck_sync_period: Annotated[Duration, ZERO_IS_UNSET] = Duration(seconds=30)
    """The interval between health checks of a resource."""
    healthcheck_max_concurrent_reconciles: Annotated[Positive, ZERO_IS_UNSET] = 5
    """The number of resources checked in parallel."""
    webhook_config_mode: Annotated[Mode, ZERO_IS_UNSET] = "service"
    """The way in which API servers reach the webhooks."""
    webhook_config_url: str = ""
    """Host and port of the webhooks, for the mode `url`."""
    webhook_config_namespace: str = ""
    """The namespace of the webhooks' Service and certificates; that of the process if empty."""
    webhook_config_owner_namespace: str = ""
    """The namespace whose deletion deletes the webhook configurations, too."""
    webhook_config_owner_cluster_role: str = ""
    """The ClusterRole whose deletion deletes the webhook configurations, such as that of a Helm
    release."""
    webhook_config_server_host: str = ""
    """The address to listen on; all if empty."""
    webhook_config_server_port: Annotated[int, ZERO_IS_UNSET] = PORT
    """The port to listen on."""
    webhook_config_cert_dir: str = ""
    """The directory of the certificate; a temporary one if empty."""
    webhook_config_client_ca_file: str = field(name="webhookConfigClientCAFile", default="")
    """A PEM file: only clients with a certificate of these authorities may connect; empty for
    all."""
    disable_webhooks: list[str] = []
    """Names, or the first parts of names, of webhooks that are switched off."""
    feature_gates: dict[str, bool] = {}
    """Feature gates of the actuators, for all resources."""


def options_from(file: Path | None, given: Mapping[str, JsonValue], namespace: str = "") -> Options:
    """Return the options that apply.

    Args:
        file: YAML with options.
        given: from the command line, with the same names; these override the file, and None means
            not given.
        namespace: where the process runs; empty outside a cluster.

    Raises:
        StartError: options are unknown or have invalid values, all of which are listed.
    """
    # Go code writes a zero for a setting without a value, and YAML null for an empty block.
    written = without_zeros(ExtensionOptions, without_nulls(_read(file))) if file else {}
    merged = _merged(written, given)
    try:
        chosen = read_strict(ExtensionOptions, merged, KIND, path="options")
    except Malformed as error:
        where = f" (configuration file {file})" if file else ""
        findings = "; ".join(str(finding) for finding in error.findings)
        raise StartError(f"{findings}{where}") from None
    if chosen.heartbeat_renew_interval_seconds <= 0:
        raise StartError("--heartbeat-renew-interval-seconds must be greater than 0")
    if chosen.sharding.controller_ring and not is_dns_label(chosen.sharding.controller_ring):
        raise StartError(
            "--sharding-controller-ring must be the name of a ControllerRing, with at most 63 "
            "characters"
        )
    return _options(chosen, namespace)


def _merged(written: JsonObject, given: Mapping[str, JsonValue]) -> JsonObject:
    """Override settings with given ones; maps are merged entry by entry."""
    merged = dict(written)
    for name, value in given.items():
        before = merged.get(name)
        if isinstance(before, dict) and isinstance(value, dict):
            merged[name] = {**before, **value}
        elif value is not None:
            merged[name] = value
    return merged


def _read(file: Path) -> JsonObject:
    try:
        value = parse(file.read_bytes())
    except OSError as error:
        raise StartError(f"cannot read configuration file {file}: {error.strerror}") from None
    except YamlError as error:
        raise StartError(f"configuration file {file} is not valid YAML: {error}") from None
    if value is not None and not isinstance(value, dict):
        raise StartError(f"configuration file {file} must be a map of options")
    return value or {}


def _options(chosen: ExtensionOptions, namespace: str) -> Options:
    classes: tuple[str, ...] = tuple(chosen.extension_classes) or Settings().classes
    elected = chosen.leader_election_namespace or namespace
    return Options(
        lifecycle=Settings(
            max_concurrent=chosen.max_concurrent_reconciles,
            timeout=chosen.reconcile_timeout.total_seconds(),
            ignore_operation_annotation=chosen.ignore_operation_annotation,
            classes=classes,
        ),
        health_checks=HealthSettings(
            sync_period=chosen.healthcheck_sync_period.total_seconds(),
            max_concurrent=chosen.healthcheck_max_concurrent_reconciles,
            classes=classes,
        ),
        webhooks=_webhooks(chosen, chosen.webhook_config_namespace or namespace),
        disable_webhooks=frozenset(chosen.disable_webhooks),
        # Without a namespace, as on a developer's machine, there is only one replica.
        leader_election_namespace=elected if chosen.leader_election else "",
        leader_election_id=chosen.leader_election_id,
        metrics_bind_address=chosen.metrics_bind_address,
        health_bind_address=chosen.health_bind_address,
        controller_ring=chosen.sharding.controller_ring,
        controllers=tuple(chosen.controllers),
        disable_controllers=tuple(chosen.disable_controllers),
        heartbeat_namespace=chosen.heartbeat_namespace or namespace,
        heartbeat_renew_interval_seconds=chosen.heartbeat_renew_interval_seconds,
        feature_gates=chosen.feature_gates,
    )


def _webhooks(chosen: ExtensionOptions, namespace: str) -> WebhookSettings | None:
    if not namespace:
        return None
    try:
        return WebhookSettings(
            mode=chosen.webhook_config_mode,
            url=chosen.webhook_config_url,
            namespace=namespace,
            owner_namespace=chosen.webhook_config_owner_namespace,
            owner_cluster_role=chosen.webhook_config_owner_cluster_role,
            host=chosen.webhook_config_server_host,
            port=chosen.webhook_config_server_port,
            cert_dir=chosen.webhook_config_cert_dir,
            client_ca=chosen.webhook_config_client_ca_file,
        )
    except WebhookError as error:
        raise StartError(str(error)) from None
