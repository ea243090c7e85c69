"""Events that reconcile a Gardenlet: changes of itself, its Seed or a Secret."""

from collections.abc import Iterator
from typing import Any, NamedTuple

from pergola.api import marks
from pergola.api.kinds import SECRET, SEED
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    generation_of,
    labels_of,
    resource_version_of,
)
from pergola.garden.landscape import NAMESPACE
from pergola.health.conditions import Reported, reported
from pergola.kube.client import Client
from pergola.operator.chart_source import CA_BUNDLE, PULL_SECRET, secret_named
from pergola.operator.gardenlet.decide import operation_of
from pergola.operator.gardenlet.names import GARDENLET, TARGET, chart_of, kubeconfig_secret
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.watches import Watch, all_of, changed, later


class Facts(NamedTuple):
    """The facts about a Gardenlet that trigger its controllers.

    Attributes:
        is_updated: Whether the operator keeps its chart up to date.
        named: The Secrets that it names, which are in its namespace.
        target: The identity of the cluster that it was deployed into; a user may remove it.
    """

    generation: int
    operation: str
    is_deleted: bool
    is_updated: bool
    named: frozenset[str]
    target: str

    @classmethod
    def of(cls, gardenlet: JsonObject) -> "Facts":
        """Return these facts about a Gardenlet."""
        chart = chart_of(gardenlet)
        named = {secret_named(chart, field) for field in (PULL_SECRET, CA_BUNDLE)}
        return cls(
            generation=generation_of(gardenlet),
            operation=operation_of(gardenlet),
            is_deleted=deletion_timestamp_of(gardenlet) is not None,
            is_updated=labels_of(gardenlet).get(marks.AUTO_UPDATE_GARDENLET) == "true",
            named=frozenset({kubeconfig_secret(gardenlet), *named} - {""}),
            target=annotations_of(gardenlet).get(TARGET, ""),
        )


class Seen(NamedTuple):
    """The state of a Gardenlet, as the operator caches it.

    Attributes:
        conditions: Those in the status, for metrics.
    """

    facts: Facts
    conditions: Reported


Gardenlets = Cache[Seen]


def gardenlets_of(virtual: Client) -> Gardenlets:
    """Return a cache of the Gardenlets, which are allowed in one namespace only."""
    return Cache(
        virtual, GARDENLET, lambda obj: Seen(Facts.of(obj), reported(obj)), namespace=NAMESPACE
    )


def facts_changed(change: Change[Seen]) -> bool:
    """Accept events that change the facts about a Gardenlet that exists."""
    old, new = change.old, change.new
    if old is None or new is None:
        return new is not None
    # The operator itself records the first target.
    facts = new.facts if old.facts.target else new.facts._replace(target="")
    return old.facts != facts


def of_deployment(virtual: Client, gardenlets: Gardenlets) -> Iterator[Watch[Any, Key]]:
    """Yield the watches that may change the next step for a Gardenlet."""
    yield Watch(gardenlets, when=facts_changed)
    yield Watch(
        Cache(virtual, SEED, resource_version_of, metadata_only=True),
        to=lambda change: (Key(NAMESPACE, change.key.name),),
        when=all_of(later, _comes_or_goes),
    )

    def naming(change: Change[str]) -> list[Key]:
        return [key for key, seen in gardenlets.items() if change.key.name in seen.facts.named]

    yield Watch(
        Cache(virtual, SECRET, resource_version_of, namespace=NAMESPACE, metadata_only=True),
        to=naming,
        when=all_of(later, changed),
    )


def _comes_or_goes(change: Change[str]) -> bool:
    return change.old is None or change.new is None
