"""Who manages an object, as its card says."""

import pytest

from pergola.api.objects import JsonObject
from pergola.dashboard.state.cards import owner_of

ORIGIN = {"annotations": {"resources.gardener.cloud/origin": "id:garden/system"}}
LABEL = {"labels": {"origin": "gardener", "app.kubernetes.io/managed-by": "Helm"}}
CONTROLLER = {"ownerReferences": [{"kind": "A", "name": "a"}, {"kind": "B", "name": "b"}]}


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
