"""Edits of an object, and the resulting JSON patch."""

import copy

import jsonpatch
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.admission.draft import Draft, Path, pointer
from pergola.admission.review import Edit
from pergola.api.objects import JsonObject, JsonValue

BECAUSE = "a rule"

names = st.sampled_from(["a", "b", "c", "x/y", "m~n", ""])
scalars = st.none() | st.booleans() | st.integers(-3, 3) | st.text("ab/~", max_size=3)
values = st.recursive(
    scalars,
    lambda parts: st.lists(parts, max_size=3) | st.dictionaries(names, parts, max_size=3),
    max_leaves=12,
)
objects = st.dictionaries(names, values, max_size=4)


@st.composite
def paths(draw: st.DrawFn, obj: JsonObject) -> Path:
    """Return a path to something that exists or could be added."""
    path: list[str | int] = []
    value: JsonValue = obj
    while True:
        if isinstance(value, list):
            path.append(draw(st.integers(0, len(value) - 1)))
            value = value[int(path[-1])]
        else:
            found = value if isinstance(value, dict) else {}
            path.append(draw(names | st.sampled_from([*found] or ["new"])))
            value = found.get(str(path[-1]))
        ends = (value is not None and not isinstance(value, list | dict)) or value == []
        if ends or len(path) == 4 or draw(st.booleans()):
            return tuple(path)


def edit(data: st.DataObject, draft: Draft) -> None:
    """Make one edit of any kind, at any place."""
    path = data.draw(paths(draft.object))
    kind = data.draw(st.sampled_from(["set", "append", "remove"]))
    if kind == "remove":
        draft.remove(path, BECAUSE)
    elif kind == "append" and isinstance(draft.get(*path), list | None):
        draft.append(path, data.draw(values), BECAUSE)
    else:
        draft.set(path, data.draw(values), BECAUSE)


@given(st.data())
def test_the_patch_turns_the_original_into_the_draft(data: st.DataObject) -> None:
    original = data.draw(objects)
    before = copy.deepcopy(original)
    draft = Draft(original)
    for _ in range(data.draw(st.integers(1, 5))):
        edit(data, draft)
    assert original == before
    operations = [made.operation() for made in draft.edits]
    assert jsonpatch.apply_patch(before, operations) == draft.object


@given(st.data())
def test_setting_an_equal_value_is_no_edit(data: st.DataObject) -> None:
    draft = Draft(data.draw(objects))
    path, value = data.draw(paths(draft.object)), data.draw(values)
    draft.set(path, value, BECAUSE)
    again = Draft(draft.object)
    again.set(path, value, BECAUSE)
    assert again.edits == ()
    assert again.object is draft.object


@given(st.data())
def test_removing_an_absent_field_is_no_edit(data: st.DataObject) -> None:
    draft = Draft(data.draw(objects))
    path = data.draw(paths(draft.object))
    draft.remove(path, BECAUSE)
    again = Draft(draft.object)
    if isinstance(path[-1], str):
        again.remove(path, BECAUSE)
    assert again.edits == ()


@pytest.mark.parametrize(
    ("obj", "path", "edits"),
    [
        ({}, ("a",), [Edit("add", "/a", 1, BECAUSE)]),
        ({"a": 0}, ("a",), [Edit("replace", "/a", 1, BECAUSE)]),
        ({"a": None}, ("a",), [Edit("replace", "/a", 1, BECAUSE)]),
        ({"a": 1}, ("a",), []),
        ({}, ("a", "b", "c"), [Edit("add", "/a", {"b": {"c": 1}}, BECAUSE)]),
        ({"a": {}}, ("a", "b", "c"), [Edit("add", "/a/b", {"c": 1}, BECAUSE)]),
        ({"a": None}, ("a", "b"), [Edit("replace", "/a", {"b": 1}, BECAUSE)]),
        ({"a": [{}]}, ("a", 0, "x/y"), [Edit("add", "/a/0/x~1y", 1, BECAUSE)]),
    ],
)
def test_setting_a_value_produces_the_smallest_edit(
    obj: JsonObject, path: Path, edits: list[Edit]
) -> None:
    draft = Draft(obj)
    draft.set(path, 1, BECAUSE)
    assert list(draft.edits) == edits


@pytest.mark.parametrize(
    ("obj", "edit_made"),
    [
        ({}, Edit("add", "/a", [1], BECAUSE)),
        ({"a": None}, Edit("replace", "/a", [1], BECAUSE)),
        ({"a": []}, Edit("replace", "/a", [1], BECAUSE)),
        ({"a": [0]}, Edit("add", "/a/-", 1, BECAUSE)),
    ],
)
def test_appending_creates_a_missing_list(obj: JsonObject, edit_made: Edit) -> None:
    draft = Draft(obj)
    draft.append(("a",), 1, BECAUSE)
    assert draft.edits == (edit_made,)


def test_changing_a_value_later_does_not_change_the_edit() -> None:
    draft = Draft({})
    draft.set(("a",), {"b": []}, "first")
    draft.append(("a", "b"), 1, "second")
    draft.append(("a", "b"), 2, "third")
    assert [made.value for made in draft.edits] == [{"b": []}, [1], 2]
    assert draft.get("a", "b") == [1, 2]


def test_reads_see_the_edits_and_return_none_for_absent_fields() -> None:
    draft = Draft({"a": [{"b": 1}]})
    draft.set(("a", 0, "b"), 2, BECAUSE)
    assert draft.get("a", 0, "b") == 2
    assert draft.get("a", 1, "b") is None
    assert draft.get("a", 0, "b", "c") is None


def test_a_path_through_a_scalar_is_an_error() -> None:
    with pytest.raises(TypeError, match="/a is neither a map nor a list"):
        Draft({"a": 1}).set(("a", "b"), 2, BECAUSE)


def test_the_verdict_has_the_edits_or_the_reason_for_having_none() -> None:
    draft = Draft({})
    assert draft.verdict("all is well").because == "all is well"
    draft.set(("a",), 1, BECAUSE)
    verdict = draft.verdict("all is well", warnings=("careful",))
    assert (verdict.allowed, verdict.edits, verdict.because) == (True, draft.edits, "")
    assert verdict.warnings == ("careful",)


def test_a_pointer_is_escaped() -> None:
    assert pointer(("a/b", 0, "m~n", "-")) == "/a~1b/0/m~0n/-"
