"""The admission component of extensions as a process in the garden cluster (spec 40 §7.3).

It needs no seed: it serves and registers the actuators' validation and defaulting of Shoots, and
reconciles nothing.
"""

from collections.abc import AsyncGenerator, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, replace

from pergola import __version__
from pergola.extensions.actuator import Actuator
from pergola.extensions.garden import Garden
from pergola.extensions.process import Options, configure
from pergola.extensions.webhooks.admission import component_of
from pergola.extensions.webhooks.declare import side_by_side
from pergola.extensions.webhooks.serving import ExtensionWebhooks
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics
from pergola.runtime.process import application
from pergola.runtime.process.application import Application
from pergola.runtime.process.options import StartError

log = get_logger("extension")


def run(config: ClusterConfig, actuators: Sequence[Actuator], options: Options) -> None:
    """Run the process until it receives SIGTERM or SIGINT.

    Args:
        config: of the garden.

    Raises:
        Exception: it cannot start, or cannot continue.
    """
    admits = [actuator.type for actuator in actuators]
    log.info("starting", version=__version__, admits=admits)
    application.run(lambda: serve(config, actuators, options), component_of(actuators[0]))


async def serve(config: ClusterConfig, actuators: Sequence[Actuator], options: Options) -> None:
    """Serve the webhooks and, as the leader, register them, until cancelled.

    Raises:
        StartError: there is nothing to serve, or the options contradict each other.
        WebhookError: the webhooks contradict each other.
    """
    configure(actuators, options.feature_gates)
    metrics = Metrics()
    async with Client.connect(config, observe=metrics.client_request) as client:
        garden = Garden(client)
        webhooks = admission(garden, actuators, options, metrics)
        known = garden.unit()
        # It reconciles nothing: the sharder must not give it anything.
        process = replace(options, controller_ring="").process(component_of(actuators[0]))
        await Application(client, process, metrics=metrics).serve(
            parts=[known], webhooks=_Informed(webhooks, known)
        )


@dataclass(frozen=True, slots=True)
class _Informed:
    """Webhooks that are served and registered once the caches that they read are filled."""

    webhooks: ExtensionWebhooks
    known: Unit

    @property
    def is_needed(self) -> bool:
        return self.webhooks.is_needed

    @property
    def units(self) -> Sequence[Unit]:
        return self.webhooks.units

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None]:
        await self.known.synced()
        async with self.webhooks.served():
            yield

    def leading(self) -> Sequence[Unit]:
        return self.webhooks.leading()

    async def is_ready(self) -> str | None:
        return await self.webhooks.is_ready()


def admission(
    garden: Garden, actuators: Sequence[Actuator], options: Options, metrics: Metrics
) -> ExtensionWebhooks:
    """Return the garden webhooks of all actuators, as one component named after the first.

    Raises:
        StartError: there are none, or no namespace for their certificates is set.
        WebhookError: they contradict each other.
    """
    if not actuators:
        raise StartError("there is no actuator with admission to run")
    groups = side_by_side(
        (actuator.type, actuator.admission_webhooks(garden)) for actuator in actuators
    )
    declared = [webhook for group in groups for webhook in group]
    if not declared:
        names = ", ".join(actuator.name for actuator in actuators)
        raise StartError(
            f"{names} has no webhooks for objects of the garden: an actuator declares them with "
            "its method admission_webhooks"
        )
    if options.webhooks is None:
        raise StartError(
            "set the garden's namespace for the webhooks' certificates: --webhook-config-namespace"
        )
    settings = replace(options.webhooks, disabled=options.disable_webhooks)
    return ExtensionWebhooks(garden.client, component_of(actuators[0]), declared, settings, metrics)
