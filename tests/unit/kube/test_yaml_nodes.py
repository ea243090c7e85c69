from typing import Any

import orjson
import pytest

from pergola.api.objects import JsonValue
from pergola.kube.yaml import YamlError, dump, parse, parse_documents


def the_error(text: str | bytes) -> YamlError:
    """Return the error of a stream that is one broken document."""
    (document,) = parse_documents(text)
    assert document.value is None
    assert document.error is not None
    return document.error


@pytest.mark.parametrize(
    ("text", "key"),
    [
        *(("yes", "true"), ("y", "true"), ("off", "false"), ("1", "1"), ("0777", "511")),
        *(("1.0", "1"), ("1.5", "1.5"), ("0x10", "16"), ("1_000", "1000"), ("-1", "-1")),
        *(("1:30", "1:30"), ("2026-01-01", "2026-01-01"), ("'yes'", "yes"), ("1e-7", "1e-07")),
        *(("!!binary aGVsbG8=", "hello"), ("=", "="), ("1e21", "1e+21")),
    ],
)
def test_keys_become_strings(text: str, key: str) -> None:
    assert parse(f"{text}: x\n") == {key: "x"}


@pytest.mark.parametrize("text", ["null: x", "~: x", "? [a]\n: b", "? {a: b}\n: c", "?", ".inf: 1"])
def test_an_invalid_key_is_an_error(text: str) -> None:
    assert the_error(text + "\n").line == 1


@pytest.mark.parametrize(
    "text", ["a: 1\na: 2\n", '{"a": 1, "a": 2}', "yes: 1\n'true': 0\nyes: 2\n"]
)
def test_the_last_of_equal_keys_wins(text: str) -> None:
    value = parse(text)
    assert isinstance(value, dict)
    assert list(value.values()) == [2]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: &x {b: 1}\nc: *x\n", {"a": {"b": 1}, "c": {"b": 1}}),
        ("&x a: *x\n", {"a": "a"}),
        ("a: &x 1\nb: &x 2\nc: *x\n", {"a": 1, "b": 2, "c": 2}),
        ("a: &x\nb: *x\n", {"a": None, "b": None}),
        (
            "a: &x {b: 1, c: 2}\nd:\n  <<: *x\n  c: 3\n",
            {"a": {"b": 1, "c": 2}, "d": {"b": 1, "c": 3}},
        ),
        ("c: 3\n<<: {c: 1, d: 2}\n", {"c": 1, "d": 2}),
        ("<<: [{b: 1}, {b: 2, d: 4}]\n", {"b": 1, "d": 4}),
        ("<<: {<<: {a: 1}, b: 2}\n", {"a": 1, "b": 2}),
        ("<<: {a: 1}\n<<: {a: 2, b: 3}\n", {"a": 2, "b": 3}),
        ("'<<': {a: 1}\n", {"<<": {"a": 1}}),
        ("!!merge <<: {a: 1}\n", {"a": 1}),
        ("!!str <<: {a: 1}\n", {"<<": {"a": 1}}),
        ("- <<\n", ["<<"]),
    ],
)
def test_anchors_and_merge_keys_work(text: str, value: JsonValue) -> None:
    assert parse(text) == value


@pytest.mark.parametrize(
    "text",
    ["a: *x", "a: &x [*x]", "a: &x 1\nb: &x [*x]", "<<: 1", "<<: [1]", "<<:", "<<: [[{a: 1}]]"],
)
def test_an_alias_or_merge_of_nothing_is_an_error(text: str) -> None:
    assert the_error(text + "\n").line > 0


def test_anchors_are_limited_to_their_document() -> None:
    first, second = parse_documents("a: &x 1\n---\nb: *x\n")
    assert first.value == {"a": 1}
    assert second.error is not None


def test_values_of_aliases_can_be_changed_independently() -> None:
    value: Any = parse("a: &x {b: [1]}\nc: *x\nd: {<<: *x}\n")
    value["a"]["b"].append(2)
    assert value == {"a": {"b": [1, 2]}, "c": {"b": [1]}, "d": {"b": [1]}}


@pytest.mark.parametrize(
    "text",
    [
        *(
            "[" * 300,
            "[" * 300 + "]" * 300,
            "- " * 300 + "x",
            "? " * 300,
            '{"a":' * 300 + "1" + "}" * 300,
        ),
        *("[" * 100_000, "{" * 100_000, '{"a":' * 100_000, "- " * 100_000),
        '{"a":' * 1200 + "1" + "}" * 1200,
        '{"a":' * 250 + "1" + "}" * 250 + "{}",
        '{"a":' + "[" * 5000 + "]" * 5000 + "}{}",
    ],
)
def test_excessive_nesting_is_refused(text: str) -> None:
    assert "levels deep" in str(the_error(text))


def test_aliases_cannot_nest_deeper_than_a_document_could() -> None:
    first = "&a0 " + "[" * 150 + "]" * 150
    second = "[" * 100 + "*a0" + "]" * 100
    assert "levels deep" in str(the_error(f"a: {first}\nb: {second}\n"))


def test_the_deepest_allowed_value_can_be_written_as_json() -> None:
    for text in ("[" * 200 + "]" * 200, '{"a":' * 200 + "1" + "}" * 200):
        value = parse(text)
        assert orjson.dumps(value).decode() == text
        assert parse(dump(value)) == value


def test_aliases_of_aliases_cannot_fill_the_memory() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 9)}]" for n in range(1, 20)]
    assert "too many" in str(the_error("\n".join(lines)))


def test_aliases_of_a_long_text_cannot_fill_the_memory() -> None:
    text = f"a: &a {'x' * 1_000_000}\nb: [{', '.join(['*a'] * 1000)}]\n"
    assert "too many" in str(the_error(text))


def test_a_thousand_aliases_of_a_small_value_are_allowed() -> None:
    value = parse(f"a: &a {{b: c}}\nd: [{', '.join(['*a'] * 1000)}]\n")
    assert value == {"a": {"b": "c"}, "d": [{"b": "c"}] * 1000}
