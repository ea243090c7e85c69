"""Every object of a Garden in its runtime cluster, and in its ManagedResources."""

import re
from collections.abc import Iterable, Iterator
from typing import Final

from hypothesis.strategies import SearchStrategy

from conformance.comparison import GARDEN_OBJECTS, Difference
from conformance.oracles import GARDENER, Answer, OracleModule
from conformance.strategies.whole_gardens import GARDENS, some_garden
from pergola.api.objects import JsonObject, JsonValue
from pergola.api.operator_config import OperatorConfiguration
from pergola.api.operator_v1alpha1 import default_garden
from pergola.api.schema import Malformed
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Target
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.manifests import manifest
from pergola.operator.compare import (
    ABSENT,
    PRESENT,
    Comparison,
    Placed,
    Recorded,
    compare,
    landscape_of,
    rendered,
    shown,
)
from pergola.operator.run.observed import Template
from pergola.operator.template import images, template
from pergola.resource_manager.registration import garden_webhooks

RUNTIME_VERSION: Final = "1.34.0"
"""The version of the runtime cluster, which the oracle also uses."""


_API_SERVER: Final = manifest(
    "v1", "Service", "gardener-apiserver", namespace="garden", spec={"clusterIP": "192.0.2.1"}
)
"""A Service that a resource manager has applied in the oracle."""


_KEPT_METRICS: Final = re.compile(r"\.metricRelabelings\[\d+\]\.regex$")


class GardenObjects:
    """Every object that the operator renders for a Garden."""

    name = GARDEN_OBJECTS
    ask = "garden-made"
    title = "Objects of a whole Garden"
    of: OracleModule = GARDENER
    code = ("pergola.garden.components", "pergola.garden.landscape")

    def table(self) -> Iterator[JsonObject]:
        """Yield Gardens with every option set and unset."""
        yield from GARDENS

    def questions(self) -> SearchStrategy[JsonObject]:
        """Return Gardens with random options."""
        return some_garden()

    def meaning(self, answer: Answer) -> JsonValue:
        """Return the identities of all objects."""
        made = answer.value if isinstance(answer.value, list) else []
        names = {str(_placed(each).identity) for each in made if isinstance(each, dict)}
        return [*sorted(names)]

    def compare(self, question: JsonObject, answer: Answer) -> Iterable[Difference]:
        """Render the same Garden, and compare every field of every object."""
        made = answer.value if isinstance(answer.value, list) else []
        try:
            found = comparison(question, made)
        except (Malformed, OperatorError) as error:
            if answer.outcome == "output":
                yield Difference("garden", "objects", str(error))
            return
        if answer.outcome == "output":
            yield from _differences(found)
        else:
            yield Difference("garden", str(answer.value), "objects")


def comparison(question: JsonObject, made: list[JsonValue]) -> Comparison:
    """Compare what the original made of a Garden with what Pergola renders."""
    recorded = Recorded()
    for each in made:
        if isinstance(each, dict):
            placed = _placed(each)
            recorded.take(placed)
            if not placed.managed:
                recorded.all.append(placed.obj)
    [garden] = recorded.gardens or [default_garden(question["garden"])]
    landscape = landscape_for(question, garden, recorded)
    here = rendered(landscape, CATALOG, recorded.all)
    return compare(recorded.made_for(garden), here)


def landscape_for(question: JsonObject, garden: JsonObject, recorded: Recorded) -> Landscape:
    """Return what a reconciliation of the Garden in a question begins with.

    Args:
        garden: With all defaults.
        recorded: The objects that already exist; takes those in the question, too.
    """
    garden = {**garden, "status": question["garden"]["status"]}
    recorded.all += [*question["beside"], _API_SERVER]
    return landscape_of(garden, recorded, _template(question["featureGates"]), CATALOG)


def _template(gates: dict[str, bool]) -> Template:
    config = OperatorConfiguration(feature_gates=gates)
    return template(config, images({}), RUNTIME_VERSION, garden_webhooks)


def _placed(made: JsonObject) -> Placed:
    target = Target.VIRTUAL if made.get("virtual") else Target.RUNTIME
    return Placed(target, str(made.get("managedResource", "")), "", made["object"])


def _differences(found: Comparison) -> Iterator[Difference]:
    for placed in found.only_there:
        yield Difference(str(placed.identity), PRESENT, ABSENT)
    for placed in found.only_here:
        yield Difference(str(placed.identity), ABSENT, PRESENT)
    for each in found.differing:
        for field in each.fields:
            path = f"{each.here.identity} {field.path}"
            yield Difference(path, shown(field.one), shown(field.other))
            if _KEPT_METRICS.search(field.path):
                for metric in _dropped(str(field.one), str(field.other)):
                    yield Difference(f"{each.here.identity} metrics", metric, ABSENT)


def _dropped(theirs: str, ours: str) -> Iterator[str]:
    """Yield the metrics that a regular expression of the original keeps, and ours does not."""
    kept = re.compile(ours)
    for name in theirs.removeprefix("^(").removesuffix(")$").split("|"):
        if kept.fullmatch(re.sub(r"\.[+*]", "x", name)) is None:
            yield name
