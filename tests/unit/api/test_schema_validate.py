from datetime import timedelta
from typing import Annotated, Any, Literal

import pytest
from hypothesis import given
from hypothesis import strategies as st
from msgspec import Meta, field

from pergola.api.objects import JsonObject, JsonValue
from pergola.api.resources_v1alpha1 import ManagedResource
from pergola.api.schema import Finding, Malformed, Value, read, schema_of, validate
from pergola.api.schema import declare as d
from pergola.api.schema.duration import Duration


class Item(Value):
    name: str
    size: int = 0


class Sample(Value):
    flag: bool = False
    count: Annotated[int, Meta(ge=1, le=9)] = 1
    small: Annotated[int, d.INT32] = 0
    share: Annotated[float, Meta(gt=0, lt=1)] = 0.5
    text: Annotated[str, Meta(min_length=2, max_length=3, pattern="^a")] = "ab"
    when: d.Timestamp | None = None
    every: Duration | None = None
    mode: Literal["On", "Off"] = "On"
    port: int | str = 80
    items: Annotated[list[Item], d.keyed_by("name")] = field(default_factory=list)
    names: Annotated[list[str], d.SET, Meta(max_length=3)] = field(default_factory=list)
    labels: dict[str, str] = field(default_factory=dict)
    anything: dict[str, Any] = field(default_factory=dict)
    hollow: Annotated[str | None, d.NULLABLE] = None
    given: Annotated[str, d.default("x")] = "x"


SCHEMA = schema_of(Sample)


def findings(value: JsonValue, path: str = "") -> list[tuple[str, str]]:
    return [(f.path, f.problem) for f in validate(SCHEMA, value, path)]


@pytest.mark.parametrize(
    "value",
    [
        {},
        {"flag": True, "count": 9, "share": 0.1, "text": "abc", "mode": "Off"},
        {"count": 3.0, "share": 0.5},
        {"port": "http"},
        {"port": 8080},
        {"when": "2026-03-01T12:00:00Z"},
        {"when": "2026-03-01T12:00:00.123456+02:00"},
        {"every": "1h30m"},
        {"items": [{"name": "a"}, {"name": "b", "size": 3}]},
        {"names": ["a", "b"], "labels": {"a.b/c": ""}},
        {"anything": {"goes": [1, {"x": None}]}},
        {"hollow": None, "given": None},
        {"flag": None, "items": None, "labels": {"a": None}, "when": None},
        {"items": [{"name": "a", "size": None}]},
    ],
)
def test_valid_values_have_no_findings(value: JsonValue) -> None:
    assert findings(value) == []


@pytest.mark.parametrize(
    ("value", "path", "problem"),
    [
        ([], "", "must be a map, not a list"),
        (None, "", "must be a map, not null"),
        ({"flag": "true"}, "flag", "must be true or false, not a string"),
        ({"flag": 1}, "flag", "must be true or false, not an integer"),
        ({"names": [None]}, "names[0]", "must be a string, not null"),
        ({"items": [{"name": None}]}, "items[0].name", "is required"),
        ({"count": True}, "count", "must be an integer, not true"),
        ({"count": 1.5}, "count", "must be an integer, not a number"),
        ({"count": 0}, "count", "must be at least 1"),
        ({"count": 10}, "count", "must be at most 9"),
        ({"small": 2**31}, "small", "must fit into int32"),
        ({"share": 0}, "share", "must be greater than 0"),
        ({"share": 1}, "share", "must be less than 1"),
        ({"share": float("nan")}, "share", "must be a finite number"),
        ({"text": "a"}, "text", "must have at least 2 characters"),
        ({"text": "abcd"}, "text", "must have at most 3 characters"),
        ({"text": "bc"}, "text", "must match ^a"),
        ({"when": "yesterday"}, "when", 'must be a time like "2006-01-02T15:04:05Z"'),
        ({"every": "1d"}, "every", 'must be a duration like "1h30m" or "15s"'),
        ({"mode": "on"}, "mode", 'must be one of "Off", "On"'),
        ({"port": 1.5}, "port", "must be an integer or a string, not a number"),
        ({"port": False}, "port", "must be an integer or a string, not false"),
        ({"items": {}}, "items", "must be a list, not a map"),
        ({"items": [{"size": 1}]}, "items[0].name", "is required"),
        ({"items": [{"name": 3}]}, "items[0].name", "must be a string, not an integer"),
        ({"items": [{"name": "a"}, {"name": "a"}]}, "items[1]", "is there already"),
        ({"names": ["a", "b", "a"]}, "names[2]", "is there already"),
        ({"names": ["a", "b", "c", "d"]}, "names", "must have at most 3 items"),
        ({"labels": {"a.b/c": 1}}, "labels[a.b/c]", "must be a string, not an integer"),
        ({"anything": []}, "anything", "must be a map, not a list"),
    ],
)  # fmt: skip
def test_each_violated_rule_is_one_finding_at_its_path(
    value: JsonValue, path: str, problem: str
) -> None:
    assert findings(value) == [(path, problem)]


def test_all_findings_are_reported_at_once() -> None:
    wrong: JsonObject = {"flag": 1, "count": 0, "items": [{}, {"name": 1}], "labels": {"a": 1}}

    paths = [path for path, _ in findings(wrong, "spec")]

    assert paths == [
        "spec.flag",
        "spec.count",
        "spec.items[0].name",
        "spec.items[1].name",
        "spec.labels[a]",
    ]


def test_the_warning_about_an_unknown_field_suggests_a_similar_one() -> None:
    assert validate(SCHEMA, {"Flag": True, "zzz": 1, "items": [{"name": "a", "sise": 1}]}) == [
        Finding(
            "items[0].sise",
            'is not a known field and has no effect; did you mean "size"?',
            "warning",
        ),
        Finding("Flag", 'is not a known field and has no effect; did you mean "flag"?', "warning"),
        Finding("zzz", "is not a known field and has no effect", "warning"),
    ]


def test_findings_never_quote_the_value() -> None:
    secret = "hunter2-hunter2"

    found = validate(SCHEMA, dict.fromkeys(SCHEMA["properties"], secret))

    assert len(found) > 10
    assert not any(secret in str(finding) for finding in found)


def test_a_value_is_converted_to_its_type() -> None:
    sample = read(
        Sample, {"count": 3.0, "every": "90s", "given": None, "unknown": 1}, of="the sample"
    )

    assert sample.count == 3
    assert sample.every == timedelta(seconds=90)
    assert sample.given == "x"


def test_a_value_that_cannot_be_read_is_one_sentence_with_every_field() -> None:
    with pytest.raises(Malformed) as caught:
        read(Sample, {"flag": 1, "every": 5, "unknown": 1}, path="spec", of="Sample a/b")

    assert str(caught.value) == (
        "Sample a/b: spec.flag: must be true or false, not an integer; "
        "spec.every: must be a string, not an integer"
    )


def test_a_value_is_converted_back_to_json() -> None:
    value: JsonObject = {"every": "1m30s", "items": [{"name": "a"}], "port": "http"}

    assert read(Sample, value, of="the sample").to_json() == value


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from([*SCHEMA["properties"], "name", "spec", "status"])
            | st.text(max_size=3),
            inner,
            max_size=4,
        )
    ),
    max_leaves=12,
)


@given(JSON)
def test_validation_never_raises(value: JsonValue) -> None:
    for cls in (Sample, ManagedResource):
        assert all(isinstance(f, Finding) for f in validate(schema_of(cls), value))


@given(st.dictionaries(st.sampled_from([*SCHEMA["properties"]]), JSON, max_size=4))
def test_values_without_errors_can_be_read(value: dict[str, JsonValue]) -> None:
    if not any(f.severity == "error" for f in validate(SCHEMA, value)):
        read(Sample, value, of="the sample")
