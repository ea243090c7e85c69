"""The admission component of extensions as a process: it talks to the garden (spec 40 §7.3).

It needs no seed: what actuators say to Shoots is served and registered, and nothing reconciled.
"""

import asyncio
from collections.abc import Sequence
from contextlib import AsyncExitStack

from pergola import __version__
from pergola.extensions.actuator import Actuator
from pergola.extensions.process import (
    Options,
    StartError,
    as_leader,
    configure,
    endpoints,
    until_signalled,
)
from pergola.extensions.webhooks.admission import component_of
from pergola.extensions.webhooks.declare import side_by_side
from pergola.extensions.webhooks.garden import Garden
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.event_loop import run as run_process

log = get_logger("extension")


def run(config: ClusterConfig, actuators: Sequence[Actuator], options: Options) -> None:
    """Runs the process until it is asked to end.

    Args:
        config: of the garden.

    Raises:
        StartError: it cannot start, or lost what it needs to go on.
    """
    admits = [actuator.type for actuator in actuators]
    log.info("starting", version=__version__, admits=admits)
    run_process(lambda: until_signalled(serve(config, actuators, options)))


async def serve(config: ClusterConfig, actuators: Sequence[Actuator], options: Options) -> None:
    """Serves the webhooks and, as the leader, registers them; until cancelled.

    Nothing is registered before everything is known that the webhooks look up.

    Raises:
        StartError: there is nothing to serve, or the options contradict each other.
        WebhookError: the webhooks contradict each other.
        LostLeadership, ListenError, KubeError: it cannot go on.
    """
    configure(actuators, options.feature_gates)
    metrics = Metrics()
    async with AsyncExitStack() as stack:
        client = await stack.enter_async_context(
            Client.connect(config, observe=metrics.client_request)
        )
        garden = Garden(client)
        webhooks = admission(garden, actuators, options, metrics)
        known = garden.unit()
        running = [known]
        await endpoints(stack, options, running, webhooks, metrics)
        async with asyncio.TaskGroup() as group:
            beside = [group.create_task(known.run())]
            await known.synced()
            await stack.enter_async_context(webhooks.served())
            running.extend(webhooks.units)
            beside.extend(group.create_task(unit.run()) for unit in webhooks.units)

            async def lead() -> None:
                await _lead(webhooks.leading(), running)

            await as_leader(client, component_of(actuators[0]), options, lead)
            for task in beside:
                task.cancel()


def admission(
    garden: Garden, actuators: Sequence[Actuator], options: Options, metrics: Metrics
) -> ExtensionWebhooks:
    """The webhooks of all actuators at the garden, as one component, named by the first of them.

    Raises:
        StartError: there is none, or no namespace for their certificates.
        WebhookError: they contradict each other.
    """
    if not actuators:
        raise StartError("there is no actuator whose admission could run")
    groups = side_by_side(
        (actuator.type, actuator.admission_webhooks(garden)) for actuator in actuators
    )
    declared = [webhook for group in groups for webhook in group]
    if not declared:
        names = ", ".join(actuator.name for actuator in actuators)
        raise StartError(
            f"{names} has nothing to say to objects of the garden: an actuator declares that by "
            "its method admission_webhooks"
        )
    if options.webhooks is None:
        raise StartError(
            "name the namespace of the garden for the webhooks' certificates: "
            "--webhook-config-namespace"
        )
    return ExtensionWebhooks(
        garden.client, component_of(actuators[0]), declared, options.webhooks, metrics
    )


async def _lead(units: Sequence[Unit], running: list[Unit]) -> None:
    running.extend(units)
    log.info("webhooks are served")
    async with asyncio.TaskGroup() as group:
        for unit in units:
            group.create_task(unit.run())
