"""An extension as a process: its actuators on a seed (spec 40 §3.3)."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple

from pergola import __version__
from pergola.admission.webhook import Webhook
from pergola.extension_api.kinds import CLUSTER_SCOPED
from pergola.extension_api.predicates import SHOOT_CLASS
from pergola.extensions.actuator import Actuator
from pergola.extensions.health_checks import Settings as HealthSettings
from pergola.extensions.health_checks import health_controller
from pergola.extensions.heartbeat import RENEW_SECONDS, Heartbeat
from pergola.extensions.lifecycle import Settings, extension_controller
from pergola.extensions.seed import Seed
from pergola.extensions.sharing import Sharing
from pergola.extensions.webhooks.declare import enabled, side_by_side
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.extensions.webhooks.settings import WebhookSettings
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process import application
from pergola.runtime.process.application import Application
from pergola.runtime.process.options import (
    Election,
    ProcessOptions,
    ShardLease,
    StartError,
    parse_address,
)
from pergola.runtime.process.sharding.scope import EVERYTHING, Scope

log = get_logger("extension")

HEARTBEAT: Final = "heartbeat"


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """Options of the process.

    Attributes:
        webhooks: how to serve webhooks; None to serve none.
        disable_webhooks: names of webhooks to disable, or prefixes of names.
        leader_election_namespace: the namespace of the Lease; empty if there is only one replica.
        leader_election_id: the name of the Lease; `<extension>-leader-election` if empty.
        metrics_bind_address: `host:port` or `:port`; `0` for no endpoint.
        health_bind_address: the same for the probes.
        controller_ring: the ring that each replica joins as a shard; empty if the leader works
            alone.
        controllers: the names of the controllers to run; all if empty.
        disable_controllers: the names of controllers not to run.
        heartbeat_namespace: the namespace of the heartbeat's Lease; empty for no heartbeat.
        feature_gates: of actuators, as set by the operator of the process.
    """

    lifecycle: Settings = field(default_factory=Settings)
    health_checks: HealthSettings = field(default_factory=HealthSettings)
    webhooks: WebhookSettings | None = None
    disable_webhooks: frozenset[str] = frozenset()
    leader_election_namespace: str = ""
    leader_election_id: str = ""
    metrics_bind_address: str = ":8080"
    health_bind_address: str = ":8081"
    controller_ring: str = ""
    controllers: tuple[str, ...] = ()
    disable_controllers: tuple[str, ...] = ()
    heartbeat_namespace: str = ""
    heartbeat_renew_interval_seconds: int = RENEW_SECONDS
    feature_gates: Mapping[str, bool] = field(default_factory=dict)

    def process(self, name: str) -> ProcessOptions:
        """Return the options of the process.

        Args:
            name: the name of the extension; the Lease is named after it unless the options set a
                name.

        Raises:
            StartError: an address is not valid, or a shard has no namespace for its Lease.
        """
        if self.controller_ring and not self.leader_election_namespace:
            raise StartError(
                "sharding.controllerRing needs the leader election, since a leader runs the rest, "
                "and its namespace: --leader-election-namespace"
            )
        election = Election(
            namespace=self.leader_election_namespace,
            name=self.leader_election_id or f"{name}-leader-election",
        )
        return ProcessOptions(
            health=parse_address(self.health_bind_address, "--health-bind-address"),
            metrics=parse_address(self.metrics_bind_address, "--metrics-bind-address"),
            election=election if self.leader_election_namespace else None,
            sharding=ShardLease(ring=self.controller_ring, namespace=election.namespace)
            if self.controller_ring
            else None,
        )


def run(config: ClusterConfig, actuators: Sequence[Actuator], options: Options) -> None:
    """Run the process until it receives SIGTERM or SIGINT.

    Raises:
        Exception: it cannot start, or cannot continue.
    """
    log.info("starting", version=__version__, serves=_titles(actuators))
    application.run(lambda: serve(config, actuators, options), actuators[0].name)


async def serve(config: ClusterConfig, actuators: Sequence[Actuator], options: Options) -> None:
    """Serve endpoints and webhooks and, as the leader, run the controllers, until cancelled.

    Raises:
        StartError: the options or the actuators contradict each other.
    """
    _check_unique(actuators)
    configure(actuators, options.feature_gates)
    metrics = Metrics()
    async with Client.connect(config, observe=metrics.client_request) as client:
        app = Application(client, options.process(actuators[0].name), metrics=metrics)
        sharing = Sharing(app.guarded_share(client), app.shard, metrics) if app.shard else None
        units = assemble(app.guarded(client), actuators, options, metrics, sharing)
        on = chosen(units, options)
        await app.serve(
            webhooks=webhooks_of(client, actuators, on, options, metrics),
            sharing=sharing.chosen(on) if sharing else (),
            leading=[unit for unit in on if not sharing or unit not in sharing.units],
        )


def webhooks_of(
    client: Client,
    actuators: Sequence[Actuator],
    on: Iterable[Unit],
    options: Options,
    metrics: Metrics,
) -> ExtensionWebhooks | None:
    """Return the webhooks of all actuators that run; None if this instance serves none.

    Args:
        on: the enabled units.

    Raises:
        WebhookError: a webhook to disable does not exist, or two contradict each other.
    """
    seed = Seed(client)
    groups = side_by_side((actuator.type, actuator.webhooks(seed)) for actuator in actuators)
    left = enabled((webhook for group in groups for webhook in group), options.disable_webhooks)
    # Another process may serve what this one does not run, and registers the webhooks for it.
    running = {unit.name for unit in on}
    names = controller_names(actuators)
    groups = [group if name in running else [] for group, name in zip(groups, names, strict=True)]
    declared = [webhook for group in groups for webhook in group]
    if not declared:
        return None
    if SHOOT_CLASS not in options.lifecycle.classes:
        # Another instance may serve the Shoots of this cluster; two would overwrite each other.
        log.info("webhooks are not served: they concern Shoots, and this instance serves none")
        return None
    if options.webhooks is None:
        log.info(
            "webhooks are not served; name a namespace for their certificates with "
            "--webhook-config-namespace",
            webhooks=[webhook.registration.name for webhook in left],
        )
        return None
    off = {each.registration.name for each in declared} - {each.registration.name for each in left}
    settings = replace(options.webhooks, disabled=frozenset(off))
    webhooks = ExtensionWebhooks(client, actuators[0].name, declared, settings, metrics)
    _register_in_shoots(webhooks, actuators, groups)
    return webhooks


def _register_in_shoots(
    webhooks: ExtensionWebhooks, actuators: Sequence[Actuator], groups: Sequence[Sequence[Webhook]]
) -> None:
    """Register all webhooks that share a ManagedResource, even of several actuators."""
    owned: dict[_InShoots, list[Webhook]] = {}
    for actuator, group in zip(actuators, groups, strict=True):
        owned.setdefault(_in_shoots(actuator), []).extend(w for w in group if w.of_shoots)
    components = {_in_shoots(actuator): actuator.name for actuator in reversed(actuators)}
    renders = {
        place: webhooks.in_shoots(components[place], place.name, found, dict(place.namespaces))
        for place, found in owned.items()
        if found
    }
    for actuator, group in zip(actuators, groups, strict=True):
        if any(webhook.of_shoots for webhook in group):
            actuator.shoot_webhooks = renders[_in_shoots(actuator)]


class _InShoots(NamedTuple):
    """A ManagedResource with webhooks, and the labels of its namespaces."""

    name: str
    namespaces: frozenset[tuple[str, str]]


def _in_shoots(actuator: Actuator) -> _InShoots:
    namespaces = frozenset(actuator.shoot_namespaces().items())
    return _InShoots(actuator.shoot_webhooks_resource(), namespaces)


def assemble(
    client: Client,
    actuators: Sequence[Actuator],
    options: Options,
    metrics: Metrics,
    sharing: Sharing | None = None,
) -> list[Unit]:
    """Return all units for some actuators: those that run once, and those of each resource.

    Args:
        client: for the units that run once.
        sharing: the resources that replicas share; None if the leader works on all of them.
    """
    units: list[Unit] = []
    for actuator, name in zip(actuators, controller_names(actuators), strict=True):
        actuator.measure(metrics)
        if sharing and actuator.kind not in CLUSTER_SCOPED:
            scope = sharing.scope(actuator.gvk())
            found = _controllers(sharing.client, actuator, name, options, metrics, scope)
            sharing.units += found
        else:
            found = _controllers(client, actuator, name, options, metrics)
        units += [*found, *actuator.companions(client, metrics)]
    if options.heartbeat_namespace:
        units.append(_heartbeats(client, actuators, options))
    return units


def _controllers(
    client: Client,
    actuator: Actuator,
    name: str,
    options: Options,
    metrics: Metrics,
    scope: Scope = EVERYTHING,
) -> list[Unit]:
    units = [
        extension_controller(
            client, actuator, options.lifecycle, name=name, metrics=metrics, scope=scope
        )
    ]
    if checks := actuator.health_checks():
        settings = replace(options.health_checks, classes=options.lifecycle.classes)
        unit = health_controller(
            client, actuator.gvk(), actuator.type, checks, settings, metrics=metrics, scope=scope
        )
        unit.name = f"{name}-healthcheck"
        units.append(unit)
    return units


def _heartbeats(client: Client, actuators: Sequence[Actuator], options: Options) -> Unit:
    names = dict.fromkeys(actuator.name for actuator in actuators)
    heartbeats = [
        Heartbeat(
            client,
            name,
            options.heartbeat_namespace,
            is_first=name == actuators[0].name,
            seconds=options.heartbeat_renew_interval_seconds,
        )
        for name in names
    ]
    return Unit(HEARTBEAT, tasks=[heartbeat.run for heartbeat in heartbeats])


def controller_names(actuators: Sequence[Actuator]) -> list[str]:
    """Return the kinds, such as `network`, with the type if a kind has several actuators."""
    kinds = Counter(actuator.kind for actuator in actuators)
    return [
        f"{actuator.kind}-{actuator.type}".lower()
        if kinds[actuator.kind] > 1
        else actuator.kind.lower()
        for actuator in actuators
    ]


def configure(actuators: Sequence[Actuator], gates: Mapping[str, bool]) -> None:
    """Set the feature gates of every actuator.

    Raises:
        StartError: a gate is unknown.
    """
    known = {gate for actuator in actuators for gate in actuator.feature_gates}
    if unknown := sorted(set(gates) - known):
        there_are = f"there are {', '.join(sorted(known))}" if known else "there are none"
        raise StartError(f"--feature-gates names {', '.join(unknown)}; {there_are}")
    for actuator in actuators:
        values = {gate: gates.get(gate, value) for gate, value in actuator.feature_gates.items()}
        actuator.configure(values)
        if values:
            log.info("feature gates", actuator=actuator.name, **values)


def chosen(units: Iterable[Unit], options: Options) -> list[Unit]:
    """Return the enabled units.

    Raises:
        StartError: a name is unknown.
    """
    units = list(units)
    known = {unit.name for unit in units} | {HEARTBEAT}
    for flag, names in (
        ("--controllers", options.controllers),
        ("--disable-controllers", options.disable_controllers),
    ):
        if unknown := sorted(set(names) - known):
            raise StartError(
                f"{flag} names {', '.join(unknown)}; there are {', '.join(sorted(known))}"
            )
    on = set(options.controllers or known) - set(options.disable_controllers)
    return [unit for unit in units if unit.name in on]


def _check_unique(actuators: Sequence[Actuator]) -> None:
    if not actuators:
        raise StartError("there is no actuator to run")
    seen: set[tuple[str, str]] = set()
    for actuator in actuators:
        if (actuator.kind, actuator.type) in seen:
            raise StartError(
                f"two actuators are for the kind {actuator.kind} and the type {actuator.type}; "
                "run only one of them"
            )
        seen.add((actuator.kind, actuator.type))


def _titles(actuators: Sequence[Actuator]) -> list[str]:
    return [f"{actuator.kind} {actuator.type}" for actuator in actuators]
