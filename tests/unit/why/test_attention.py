"""Objects that need attention, in the order in which the dashboard lists them."""

from datetime import UTC, datetime, timedelta

import pytest

from pergola.api.objects import JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.cards import Card, card_of
from pergola.why.attention import needing_attention
from tests.support.dashboard_objects import PROGRESSING, bad, condition, good, managed_resource


def card(name: str, conditions: list[JsonObject]) -> Card:
    obj = managed_resource(Key("demo", name))
    obj["metadata"]["creationTimestamp"] = "2026-01-01T00:00:00Z"
    return card_of(MANAGED_RESOURCE, {**obj, "status": {"conditions": conditions}})


def test_those_that_have_needed_attention_longest_come_first() -> None:
    found = [
        card("new", bad("x", minutes=1)),
        card("healthy", good()),
        card("old", bad("x", minutes=9)),
    ]
    names = [each.key.name for each in needing_attention(found, datetime.now(UTC))]
    assert names == ["old", "new"]


@pytest.mark.parametrize(("minutes", "needs"), [(4, False), (6, True)])
def test_a_rollout_may_take_five_minutes(minutes: float, needs: bool) -> None:
    rollout = card("web", [*good()[:2], condition(PROGRESSING, "True", minutes=minutes)])
    assert bool(needing_attention([rollout], datetime.now(UTC))) is needs


def test_a_state_without_a_readable_time_is_not_listed() -> None:
    conditions = bad("x")
    conditions[1] |= {"lastTransitionTime": "soon", "lastUpdateTime": None}
    strange = managed_resource(Key("demo", "web"))
    found = card_of(MANAGED_RESOURCE, {**strange, "status": {"conditions": conditions}})
    assert needing_attention([found], datetime.now(UTC) + timedelta(days=9)) == []
