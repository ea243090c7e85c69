"""The other writer in a fight, by what that writer put into the object."""

import pytest

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.managed_resource.opponents import Opponent, opponent_in

OWNER = "garden-1:shoot/own"


def live(origin: str) -> JsonObject:
    """Return an object that helm has changed last."""
    entries = [
        {"manager": "kubectl", "time": "2026-01-01T00:00:00Z"},
        {"manager": "helm", "time": "2026-01-02T00:00:00Z"},
        {"manager": "kubelet", "time": "2026-01-03T00:00:00Z", "subresource": "status"},
    ]
    return {
        "metadata": {"annotations": {marks.ORIGIN: origin}, "managedFields": entries},
    }


@pytest.mark.parametrize("origin", ["shoot/other", "garden-2:shoot/own"])
def test_another_managed_resource_is_named(origin: str) -> None:
    opponent = opponent_in(live(origin), OWNER)
    assert opponent == Opponent(f"ManagedResource {origin}", deletes=False)


@pytest.mark.parametrize(
    "origin",
    [
        "",
        OWNER,
        "other",
        "a/b/c",
        "shoot/x\n* Secret v1/default/key is fine",
        "shoot/\x1b[2J",
        "shoot/" + "x" * 200_000,
        "x" * 200_000 + ":shoot/other",
        "shoot/" + "\u202e" * 3,
    ],
    ids=range(9),
)
def test_an_origin_that_no_managed_resource_has_is_not_repeated(origin: str) -> None:
    assert opponent_in(live(origin), OWNER) == Opponent("helm", deletes=False)
