"""The controllers of reference protection, and their triggers (spec 21 §4.3)."""

from collections.abc import Iterable, Mapping
from functools import partial
from typing import Any, Final

from pergola.api.objects import Key
from pergola.controllers.references.fields import Identity
from pergola.controllers.references.metrics import ProtectedObjects
from pergola.controllers.references.named import NamedObjects
from pergola.controllers.references.reconcile import Protection
from pergola.controllers.references.referrers import (
    AllReferrers,
    Referrer,
    Referrers,
    Seen,
    indexed,
)
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.packed import Packed
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.controller import Workers
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.controlling.watches import Watch, changed
from pergola.runtime.metrics import Metrics

NAME: Final = "reference-protection"

_WORKERS: Final = 5
_DEADLINE: Final = 180.0


def reference_protection(
    client: Client,
    table: Mapping[Referrer, Cache[Packed]],
    named: Mapping[str, Cache[Packed]],
    *,
    metrics: Metrics,
    clock: Clock | None = None,
) -> Unit:
    """Return the controllers that protect referenced objects.

    There is one for each kind of referrer, and one for the referenced objects of all of them.

    Args:
        client: For the cluster that has all of them.
        table: The kinds of referrers, with their caches, which another unit runs.
        named: The caches of the objects that can be referenced, by kind, `Secret` and `ConfigMap`.
            Only objects in them are protected.
    """
    referrers, objects = indexed(table), NamedObjects(named)
    metrics.register(ProtectedObjects).follow(objects)
    events = Recorder(client, f"{NAME}-controller", clock=clock)
    protection = Protection(client, referrers, objects, events)
    controllers: list[Workers[Any]] = [
        _named_controller(protection, referrers, objects, metrics),
        *(_referrer_controller(protection, each, objects, metrics) for each in referrers),
    ]
    return Unit(NAME, controllers=controllers, tasks=[events.run])


def _named_controller(
    protection: Protection, referrers: AllReferrers, objects: NamedObjects, metrics: Metrics
) -> Workers[Identity]:
    controller: Workers[Identity] = Workers(
        NAME, protection.reconcile_named, workers=_WORKERS, metrics=metrics, deadline=_DEADLINE
    )
    for each in referrers:
        Watch(each.objects, to=_names, when=changed).trigger(controller.queue)
    for kind, view in objects.kinds.items():
        Watch(view, to=partial(_itself, kind), when=changed).trigger(controller.queue)
    return controller


def _referrer_controller(
    protection: Protection, referrers: Referrers, objects: NamedObjects, metrics: Metrics
) -> Workers[Key]:
    referrer = referrers.referrer
    controller: Workers[Key] = Workers(
        referrer.controller,
        partial(protection.reconcile_referrer, referrer),
        workers=referrer.workers,
        metrics=metrics,
        deadline=_DEADLINE,
    )
    of_itself: Watch[Change[Seen], Key] = Watch(referrers.objects, when=changed)
    of_itself.trigger(controller.queue)
    for kind, view in objects.kinds.items():
        concerned = partial(_concerned, referrers, kind)
        Watch(view, to=concerned, when=changed).trigger(controller.queue)
    return controller


def _names(change: Change[Seen]) -> Iterable[Identity]:
    """Return the references of a referrer, before or after the change."""
    return {name.identity for it in (change.old, change.new) if it for name in it.names}


def _itself(kind: str, change: Change[bool]) -> Iterable[Identity]:
    return ((kind, change.key),)


def _concerned(referrers: Referrers, kind: str, change: Change[bool]) -> Iterable[Key]:
    return referrers.concerned((kind, change.key))
