import json

import orjson
import pytest
import yaml
from hypothesis import given, settings
from hypothesis import strategies as st

from pergola.api.objects import JsonValue
from pergola.kube.yaml import YamlError, dump, parse, parse_documents


def is_same(one: object, other: object) -> bool:
    """Return whether values are equal with equal types: in Python `1 == 1.0 == True`."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_maps_are_written_in_block_style_with_sorted_keys() -> None:
    value: JsonValue = {
        "kind": "ConfigMap",
        "apiVersion": "v1",
        "empty": {"map": {}, "list": []},
        "list": [{"name": "b", "args": ["x", ["y", 1]]}, {}, "z", None],
        "data": {"text": "one\n  two\n\nthree\n", "cut": "a\nb", "kept": "a\n\n", "no": "no"},
        "numbers": [1, -1, 1.5, 1.0, 1e30, True],
    }
    assert (
        dump(value)
        == """\
apiVersion: v1
data:
  cut: |-
    a
    b
  kept: |+
    a

  "no": "no"
  text: |
    one
      two

    three
empty:
  list: []
  map: {}
kind: ConfigMap
list:
- args:
  - x
  - - "y"
    - 1
  name: b
- {}
- z
- null
numbers:
- 1
- -1
- 1.5
- 1
- 1.0e+30
- true
"""
    )


@pytest.mark.parametrize("value", [None, {}, [], "x", "", 1, True, 1.5, "no", "---", "a\nb"])
def test_any_value_can_be_a_document(value: JsonValue) -> None:
    assert dump(value).endswith("\n")
    assert is_same(parse(dump(value)), value)


# Texts that some readers take for a boolean, a number, a date or syntax.
AMBIGUOUS = [
    *("", "y", "N", "yes", "No", "on", "OFF", "true", "FALSE", "~", "null", "NULL", "nULL", "oN"),
    *(
        "0",
        "1",
        "-1",
        "+1",
        "0777",
        "0o17",
        "0b11",
        "0x1F",
        "08",
        "1e3",
        "1_000",
        "1.0",
        ".5",
        "1.",
    ),
    *(".inf", "-.INF", ".nan", "inf", "nan", "1:30", "190:20:30", "2001-12-14", "1e21", "1E+3"),
    *("=", "<<", "-", "- a", "?", "? a", ":", ": a", "a: b", "a:", "a #b", "#a", "&a", "*a", "!a"),
    *("!!int", "|", ">", "%a", "@a", "`a", "'a", '"a', "{a}", "[a]", "a,", ",a", " a", "a ", "a\t"),
    *("\ta", "---", "...", "--- a", "\\", "a\\nb", '"', "''", "a:1", "a:b:c", "http://a/b?c=d#e"),
    *("a/b:1.2@sha256:abc", "e3", "_1", "/a", "None", "x" * 3000, "y" + " y" * 2000),
    *("a\nb", "\na", "a\n", "\n", "a\n b\n", " a\nb", "a\n ", "a \nb", "a\n\tb", "a\n#b"),
    *("a\n---\nb", "a\n\n\nb\n\n\n", "a\nb: c", "a\r\nb", "a\rb", "a\tb", "a\x85b", "a\u2028b"),
    *(
        "a\u2029\n",
        "\x00",
        "\x07",
        "\x1b",
        "\x7f",
        "\x9f\n",
        "\ufeff",
        "\ufffe",
        "\uffff",
        "\u00e9",
    ),
    "\U0001f600",
]


@pytest.mark.parametrize("text", AMBIGUOUS)
def test_strings_are_read_as_strings_by_every_reader(text: str) -> None:
    nested: JsonValue = {"a": [{"b": text, text: [text]}]}
    places: list[JsonValue] = [{"key": text}, {text: "value"}, [text], nested, text]
    for value in places:
        written = dump(value)
        assert parse(written) == value
        assert yaml.load(written, yaml.CSafeLoader) == value
    # YAML 1.2 has no other keywords.
    if text.isascii() and dump(text) == f"{text}\n":
        assert text.lower() not in ("true", "false", "null", "~", ".nan", ".inf", "")
        assert not text[0].isdigit()
        assert text[0] not in "+-."


def test_long_keys_are_written_so_that_they_can_be_read() -> None:
    key = "k" * 2000
    value: JsonValue = {key: {key: [{key: "x"}, {key: "a\nb\n"}], "a": {key: {"b": 1}}}, "z": 1}
    assert parse(dump(value)) == value


@pytest.mark.parametrize(
    "value", [float("inf"), float("-inf"), float("nan"), "\ud83d", {"\udc00": 1}]
)
def test_values_that_cannot_be_read_back_are_refused(value: JsonValue) -> None:
    with pytest.raises(YamlError):
        dump([value])


def test_excessive_nesting_is_not_written() -> None:
    value: JsonValue = 1
    for _ in range(300):
        value = [value]
    with pytest.raises(YamlError, match="levels deep"):
        dump(value)


TEXTS = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(AMBIGUOUS)
JSON = st.recursive(
    st.none()
    | st.booleans()
    | st.integers(-(2**63), 2**64 - 1)
    | st.floats(allow_nan=False, allow_infinity=False)
    | TEXTS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(TEXTS, inner, max_size=4),
    max_leaves=12,
)


@settings(deadline=None, max_examples=300)
@given(JSON)
def test_written_text_parses_to_the_same_value(value: JsonValue) -> None:
    written = dump(value)
    assert parse(written) == value
    assert dump(parse(written)) == written


@settings(deadline=None, max_examples=100)
@given(JSON.filter(lambda value: isinstance(value, dict)))
def test_json_is_read_the_same_through_both_readers(value: JsonValue) -> None:
    text = orjson.dumps(value).decode()
    assert parse(text) == value
    assert [d.value for d in parse_documents(text + text)] == [value, value]


@settings(deadline=None, max_examples=100)
@given(st.lists(JSON.filter(lambda value: value is not None), max_size=4))
def test_a_written_stream_of_documents_is_read_back(stream: list[JsonValue]) -> None:
    text = "---\n".join(map(dump, stream))
    assert [d.value for d in parse_documents(text)] == stream
