"""An object fails since the first failure that was seen, however often it is retried."""

from dataclasses import replace

from pergola.api.objects import Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.dashboard.state.cards import Card, card_of
from pergola.dashboard.state.failures import Failures

FIRST, SECOND, THIRD = (f"2026-01-01T0{hour}:00:00Z" for hour in (1, 2, 3))


def card(state: str, time: str, uid: str = "a") -> Card:
    operation = {"type": "Reconcile", "state": state, "lastUpdateTime": time}
    metadata = {"name": "local", "uid": uid}
    return card_of(GARDEN, {"metadata": metadata, "status": {"lastOperation": operation}})


def test_retries_do_not_start_the_time_again() -> None:
    failures = Failures()
    states = (("Error", FIRST), ("Processing", SECOND), ("Error", SECOND), ("Failed", THIRD))
    found = [failures.earliest(card(*each)) for each in states]
    assert [each.verdict.since for each in found] == [FIRST, "", FIRST, FIRST]


def test_an_object_that_was_healthy_or_is_another_one_fails_anew() -> None:
    failures = Failures()
    failures.earliest(card("Error", FIRST))
    failures.earliest(card("Succeeded", SECOND))
    assert failures.earliest(card("Error", SECOND)).verdict.since == SECOND
    assert failures.earliest(card("Error", THIRD, uid="b")).verdict.since == THIRD
    failures.forget(card("Error", THIRD).id)
    later = replace(card("Error", "2026-01-01T04:00:00Z", uid="b"), key=Key("", "local"))
    assert failures.earliest(later).verdict.since == "2026-01-01T04:00:00Z"
