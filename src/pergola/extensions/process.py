"""An extension as a process: its actuators, endpoints, leadership, heartbeat (spec 40 §3.3)."""

import asyncio
import socket
import uuid
from collections import Counter
from collections.abc import Callable, Coroutine, Iterable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field, replace
from typing import Final, NamedTuple, TypeAlias

from pergola import __version__
from pergola.admission.certificates import ServingError
from pergola.admission.webhook import Webhook
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.actuator import Actuator
from pergola.extensions.health_checks import Settings as HealthSettings
from pergola.extensions.health_checks import health_controller
from pergola.extensions.heartbeat import RENEW_SECONDS, Heartbeat
from pergola.extensions.lifecycle import Settings, extension_controller
from pergola.extensions.webhooks.declare import side_by_side
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.extensions.webhooks.settings import WebhookSettings
from pergola.kube.client import Client
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.endpoints import Check, serve_metrics, serve_probes
from pergola.runtime.process.event_loop import run as run_process
from pergola.runtime.process.leader_election import LeaderElection, LostLeadership
from pergola.runtime.process.listening import ListenError
from pergola.runtime.process.signals import work_until_signalled

log = get_logger("extension")

HEARTBEAT: Final = "heartbeat"
NOT_SERVED: Final = "0"

Work: TypeAlias = Callable[[], Coroutine[None, None, None]]


class StartError(ExtensionError):
    """The process cannot start, or cannot go on; the text says why and what to do."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Options:
    """How the process runs.

    Attributes:
        webhooks: how webhooks are served; None if they are not.
        leader_election_namespace: where replicas agree on a leader; empty where there is but one.
        leader_election_id: the name of the Lease; `<extension>-leader-election` if empty.
        metrics_bind_address: `host:port`, the host may be left out; `0` for no endpoint.
        health_bind_address: the same for the probes.
        controllers: the names of those that run; all if empty.
        disable_controllers: the names of those that do not.
        heartbeat_namespace: where the heartbeat is kept; empty for none.
        feature_gates: of actuators, as the operator sets them.
    """

    lifecycle: Settings = field(default_factory=Settings)
    health_checks: HealthSettings = field(default_factory=HealthSettings)
    webhooks: WebhookSettings | None = None
    leader_election_namespace: str = ""
    leader_election_id: str = ""
    metrics_bind_address: str = ":8080"
    health_bind_address: str = ":8081"
    controllers: tuple[str, ...] = ()
    disable_controllers: tuple[str, ...] = ()
    heartbeat_namespace: str = ""
    heartbeat_renew_interval_seconds: int = RENEW_SECONDS
    feature_gates: Mapping[str, bool] = field(default_factory=dict)


class Part(NamedTuple):
    """What the leader runs under a name.

    Attributes:
        unit: None for what has no caches of its own.
    """

    name: str
    work: Work
    unit: Unit | None = None


def run(config: ClusterConfig, actuators: Sequence[Actuator], options: Options) -> None:
    """Runs the process until it is asked to end.

    Raises:
        StartError: it cannot start, or lost what it needs to go on.
    """
    log.info("starting", version=__version__, serves=_titles(actuators))
    run_process(lambda: until_signalled(serve(config, actuators, options)))


async def until_signalled(work: Coroutine[None, None, None]) -> None:
    """Works until the process is asked to end.

    Raises:
        StartError: it cannot go on.
    """
    try:
        await work_until_signalled(work)
    except (KubeError, LostLeadership, ListenError, ServingError) as error:
        raise StartError(str(error)) from None


async def serve(config: ClusterConfig, actuators: Sequence[Actuator], options: Options) -> None:
    """Serves the endpoints and, as the leader, runs the controllers; until cancelled.

    Raises:
        StartError: the options contradict each other, or the actuators do.
        LostLeadership, ListenError, KubeError: it cannot go on.
    """
    configure(actuators, options.feature_gates)
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client.connect(config, observe=metrics.client_request)
        )
        parts = chosen(assemble(client, actuators, options, metrics), options)
        webhooks = _webhooks(client, actuators, options, metrics)
        running: list[Unit] = []  # none on a replica that waits for its turn, which is ready too
        await endpoints(stack, options, running, webhooks, metrics)
        if webhooks is not None:
            await stack.enter_async_context(webhooks.served())

        async def lead() -> None:
            leading = webhooks.leading() if webhooks is not None else []
            running.extend(leading)
            running.extend(part.unit for part in parts if part.unit is not None)
            log.info("controllers start", controllers=[part.name for part in parts])
            async with asyncio.TaskGroup() as group:
                for unit in leading:
                    group.create_task(unit.run())
                for part in parts:
                    group.create_task(part.work(), name=part.name)

        async with asyncio.TaskGroup() as group:
            beside = [
                group.create_task(unit.run()) for unit in (webhooks.units if webhooks else ())
            ]
            await as_leader(client, actuators[0].name, options, lead)
            for task in beside:
                task.cancel()


async def as_leader(client: Client, name: str, options: Options, lead: Work) -> None:
    """Leads at once where there is but one replica, else when it is this one's turn.

    Args:
        name: what the Lease is named by unless the options say so.
    """
    if not options.leader_election_namespace:
        await lead()
        return
    await LeaderElection(
        client,
        options.leader_election_namespace,
        options.leader_election_id or f"{name}-leader-election",
        f"{socket.gethostname()}_{uuid.uuid4()}",
    ).run(lead)


def _webhooks(
    client: Client, actuators: Sequence[Actuator], options: Options, metrics: Metrics
) -> ExtensionWebhooks | None:
    """The webhooks of all actuators; None if there are none, or nowhere to keep certificates.

    Actuators that bring webhooks into Shoots are told how.
    """
    groups = side_by_side((actuator.type, actuator.webhooks()) for actuator in actuators)
    declared = [webhook for group in groups for webhook in group]
    if not declared:
        return None
    if options.webhooks is None:
        names = [webhook.registration.name for webhook in declared]
        log.info(
            "webhooks are not served; name a namespace for their certificates with "
            "--webhook-config-namespace",
            webhooks=names,
        )
        return None
    webhooks = ExtensionWebhooks(client, actuators[0].name, declared, options.webhooks, metrics)
    _bring_into_shoots(webhooks, actuators, groups)
    return webhooks


def _bring_into_shoots(
    webhooks: ExtensionWebhooks, actuators: Sequence[Actuator], groups: Sequence[Sequence[Webhook]]
) -> None:
    """All webhooks of a type come by one ManagedResource, whichever actuators of it have some."""
    owned: dict[str, list[Webhook]] = {}
    for actuator, group in zip(actuators, groups, strict=True):
        owned.setdefault(actuator.type, []).extend(w for w in group if w.of_shoots)
    names = {actuator.type: actuator.name for actuator in reversed(actuators)}
    renders = {
        kind: webhooks.in_shoots(names[kind], f"extension-{kind}-shoot-webhooks", found)
        for kind, found in owned.items()
        if found
    }
    for actuator, group in zip(actuators, groups, strict=True):
        if any(webhook.of_shoots for webhook in group):
            actuator.shoot_webhooks = renders[actuator.type]


def assemble(
    client: Client, actuators: Sequence[Actuator], options: Options, metrics: Metrics
) -> list[Part]:
    """All that there is to run for some actuators.

    Raises:
        StartError: two actuators are for the same resources, or there is none.
    """
    _check_unique(actuators)
    parts: list[Part] = []
    for actuator, name in zip(actuators, controller_names(actuators), strict=True):
        actuator.measure(metrics)
        unit = extension_controller(client, actuator, options.lifecycle, name=name, metrics=metrics)
        parts.append(Part(name, unit.run, unit))
        if checks := actuator.health_checks():
            settings = replace(options.health_checks, classes=options.lifecycle.classes)
            unit = health_controller(
                client, actuator.gvk(), actuator.type, checks, settings, metrics=metrics
            )
            parts.append(Part(f"{name}-healthcheck", unit.run, unit))
    names = dict.fromkeys(actuator.name for actuator in actuators)
    for name in names if options.heartbeat_namespace else ():
        heartbeat = Heartbeat(
            client,
            name,
            options.heartbeat_namespace,
            is_first=name == actuators[0].name,
            seconds=options.heartbeat_renew_interval_seconds,
        )
        parts.append(Part(HEARTBEAT, heartbeat.run))
    return parts


def controller_names(actuators: Sequence[Actuator]) -> list[str]:
    """Named like the kind, such as `network`; `network-calico` if several are for the kind."""
    kinds = Counter(actuator.kind for actuator in actuators)
    return [
        f"{actuator.kind}-{actuator.type}".lower()
        if kinds[actuator.kind] > 1
        else actuator.kind.lower()
        for actuator in actuators
    ]


def configure(actuators: Sequence[Actuator], gates: Mapping[str, bool]) -> None:
    """Tells every actuator its feature gates.

    Raises:
        StartError: nobody has a gate.
    """
    known = {gate for actuator in actuators for gate in actuator.feature_gates}
    if unknown := sorted(set(gates) - known):
        there_are = f"there are {', '.join(sorted(known))}" if known else "there are none"
        raise StartError(f"--feature-gates names {', '.join(unknown)}; {there_are}")
    for actuator in actuators:
        wanted = {gate: gates.get(gate, value) for gate, value in actuator.feature_gates.items()}
        actuator.configure(wanted)
        if wanted:
            log.info("feature gates", actuator=actuator.name, **wanted)


def chosen(parts: Iterable[Part], options: Options) -> list[Part]:
    """The parts that are switched on.

    Raises:
        StartError: a name is none of them.
    """
    parts = list(parts)
    known = {part.name for part in parts} | {HEARTBEAT}
    for flag, names in (
        ("--controllers", options.controllers),
        ("--disable-controllers", options.disable_controllers),
    ):
        if unknown := sorted(set(names) - known):
            raise StartError(
                f"{flag} names {', '.join(unknown)}; there are {', '.join(sorted(known))}"
            )
    wanted = set(options.controllers or known) - set(options.disable_controllers)
    return [part for part in parts if part.name in wanted]


def address_of(text: str, option: str) -> tuple[str, int] | None:
    """Host and port of `host:port`, `:port` or `[::1]:port`; None for `0`.

    Raises:
        StartError: it is none of these.
    """
    if text == NOT_SERVED:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > 65535:
        raise StartError(f'{option} is "{text}"; write host:port, :port, or 0 for no endpoint')
    return host.removeprefix("[").removesuffix("]"), int(port)


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


async def endpoints(
    stack: AsyncExitStack,
    options: Options,
    units: Sequence[Unit],
    webhooks: ExtensionWebhooks | None,
    metrics: Metrics,
) -> None:
    """Serves probes and metrics until the stack is closed.

    Args:
        units: whose watches have to be live; more may be put in later.

    Raises:
        StartError: an address is none.
        ListenError: a port cannot be had.
    """
    ports: dict[str, int] = {}
    readyz: dict[str, Check] = {"informer-sync": _synced(units)}
    if webhooks is not None:
        readyz["webhook-server"] = webhooks.is_ready
    if address := address_of(options.health_bind_address, "--health-bind-address"):
        ports["health_port"] = await stack.enter_async_context(
            serve_probes(*address, healthz={}, readyz=readyz)
        )
    if address := address_of(options.metrics_bind_address, "--metrics-bind-address"):
        ports["metrics_port"] = await stack.enter_async_context(serve_metrics(*address, metrics))
    log.info("endpoints are served", **ports)


def _synced(units: Sequence[Unit]) -> Callable[[], str | None]:
    def check() -> str | None:
        return "; ".join(str(lost) for unit in units for lost in unit.unsynced) or None

    return check
