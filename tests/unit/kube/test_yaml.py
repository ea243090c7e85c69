import json
import random

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonValue
from pergola.kube.yaml import Document, YamlError, parse, parse_documents

CONFIG_MAPS = """\
apiVersion: v1
kind: ConfigMap
metadata: {name: first, labels: {a: b}}
data:
  text: |
    one
    two
---
# The second one.
apiVersion: v1
kind: ConfigMap
metadata:
  name: second
"""


def values(text: str | bytes) -> list[JsonValue]:
    """Return the values of a stream without a broken document."""
    documents = list(parse_documents(text))
    assert [d.error for d in documents if d.error] == []
    return [d.value for d in documents]


def is_same(one: object, other: object) -> bool:
    """Return whether values are equal with equal types: in Python `1 == 1.0 == True`."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


def test_documents_are_separated_by_lines_of_dashes() -> None:
    first, second = values(CONFIG_MAPS)
    assert isinstance(first, dict)
    assert first["data"] == {"text": "one\ntwo\n"}
    assert second == {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": "second"}}


def test_the_second_of_two_documents_is_broken_and_the_first_is_read() -> None:
    first, second = parse_documents("a: 1\n---\nb: [\n")
    assert first == Document(0, {"a": 1}, None, 1)
    assert (second.index, second.value, second.line) == (1, None, 4)
    assert second.error is not None


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("", []),
        ("---\n", []),
        ("---\n---\n", []),
        ("---\na: 1\n---\n---\nb: 2", [{"a": 1}, {"b": 2}]),
        ("# c\n", [None]),
        ("\n\n", [None]),
        ("null", [None]),
        ("~\n---\na: 1", [None, {"a": 1}]),
        ("# c\n---\na: 1\n---\n\n---\nnull\n---\nb: 2\n", [None, {"a": 1}, None, None, {"b": 2}]),
        ("a: 1\n--- # c\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("a: 1\n--- \t\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ("a: 1\n  ---\nb: 1\n", [{"a": "1 ---", "b": 1}]),
        ("a: 1\n...\n---\nb: 1\n", [{"a": 1}, {"b": 1}]),
        ("a: 1\r\n---\r\nb: |\r\n  x\r\n  y\r\n", [{"a": 1}, {"b": "x\ny\n"}]),
        ("\ufeffa: 1\n---\nb: 2\n", [{"a": 1}, {"b": 2}]),
        ('\ufeff{"a": 1}', [{"a": 1}]),
        ("---\na: 1", [{"a": 1}]),
        ("[1]\n---\nfoo\n---\n3", [[1], "foo", 3]),
    ],
)
def test_empty_documents_count_and_have_no_value(text: str, found: list[JsonValue]) -> None:
    assert values(text) == found
    assert values(text.encode()) == found


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ('{"a":1}{"b":2}', [{"a": 1}, {"b": 2}]),
        ('{"a":1}\n{"b":2}\n', [{"a": 1}, {"b": 2}]),
        ('{"a":1}\n---\n{"b":2}\n{"c":3}', [{"a": 1}, {"b": 2}, {"c": 3}]),
        ('{"a":1}\n---\nb: 2\n', [{"a": 1}, {"b": 2}]),
        ('{"a":1}\nb: 2\n', [{"a": 1}, {"b": 2}]),
        ('# c\n\n  {"a":1}{"b":2} # d\n', [{"a": 1}, {"b": 2}]),
        ('{"a": 1,\r\n "b": {}}\r\n', [{"a": 1, "b": {}}]),
        ('{"a":1} # c\n', [{"a": 1}]),
        ("{a: 1}\n---\n{b: 2}\n", [{"a": 1}, {"b": 2}]),
        ('{"a":"\\u00e9\\ud83d\\ude00\\/"}', [{"a": "\u00e9\U0001f600/"}]),
        ('{"a":1,"a":2}', [{"a": 2}]),
    ],
)
def test_json_is_read_with_or_without_separators(text: str, found: list[JsonValue]) -> None:
    assert values(text) == found


def test_numbers_are_equal_in_json_and_yaml() -> None:
    text = '{"a": 1.0, "b": [1e3, -0.0, {"c": 2.50}], "d": 9223372036854775808, "e": 1e300}'
    desired = {"a": 1, "b": [1000, 0, {"c": 2.5}], "d": 2**63, "e": 1e300}
    assert is_same(parse(text), desired)
    assert is_same(parse(text + "\n# comment"), desired)
    assert is_same(next(parse_documents(text + "{}")).value, desired)
    assert is_same(parse("# as YAML\n- " + text), [desired])


@pytest.mark.parametrize(
    ("text", "found"),
    [
        ("a: [\n---\nb: 1\n", [None, {"b": 1}]),
        ("a: 1\n---\n\tb\n---\nc: 1\n", [{"a": 1}, None, {"c": 1}]),
        ('{"a":1}\n{bad\n---\nb: 1', [{"a": 1}, None, {"b": 1}]),
        ('{"a":1}{bad}{"b":2}', [{"a": 1}, None]),
        ('{"a":1}\n---\n{"b":\n---\n{"c":3}', [{"a": 1}, None, {"c": 3}]),
        ("a: |\n  x\n---\n  y\nb: 1\n", [{"a": "x\n"}, None]),
        ("a: 1\n...\nb: 1\n---\nc: 1", [None, {"c": 1}]),
        ("a: 1\n--- foo\nb: 2\n", [None, {"b": 2}]),
        ("---a\nb: 1\n", [None, {"b": 1}]),
        ("a: 1\n----\nb: 1", [None, {"b": 1}]),
        ("%YAML 1.1\n---\na: 1\n", [None, {"a": 1}]),
    ],
)
def test_documents_after_a_broken_one_are_read(text: str, found: list[JsonValue]) -> None:
    documents = list(parse_documents(text))
    assert [d.value for d in documents] == found
    assert [d.index for d in documents] == list(range(len(found)))
    assert all((d.error is None) == (d.value is not None) for d in documents)


@pytest.mark.parametrize("broken", [b"\xff\xfe", b"a: \xff", b'{"a": "\xff"}', b"a: \x07", b"\xc3"])
def test_bytes_that_are_not_text_break_only_their_document(broken: bytes) -> None:
    first, second, third = parse_documents(b"a: 1\n---\n" + broken + b"\n---\nb: 2\n")
    assert (first.value, second.value, third.value) == ({"a": 1}, None, {"b": 2})
    assert second.error is not None
    assert second.error.line == 3


def test_a_lone_surrogate_breaks_only_its_document() -> None:
    texts = ("a: \ud83d", 'a: "\\ud83d"', '{"a": "\\ud83d"}')
    for text in texts:
        first, second = parse_documents(f"{text}\n---\nb: 2\n")
        assert first.error is not None
        assert second.value == {"b": 2}


@pytest.mark.parametrize(
    ("text", "line", "column"),
    [
        ("a: b: c\n", 1, 5),
        ("a: 1\n---\nb: 1\n\tc: 1\n", 4, 1),
        ("a: .inf\n", 1, 4),
        ("x: 1\n---\na:\n  b: *unknown\n", 4, 6),
        ('{"a": 1}\n---\n\n{"b": 1} ]\n', 4, 10),
        ("a: 1\n---\nb: 1\n--- c\n", 4, 1),
        ("a: 1\n---\nb: \x07\n", 3, 4),
    ],
)
def test_an_error_names_line_and_column_in_the_whole_stream(
    text: str, line: int, column: int
) -> None:
    error = next(d.error for d in parse_documents(text) if d.error)
    assert (error.line, error.column) == (line, column)
    assert str(error) == f"line {line}, column {column}: {error.problem}"


@pytest.mark.parametrize(
    "text",
    [
        "password: *hunter2\n",
        "password: !!int hunter2\n",
        "password: !!binary hunter2!\n",
        "? [hunter2]\n: 1\n",
        "<<: hunter2\n",
        "password: 'hunter2\n",
        "password: hunter2: x\n",
        'password: "\\hunter2"\n',
        "password: !hunter2!x y\n",
        "--- hunter2\n",
        '{"password": "hunter2"} hunter2: x: y',
        "password: hunter2\x07\n",
        "%hunter2\n",
        "a: &hunter2 [*hunter2]\n",
        "a: @hunter2",
    ],
)
def test_an_error_never_quotes_the_document(text: str) -> None:
    error = next(d.error for d in parse_documents(text) if d.error)
    assert "hunter" not in str(error) + repr(error) + str(vars(error))


@pytest.mark.parametrize("text", ["a: 1", "---\na: 1\n", "# c\n---\na: 1\n---\n# d\n", b'{"a": 1}'])
def test_the_only_document_is_found_among_empty_ones(text: str | bytes) -> None:
    assert parse(text) == {"a": 1}


@pytest.mark.parametrize("text", ["", "# c", "---\n", "null", "---\n---\n# c"])
def test_an_empty_stream_has_no_value(text: str) -> None:
    assert parse(text) is None


def test_a_second_document_is_refused() -> None:
    with pytest.raises(YamlError, match="line 4, column 1: a second document starts here"):
        parse("a: 1\n---\n\nb: 1\n")


def test_a_broken_document_is_refused() -> None:
    with pytest.raises(YamlError, match="line 2"):
        parse("a: 1\n]\n")


def drained(text: str | bytes) -> int:
    """Read to the end, however broken; anything but a YamlError fails the test."""
    documents = list(parse_documents(text))
    assert [d.index for d in documents] == list(range(len(documents)))
    orjson.dumps([d.value for d in documents])
    return len(documents)


@pytest.mark.thorough("fuzz")
@given(st.binary(max_size=60))
def test_no_bytes_raise_an_unexpected_error(data: bytes) -> None:
    drained(data)


@pytest.mark.thorough("fuzz")
@given(st.text("a1:-?[]{},#&*!|>'\"%@`<=~.+_ \t\n\r\\\u00e9\u2028\ufeff", max_size=40))
def test_no_text_raises_an_unexpected_error(text: str) -> None:
    drained(text)


def test_ten_thousand_mutated_documents_end_in_a_value_or_an_error() -> None:
    chance = random.Random(7)  # noqa: S311 - the same documents in every run
    seeds = [
        CONFIG_MAPS.encode(),
        orjson.dumps({"a": [1.5, {"b": "c\n"}], "d": None}),
        b"a: &x {b: [1, 0o17]}\nc: {<<: *x, d: !!binary aGVsbG8=}\n---\n{}{}\n",
        b"? e\n: >-\n  f\n---\n- 'g'\n- {h: i}\n",
    ]
    pieces = [
        b"\n---\n",
        b": ",
        b"- ",
        b"[",
        b"}",
        b'"',
        b"\\u",
        b"\xff",
        b"\x00",
        b"*x",
        b"<<",
        b"|",
    ]
    read = 0
    for _ in range(10_000):
        data = bytearray(chance.choice(seeds))
        for _ in range(chance.randint(1, 4)):
            start = chance.randrange(len(data))
            end = start + chance.randrange(4)
            data[start:end] = chance.choice([b"", chance.choice(pieces), chance.randbytes(2)])
            data = data or bytearray(b"a")
        read += drained(bytes(data))
    assert read > 10_000
