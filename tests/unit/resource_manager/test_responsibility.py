"""The responsible instance: the table of spec 10 §3.2."""

import pytest

from pergola.api.marks import FINALIZER
from pergola.resource_manager.responsibility import Responsibility

OWN, OTHER = FINALIZER, f"{FINALIZER}-seed"


@pytest.mark.parametrize(
    ("finalizers", "resource_class", "responsible", "clean_up", "wait"),
    [
        ([], "seed", False, False, False),
        ([OTHER], "seed", False, False, False),
        ([OWN], "seed", False, True, False),
        ([], None, True, False, False),
        ([OTHER], None, True, False, True),
        ([OWN], None, True, False, False),
        (["example.org/other", OWN], "", True, False, False),
        (["example.org/other"], "resources", True, False, False),
    ],
)
def test_responsibility_follows_class_and_finalizers(
    finalizers: list[str],
    resource_class: str | None,
    responsible: bool,
    clean_up: bool,
    wait: bool,
) -> None:
    mine = Responsibility("resources")
    assert mine.is_responsible(resource_class) is responsible
    assert mine.must_clean_up(resource_class, finalizers) is clean_up
    assert mine.must_wait(resource_class, finalizers) is wait
    assert mine.concerns(resource_class, finalizers) is (responsible or clean_up)


@pytest.mark.parametrize(
    ("resource_class", "finalizer"),
    [("resources", FINALIZER), ("*", FINALIZER), ("seed", f"{FINALIZER}-seed")],
)
def test_each_class_has_its_finalizer(resource_class: str, finalizer: str) -> None:
    assert Responsibility(resource_class).finalizer == finalizer


def test_the_wildcard_is_responsible_for_every_class() -> None:
    star = Responsibility("*")
    assert star.is_responsible("seed")
    assert star.is_responsible(None)


def test_the_seed_class_is_not_responsible_for_the_default_class() -> None:
    assert not Responsibility("seed").is_responsible(None)
    assert not Responsibility("seed").is_responsible("")
