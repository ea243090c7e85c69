import copy
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.patches import (
    apply_merge_patch,
    escape_pointer,
    merge_patch,
    same,
)

KEYS = st.sampled_from(["a", "b", "c", "", "x/y", "x~y", "~1", "0"])
SCALARS = st.none() | st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "1"])
SET_SCALARS = st.booleans() | st.integers(-2, 2) | st.sampled_from(["", "x", "1"])


def objects(scalars: st.SearchStrategy[Any]) -> st.SearchStrategy[JsonObject]:
    values = st.recursive(
        scalars,
        lambda inner: st.lists(inner, max_size=4) | st.dictionaries(KEYS, inner, max_size=4),
        max_leaves=12,
    )
    return st.dictionaries(KEYS, values, max_size=4)


@pytest.mark.parametrize(
    ("old", "new", "patch"),
    [
        ({}, {}, {}),
        ({"a": 1}, {"a": 1}, {}),
        ({"a": 1}, {"a": 1.0}, {}),
        ({"a": 1}, {"a": True}, {"a": True}),
        ({"a": 0}, {"a": False}, {"a": False}),
        ({"a": 1}, {}, {"a": None}),
        ({"a": None}, {"a": None}, {}),
        ({"a": None}, {}, {"a": None}),
        ({"a": 1}, {"a": None}, {"a": None}),
        ({}, {"a": None}, {}),
        ({"a": {"b": 1, "c": 2}}, {"a": {"b": 1, "c": 3}}, {"a": {"c": 3}}),
        ({"a": {"b": 1}}, {"a": {}}, {"a": {"b": None}}),
        ({"a": {"b": 1}}, {"a": [1]}, {"a": [1]}),
        ({"a": [1]}, {"a": {"b": 1}}, {"a": {"b": 1}}),
        ({"a": [1, 2]}, {"a": [1]}, {"a": [1]}),
        ({"a": [{"b": 1}]}, {"a": [{"b": True}]}, {"a": [{"b": True}]}),
        ({}, {"a": {}}, {"a": {}}),
    ],
)
def test_a_merge_patch_has_only_changed_fields(
    old: JsonObject, new: JsonObject, patch: JsonObject
) -> None:
    found = merge_patch(old, new)
    assert same(found, patch)


@given(objects(SET_SCALARS), objects(SET_SCALARS))
def test_a_merge_patch_turns_the_old_object_into_the_new_one(
    old: JsonObject, new: JsonObject
) -> None:
    before = copy.deepcopy(old)
    assert same(apply_merge_patch(old, merge_patch(old, new)), new)
    assert same(old, before)


@given(objects(SCALARS))
def test_an_unchanged_object_needs_no_patch(obj: JsonObject) -> None:
    twin = copy.deepcopy(obj)
    assert merge_patch(obj, twin) == {}


@pytest.mark.parametrize(
    ("obj", "patch", "result"),
    [
        # The examples of RFC 7386 whose documents are maps.
        ({"a": "b"}, {"a": "c"}, {"a": "c"}),
        ({"a": "b"}, {"b": "c"}, {"a": "b", "b": "c"}),
        ({"a": "b"}, {"a": None}, {}),
        ({"a": "b", "b": "c"}, {"a": None}, {"b": "c"}),
        ({"a": ["b"]}, {"a": "c"}, {"a": "c"}),
        ({"a": "c"}, {"a": ["b"]}, {"a": ["b"]}),
        ({"a": {"b": "c"}}, {"a": {"b": "d", "c": None}}, {"a": {"b": "d"}}),
        ({"a": [{"b": "c"}]}, {"a": [1]}, {"a": [1]}),
        ({"e": None}, {"a": 1}, {"e": None, "a": 1}),
        ({}, {"a": {"bb": {"ccc": None}}}, {"a": {"bb": {}}}),
    ],
)
def test_a_merge_patch_is_applied_as_in_the_rfc(
    obj: JsonObject, patch: JsonObject, result: JsonObject
) -> None:
    assert apply_merge_patch(obj, patch) == result


def test_applying_a_merge_patch_shares_unchanged_parts() -> None:
    obj: JsonObject = {"a": {"b": 1}, "c": {"d": {"e": 1}, "f": {}}}
    result = apply_merge_patch(obj, {"c": {"d": {"e": 2}}})
    assert result == {"a": {"b": 1}, "c": {"d": {"e": 2}, "f": {}}}
    assert obj["c"]["d"] == {"e": 1}
    assert result["a"] is obj["a"]
    assert result["c"]["f"] is obj["c"]["f"]


def test_escaping_keeps_names_apart() -> None:
    assert [escape_pointer(name) for name in ("a", "~", "/", "~1", "~0")] == [
        *("a", "~0", "~1", "~01", "~00")
    ]


@pytest.mark.parametrize(
    ("one", "other", "verdict"),
    [
        (1, 1.0, True),
        (1, True, False),
        (0, False, False),
        (None, False, False),
        ([1], [1.0], True),
        ([1], [True], False),
        ({"a": 1}, {"a": True}, False),
        ({"a": None}, {}, False),
        ({"a": 1}, {"b": 1}, False),
        ([1, 2], [1], False),
        ({}, [], False),
        ("1", 1, False),
    ],
)
def test_values_are_the_same_if_their_json_is(
    one: JsonValue, other: JsonValue, verdict: bool
) -> None:
    assert same(one, other) is verdict
    assert same(other, one) is verdict
