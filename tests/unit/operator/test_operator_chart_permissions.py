"""The roles of the operator's chart permit its requests for the objects of all components."""

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key, maps_at
from pergola.garden.components.catalog import CATALOG
from tests.support.garden import COMPLETE, HIGHLY_AVAILABLE, landscape
from tests.support.operator_chart import ACCOUNT, OperatorChart

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

CHART: Final = Path(__file__).parents[3] / "charts" / "operator"
REMOVES: Final = ("get", "list", "watch", "delete")
APPLIES: Final = ("get", "list", "watch", "create", "patch")


class Permissions(NamedTuple):
    """The rules that hold everywhere, and those that hold in the namespace of the garden."""

    everywhere: list[JsonObject]
    garden: list[JsonObject]

    def lacks(self, verbs: Iterable[str], identity: Identity) -> Iterator[str]:
        """Yield the permissions that the operator lacks for an object."""
        rules = list(self.everywhere)
        if identity.key.namespace == ACCOUNT.namespace:
            rules += self.garden
        for verb in verbs:
            if not any(permits(rule, verb, identity) for rule in rules):
                yield f"{verb} {plural(identity.gvk)} {identity.key}"


def permits(rule: JsonObject, verb: str, identity: Identity) -> bool:
    names = rule.get("resourceNames", [])
    return (
        identity.gvk.group in rule["apiGroups"]
        and plural(identity.gvk) in rule["resources"]
        and verb in rule["verbs"]
        and (not names or identity.key.name in names)  # an apply has the name even for a creation
    )


def plural(gvk: GroupVersionKind) -> str:
    name = gvk.kind.lower()
    if name.endswith("cy"):
        return f"{name[:-1]}ies"
    return f"{name}es" if name.endswith("s") else f"{name}s"


@pytest.fixture(scope="module")
def permissions() -> Permissions:
    chart = OperatorChart.rendered(CHART)
    return Permissions(
        maps_at(chart.one("ClusterRole"), "rules"), maps_at(chart.one("Role"), "rules")
    )


def applied() -> Iterator[Identity]:
    for component in CATALOG:
        for patches in ((), (HIGHLY_AVAILABLE,)):
            for obj in component.objects(landscape(COMPLETE, *patches)).direct:
                yield Identity(GroupVersionKind.of(obj), Key.of(obj))


def test_the_operator_may_apply_and_await_every_object_that_it_renders(
    permissions: Permissions,
) -> None:
    lacking = {text for each in applied() for text in permissions.lacks(APPLIES, each)}
    assert sorted(lacking) == []


def test_the_operator_may_remove_every_object_of_an_absent_component(
    permissions: Permissions,
) -> None:
    removed = [each for component in CATALOG for each in component.leftovers.direct]
    assert removed
    lacking = {text for each in removed for text in permissions.lacks(REMOVES, each)}
    assert sorted(lacking) == []
