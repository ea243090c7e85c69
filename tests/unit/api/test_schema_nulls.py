"""Nulls that an API server removes before it validates."""

from typing import Annotated, Any

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import field

from pergola.api.objects import JsonObject, JsonValue
from pergola.api.schema import Malformed, Value, read, schema_of, validate
from pergola.api.schema import declare as d
from pergola.api.schema.nulls import without_nulls


class Inner(Value):
    size: int = 1
    names: list[str] = field(default_factory=list)


class Outer(Value):
    inner: Inner = field(default_factory=Inner)
    several: list[Inner] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)
    hollow: Annotated[str | None, d.NULLABLE] = "x"


SCHEMA = schema_of(Outer)
_INNER = st.fixed_dictionaries(
    {},
    optional={"size": st.none() | st.integers(0, 9), "names": st.none() | st.just(["a"])},
)
OUTER = st.fixed_dictionaries(
    {},
    optional={
        "inner": st.none() | _INNER,
        "several": st.none() | st.lists(_INNER, max_size=2),
        "labels": st.none() | st.dictionaries(st.sampled_from("ab"), st.none() | st.just("x")),
        "anything": st.none() | st.dictionaries(st.sampled_from("ab"), st.none() | st.just(1)),
        "hollow": st.none() | st.just("y"),
        "unknown": st.none(),
    },
)


def test_nulls_of_fields_and_entries_are_removed() -> None:
    value: JsonObject = {
        "inner": None,
        "several": [{"size": None}],
        "labels": {"a": None, "b": "x"},
    }

    assert without_nulls(SCHEMA, value) == {"several": [{}], "labels": {"b": "x"}}


def test_nulls_of_nullable_fields_unknown_fields_free_maps_and_lists_stay() -> None:
    value: JsonObject = {
        "hollow": None,
        "unknown": {"a": None},
        "anything": {"a": None},
        "several": [None],
    }

    assert without_nulls(SCHEMA, value) == value


@given(OUTER)
def test_a_value_with_nulls_is_judged_and_read_as_without_them(value: JsonValue) -> None:
    pruned = without_nulls(SCHEMA, value)

    assert without_nulls(SCHEMA, pruned) == pruned
    assert [f for f in validate(SCHEMA, value) if f.severity == "error"] == []
    assert read(Outer, value, of="x") == read(Outer, pruned, of="x")


DEEP: JsonValue = orjson.loads("[" * 1000 + "]" * 1000)
DEEP_MAP: JsonValue = orjson.loads('{"a":' * 1000 + "1" + "}" * 1000)


@pytest.mark.parametrize("deep", [DEEP, DEEP_MAP], ids=["list", "map"])
@pytest.mark.parametrize("name", ["unknown", *Outer.__struct_encode_fields__])
def test_values_that_are_nested_very_deeply_are_a_finding_like_any_other(
    name: str, deep: JsonValue
) -> None:
    value: JsonObject = {name: deep}
    assert without_nulls(SCHEMA, value).keys() == {name}
    if name != "anything":
        found = validate(SCHEMA, value)
        assert found
        if any(finding.severity == "error" for finding in found):
            with pytest.raises(Malformed):
                read(Outer, value, of="test")
