"""New charts for Gardenlets, once a new version of the operator has reconciled the Garden.

Only labelled Gardenlets are changed; their gardenlets then update themselves (spec 21 §14).
"""

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

from pergola.api import marks
from pergola.api.objects import JsonObject, Key, labels_of, map_at, resource_version_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.operator.copies import Copies
from pergola.operator.extension.garden_facts import GardenFacts
from pergola.operator.gardenlet.names import GARDENLET, chart_of
from pergola.operator.gardenlet.triggers import Gardenlets, facts_changed
from pergola.operator.gardenlet.values import Inherited
from pergola.operator.oldest import oldest
from pergola.runtime.caching.view import View
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.watches import Watch, all_of, changed, exists


class ChartUpdates(NamedTuple):
    """Updates the chart references of Gardenlets.

    Attributes:
        own: The version of the operator, and its chart.
    """

    runtime: Client
    virtual: Client
    own: Inherited

    async def reconcile(self, key: Key) -> Outcome:
        """Update one Gardenlet, if its Garden has the operator's version.

        Raises:
            Conflict: The Gardenlet changed since it was read.
            KubeError: A cluster refused, or did not answer.
        """
        gardenlet = await self.virtual.find(GARDENLET, key)
        if gardenlet is None or not is_due(gardenlet, self.own.chart):
            return DONE
        garden = oldest(await self.runtime.list(GARDEN))
        if garden is None or not has_version(garden, self.own.version):
            return DONE
        # Null removes other fields of the reference, such as a tag or a digest.
        source = {**dict.fromkeys(chart_of(gardenlet)), "ref": self.own.chart}
        patch = {
            "metadata": {"resourceVersion": resource_version_of(gardenlet)},
            "spec": {"deployment": {"helm": {"ociRepository": source}}},
        }
        await self.virtual.patch(GARDENLET, key, patch)
        return DONE


def is_due(gardenlet: JsonObject, reference: str) -> bool:
    """Return whether a Gardenlet should use another chart."""
    is_updated = labels_of(gardenlet).get(marks.AUTO_UPDATE_GARDENLET) == "true"
    return is_updated and chart_of(gardenlet).get("ref") != reference


def has_version(garden: JsonObject, version: str) -> bool:
    """Return whether a Garden has been reconciled by an operator of a given Gardener version."""
    operator = map_at(garden, "status", "gardener")
    return GardenFacts.of(garden).is_reconciled and operator.get("version") == version


def of_updates(copies: Copies, gardenlets: Gardenlets, version: str) -> Iterator[Watch[Any, Key]]:
    """Yield the watches that may cause a chart update of a Gardenlet."""
    yield Watch(gardenlets, when=facts_changed)
    yield Watch(
        View(copies.of(GARDEN), partial(has_version, version=version)),
        to=lambda _: [key for key, seen in gardenlets.items() if seen.facts.is_updated],
        when=all_of(exists, changed),
    )
