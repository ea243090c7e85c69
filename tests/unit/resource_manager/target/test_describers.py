"""Which ManagedResources describe an object, and who learns that this changed."""

import pytest

from pergola.api.objects import Key
from pergola.resource_manager.target.describers import Describers

ONE, TWO, THREE = (Key("ns", name) for name in ("one", "two", "three"))


@pytest.fixture
def notified() -> list[Key]:
    return []


@pytest.fixture
def describers(notified: list[Key]) -> Describers:
    describers = Describers()
    describers.contended.subscribe(notified.append)
    return describers


def test_all_others_learn_that_an_object_is_shared_and_that_it_no_longer_is(
    describers: Describers, notified: list[Key]
) -> None:
    describers.set(ONE, ["x", "mine"])
    describers.set(TWO, ["x"])
    assert notified == [ONE]
    describers.set(THREE, ["x", "y"])
    assert set(describers.of("x")) == {ONE, TWO, THREE}
    assert set(notified[1:]) == {ONE, TWO}
    notified.clear()
    describers.set(TWO, [])
    assert set(notified) == {ONE, THREE}
    assert set(describers.of("x")) == {ONE, THREE}


def test_a_run_that_changes_nothing_notifies_no_other(
    describers: Describers, notified: list[Key]
) -> None:
    describers.set(ONE, ["x"])
    describers.set(TWO, ["x"])
    notified.clear()
    describers.set(TWO, ["x"])
    describers.set(ONE, ["x", "alone"])
    assert notified == []


def test_nothing_is_left_of_managed_resources_that_are_gone(describers: Describers) -> None:
    for resource in (ONE, TWO):
        describers.set(resource, ["x"])
    for resource in (ONE, TWO):
        describers.drop(resource)
    assert describers.of("x") == ()
    assert vars(describers)["_by_object"] == vars(describers)["_objects"] == {}


def test_one_that_describes_nothing_is_known_until_it_is_gone(describers: Describers) -> None:
    assert not describers.knows(ONE)
    describers.set(ONE, [])
    assert describers.knows(ONE)
    assert describers.described(ONE) == frozenset()
    describers.drop(ONE)
    assert not describers.knows(ONE)
