"""Preventing autoscalers from evicting pods for downscaling when that is unwanted (spec 21 §5.5).

An annotation of a VerticalPodAutoscaler says when evictions are allowed: never, or only in its
maintenance window.
"""

from datetime import datetime, timedelta
from typing import Any, Final, NamedTuple

from pergola.api.kinds import VERTICAL_POD_AUTOSCALER
from pergola.api.objects import JsonObject, Key, annotations_of, map_at
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.operator.maintenance_window import Window
from pergola.runtime.caching.cache import Cache
from pergola.runtime.clock import Clock, SystemClock
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch, changed
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("vpa-eviction-requirements")

NAME: Final = "vpa-eviction-requirements"
LABEL: Final = "autoscaling.gardener.cloud/eviction-requirements=managed-by-controller"
RESTRICTION: Final = "eviction-requirements.autoscaling.gardener.cloud/downscale-restriction"
WINDOW: Final = "shoot.gardener.cloud/maintenance-window"
NEVER: Final = "never"
IN_WINDOW: Final = "in-maintenance-window-only"
ONLY_UPSCALING: Final[list[JsonObject]] = [
    {"resources": ["cpu", "memory"], "changeRequirement": "TargetHigherThanRequests"}
]
"""The requirement that forbids evictions for downscaling."""

_AHEAD: Final = timedelta(minutes=5)


class Decision(NamedTuple):
    """The current requirements of an autoscaler.

    Attributes:
        requirements: Empty if it may evict pods for downscaling.
        again: Seconds until they change; None if they never do.
    """

    requirements: list[JsonObject]
    again: float | None = None


class Seen(NamedTuple):
    """The facts about an autoscaler that decide about its requirements."""

    restriction: str
    window: str
    requirements: list[Any]


def seen(autoscaler: JsonObject) -> Seen:
    """Return the facts about an autoscaler that the cache keeps."""
    annotations = annotations_of(autoscaler)
    requirements = map_at(autoscaler, "spec", "updatePolicy").get("evictionRequirements")
    return Seen(
        annotations.get(RESTRICTION, ""), annotations.get(WINDOW, ""), list(requirements or [])
    )


def decide(autoscaler: Seen, now: datetime) -> Decision:
    """Return the requirements of an autoscaler.

    Raises:
        ValueError: An annotation is missing or malformed; the text says which one.
    """
    if autoscaler.restriction == NEVER:
        return Decision(ONLY_UPSCALING)
    if autoscaler.restriction != IN_WINDOW:
        raise ValueError(
            f'annotation {RESTRICTION} is "{autoscaler.restriction}"; write {NEVER} or {IN_WINDOW}'
        )
    window, soon = _window(autoscaler.window), now + _AHEAD
    left = window.left(soon)
    if left is not None:
        return Decision([], left.total_seconds())
    return Decision(ONLY_UPSCALING, window.opens(soon).total_seconds())


def eviction_requirements(
    client: Client, *, workers: int, metrics: Metrics, clock: Clock | None = None
) -> Unit:
    """Return the controller `vpa-eviction-requirements`.

    Args:
        client: Of the runtime cluster.
    """
    clock = clock or SystemClock()
    autoscalers = Cache(client, VERTICAL_POD_AUTOSCALER, seen, labels=LABEL)

    async def reconcile(key: Key) -> Outcome:
        autoscaler = autoscalers.get(key)
        if autoscaler is None:
            return DONE
        try:
            decision = decide(autoscaler, clock.now())
        except ValueError as error:
            log.warning("eviction requirements not set", object=str(key), error=str(error))
            return DONE
        if autoscaler.requirements != decision.requirements:
            await _patch(client, key, decision.requirements)
        return DONE if decision.again is None else Again(decision.again)

    return Controller(
        NAME,
        reconcile,
        watches=[Watch(autoscalers, when=changed)],
        workers=workers,
        metrics=metrics,
    )


async def _patch(client: Client, key: Key, requirements: list[JsonObject]) -> None:
    patch = {"spec": {"updatePolicy": {"evictionRequirements": requirements or None}}}
    try:
        await client.patch(VERTICAL_POD_AUTOSCALER, key, patch)
    except NotFound:
        log.debug("autoscaler is gone", object=str(key))


def _window(text: str) -> Window:
    """Return a window such as `220000+0100,230000+0100`."""
    begin, _, end = text.partition(",")
    try:
        return Window.between(begin, end)
    except ValueError:
        raise ValueError(f'annotation {WINDOW} is "{text}"; write it as BEGIN,END') from None
