"""A user's value is never overwritten: spec 50 §5, step 5."""

from collections.abc import Iterator

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, JsonValue
from pergola.externally_managed.ownership import (
    MANAGER,
    Fields,
    Owned,
    Path,
    decide_fields,
    owned_fields,
)
from pergola.kube.patches import apply_merge_patch

WANTED: JsonObject = {
    "controlPlaneEndpoint": {"host": "api.example", "port": 443},
    "network": {"vpc": {"id": "vpc-1"}, "subnets": [{"id": "subnet-1"}]},
}
NOBODY: Owned = Owned({}, {})


def leaves(value: JsonObject, path: Path = ()) -> Iterator[tuple[Path, JsonValue]]:
    """Return all values that are not maps, with their paths; an empty map counts as a value."""
    for name, item in value.items():
        if isinstance(item, dict) and item:
            yield from leaves(item, (*path, name))
        else:
            yield (*path, name), item


def tree(value: JsonObject) -> Fields:
    """Return a value's fields in the form of managed fields."""
    return {name: tree(item) if isinstance(item, dict) else {} for name, item in value.items()}


OURS = Owned(tree(WANTED), {})


def test_empty_fields_are_set() -> None:
    live = {"controlPlaneEndpoint": {"host": "", "port": 0}, "region": "eu-1"}
    decision = decide_fields(WANTED, live, Owned({}, tree(live)))
    assert decision.fields == WANTED
    assert decision.differs
    assert decision.conflicts == ()


def test_our_correct_fields_are_not_written() -> None:
    assert not decide_fields(WANTED, {**WANTED, "region": "eu-1"}, OURS).differs


def test_our_fields_follow_the_network() -> None:
    live = apply_merge_patch(WANTED, {"network": {"vpc": {"id": "vpc-old"}}})
    decision = decide_fields(WANTED, live, OURS)
    assert decision.differs
    assert decision.fields["network"]["vpc"]["id"] == "vpc-1"


def test_a_conflicting_value_of_a_user_is_kept_and_reported() -> None:
    live = apply_merge_patch(WANTED, {"controlPlaneEndpoint": {"host": "mine.example"}})
    decision = decide_fields(WANTED, live, NOBODY)
    assert "host" not in decision.fields.get("controlPlaneEndpoint", {})
    assert decision.conflicts == (
        'spec.controlPlaneEndpoint.host is "mine.example", but the network has "api.example"',
    )


def test_an_equal_value_of_a_user_stays_owned_by_the_user() -> None:
    decision = decide_fields(WANTED, WANTED, NOBODY)
    assert decision.fields == {}
    assert not decision.differs
    assert not decision.conflicts


def test_fields_that_left_the_network_are_released() -> None:
    decision = decide_fields({}, WANTED, OURS)
    assert decision.removed == {"network": None}


def test_an_endpoint_is_never_removed() -> None:
    decision = decide_fields({}, WANTED, OURS)
    assert decision.fields == {"controlPlaneEndpoint": WANTED["controlPlaneEndpoint"]}
    assert not decision.differs


def test_our_map_is_kept_while_a_user_owns_a_field_in_it() -> None:
    live = {"network": {"id": "mine"}}
    owned = Owned({"network": {}}, {"network": {"id": {}}})
    changed = decide_fields({"network": {"id": "net-1"}}, live, owned)
    assert changed.fields == {"network": {}}
    assert not changed.differs
    assert changed.conflicts == ('spec.network.id is "mine", but the network has "net-1"',)
    gone = decide_fields({}, live, owned)
    assert gone.fields == {"network": {}}
    assert not gone.removed


def test_a_partial_endpoint_of_a_user_is_not_completed() -> None:
    live = {"controlPlaneEndpoint": {"host": "mine.example", "port": 0}}
    decision = decide_fields(WANTED, live, Owned({}, tree(live)))
    assert "controlPlaneEndpoint" not in decision.fields
    assert len(decision.conflicts) == 1


@pytest.mark.parametrize("value", [False, 0, 0.0, "x", ["a"], {"a": 1}])
def test_false_and_zero_of_a_user_are_values(value: JsonValue) -> None:
    decision = decide_fields({"setting": "ours"}, {"setting": value}, NOBODY)
    assert decision.fields == {}
    assert len(decision.conflicts) == 1


def test_a_users_value_is_not_replaced_by_a_map() -> None:
    decision = decide_fields({"network": {"id": "net-1"}}, {"network": "mine"}, NOBODY)
    assert decision.fields == {}
    assert decision.conflicts == ('spec.network is "mine", but the network has {"id":"net-1"}',)


def test_a_list_extended_by_a_user_is_not_changed() -> None:
    live = {"subnets": [{"id": "ours"}, {"id": "mine"}]}
    shared = Owned({"subnets": {}}, {"subnets": {}})
    decision = decide_fields({"subnets": [{"id": "new"}]}, live, shared)
    assert decision.fields == live  # giving it up would remove our part of it
    assert not decision.differs
    assert len(decision.conflicts) == 1


def test_ownership_is_read_from_managed_fields() -> None:
    ours = {
        "manager": MANAGER,
        "fieldsV1": {
            "f:spec": {
                "f:controlPlaneEndpoint": {"f:host": {}, "f:port": {}},
                "f:network": {
                    "f:subnets": {'k:{"id":"subnet-1"}': {".": {}, "f:id": {}}},
                    "f:tags": {},
                },
            }
        },
    }
    status = {"manager": MANAGER, "subresource": "status", "fieldsV1": {"f:spec": {"f:x": {}}}}
    other = {"manager": "kubectl", "fieldsV1": {"f:spec": {"f:region": {}, "f:tags": {".": {}}}}}
    another = {"manager": "edit", "fieldsV1": {"f:spec": {"f:tags": {"f:a": {}}}}}
    obj = {"metadata": {"managedFields": [other, ours, status, another]}}
    assert owned_fields(obj, "spec") == Owned(
        ours={
            "controlPlaneEndpoint": {"host": {}, "port": {}},
            "network": {"subnets": {}, "tags": {}},
        },
        others={"region": {}, "tags": {"a": {}}},
    )


scalars = st.integers(0, 3) | st.booleans() | st.sampled_from(["", "a"])
values = st.dictionaries(
    st.sampled_from("abc"),
    scalars | st.dictionaries(st.sampled_from("xy"), scalars, min_size=1),
)


def is_empty(value: JsonValue) -> bool:
    return not value and not isinstance(value, bool | int)


@given(values, values)
def test_no_value_of_a_user_is_ever_overwritten(desired: JsonObject, live: JsonObject) -> None:
    decision = decide_fields(desired, live, NOBODY)
    mine = {path for path, value in leaves(live) if not is_empty(value)}
    applied = set(dict(leaves(decision.fields)))
    assert not {path[:length] for path in applied for length in (1, 2)} & mine
    after = dict(leaves(apply_merge_patch(live, decision.fields)))
    assert all(after[path] == value for path, value in leaves(live) if path in mine)
    assert bool(decision.fields) == decision.differs


@given(values, values)
def test_applying_a_decision_again_changes_nothing(desired: JsonObject, live: JsonObject) -> None:
    first = decide_fields(desired, live, NOBODY)
    after = apply_merge_patch(live, first.fields)
    applied = dict(leaves(first.fields))
    others = tree({name: value for name, value in live.items() if name not in first.fields})
    for path, _ in leaves(live):
        if path not in applied and path[0] in first.fields and len(path) > 1:
            others.setdefault(path[0], {})[path[1]] = {}
    second = decide_fields(desired, after, Owned(tree(first.fields), others))
    assert not second.differs
    assert not second.removed
    assert second.conflicts == first.conflicts
