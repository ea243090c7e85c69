"""The card of an object: its owner, and the time when its state has lasted too long."""

from datetime import MAXYEAR, UTC, datetime, timedelta, timezone

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.cards import card_of, owner_of
from pergola.dashboard.state.verdicts import BAD

ORIGIN = {"annotations": {"resources.gardener.cloud/origin": "id:garden/system"}}
LABEL = {"labels": {"origin": "gardener", "app.kubernetes.io/managed-by": "Helm"}}
CONTROLLER = {"ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "B", "name": "b"}]}
EXTREMES = (datetime.min.replace(tzinfo=UTC), datetime.max.replace(tzinfo=UTC))


@pytest.mark.parametrize(
    ("metadata", "owner"),
    [
        ({**LABEL, **CONTROLLER, **ORIGIN}, "ManagedResource garden/system"),
        ({"annotations": {"resources.gardener.cloud/origin": "a/b"}}, "ManagedResource a/b"),
        (
            {**LABEL, "ownerReferences": [{"kind": "B", "name": "b", "controller": True}]},
            "B b",
        ),
        ({**LABEL, **CONTROLLER}, "gardener"),
        ({"labels": {"app.kubernetes.io/managed-by": "Helm"}}, "Helm"),
        ({}, ""),
    ],
)
def test_the_owner_is_the_closest_one_that_is_named(metadata: JsonObject, owner: str) -> None:
    assert owner_of({"metadata": metadata}) == owner


def has_utc_year(time: datetime) -> bool:
    """Return whether a time can be written in UTC, whose years are 1 to 9999."""
    try:
        time.astimezone(UTC)
    except OverflowError:
        return False
    return True


@pytest.mark.parametrize("kind", ["ResourcesApplied", "ResourcesHealthy", "ResourcesProgressing"])
@pytest.mark.parametrize("status", ["True", "False", "Unknown"])
@given(
    time=st.datetimes() | st.sampled_from(EXTREMES),
    hours=st.sampled_from([-12, 0, 14]),
)
def test_a_card_can_be_shown_whenever_its_state_began(
    kind: str, status: str, time: datetime, hours: int
) -> None:
    began = time.replace(tzinfo=timezone(timedelta(hours=hours)))
    condition = {"type": kind, "status": status, "lastTransitionTime": began.isoformat()}
    obj = {"metadata": {"name": "a"}, "status": {"conditions": [condition]}}
    card = card_of(MANAGED_RESOURCE, obj)
    due = card.data()["due"]
    if card.verdict.state not in BAD or not has_utc_year(began):
        assert due == ""
    elif began.year < MAXYEAR:
        assert began <= datetime.fromisoformat(due) <= began + timedelta(days=1)
    else:
        assert due == "" or datetime.fromisoformat(due) >= began
