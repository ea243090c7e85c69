import json

import pytest

from pergola.api.objects import JsonValue
from pergola.kube.yaml import YamlError, parse

TRUE = ["y", "Y", "yes", "Yes", "YES", "on", "On", "ON", "true", "True", "TRUE"]
FALSE = ["n", "N", "no", "No", "NO", "off", "Off", "OFF", "false", "False", "FALSE"]


def is_same(one: object, other: object) -> bool:
    """Return whether values are equal with equal types: in Python `1 == 1.0 == True`."""
    return one == other and json.dumps(one, sort_keys=True) == json.dumps(other, sort_keys=True)


@pytest.mark.parametrize(
    ("text", "value"),
    [
        *[(word, True) for word in TRUE],
        *[(word, False) for word in FALSE],
        *[(word, None) for word in ("", "~", "null", "Null", "NULL")],
        *[(word, word) for word in ("tRUE", "oN", "nULL", "t", "f", "yess", "inf", "nan")],
    ],
)
def test_the_words_of_yaml_1_1_are_booleans_and_null(text: str, value: JsonValue) -> None:
    assert is_same(parse(f"a: {text}\n"), {"a": value})


@pytest.mark.parametrize(
    "text",
    [
        *("2001-12-14", "2026-01-01", "2001-12-14t21:59:43.10-05:00", "1:30", "190:20:30.15"),
        *("=", "<<", "0o8", "0b2", "0xg", "0x", "0b", "0o", "1e", "1e3.5", "0x1p3", "_1", "__"),
        *("-", "+", ".", "..", "-.", "+-1", "--1", "._1", "1,000", "1 2", "12abc", "1.2.3"),
        *("10.0.0.1", "1e400", "-1e400", "0xFFFFFFFFFFFFFFFFFF", "-0xFFFFFFFFFFFFFFFF"),
        *(
            ".iNF",
            "-.nan",
            "Infinity",
            "\u0661",
            "\uff11",
            "1\u0661",
            "1\u00a0",
            "~x",
            "a:b",
            "a#b",
        ),
    ],
)
def test_strings_that_resemble_numbers_or_dates_stay_strings(text: str) -> None:
    if text not in ("-", "<<"):
        assert is_same(parse(f"a: {text}\n"), {"a": text})
    assert is_same(parse(f"a: '{text}'\n"), {"a": text})


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("0", 0),
        ("-0", 0),
        ("+1", 1),
        ("0777", 511),
        ("-0777", -511),
        ("00", 0),
        ("0_7", 7),
        ("0o17", 15),
        ("0O17", 15),
        ("-0o7", -7),
        ("0b11", 3),
        ("0B1_1", 3),
        ("0x1F", 31),
        ("-0XFF", -255),
        ("08", 8),
        ("-08", -8),
        ("0008", 8),
        ("1_000", 1000),
        ("1_", 1),
        ("+_1", 1),
        ("1e3", 1000),
        ("1E+3", 1000),
        ("1.e3", 1000),
        ("12e03", 12000),
        ("1.0", 1),
        ("1.", 1),
        ("-0.0", 0),
        (".5", 0.5),
        ("-.5e1", -5),
        ("1.5", 1.5),
        ("08.5", 8.5),
        ("685_230.15", 685230.15),
        ("1e-7", 1e-07),
        ("1e-400", 0),
        ("9223372036854775807", 2**63 - 1),
        ("-9223372036854775808", -(2**63)),
        ("18446744073709551615", 2**64 - 1),
        ("18446744073709551616", float(2**64)),
        ("1e21", 1e21),
        ("0" * 5000 + "17", 15),
        ("1" + "0" * 200, 1e200),
    ],
)
def test_numbers_are_parsed_as_in_kubernetes(text: str, value: float) -> None:
    assert is_same(parse(f"a: {text}\n"), {"a": value})


@pytest.mark.parametrize("text", [".inf", "-.inf", "+.Inf", ".INF", ".nan", ".NaN", ".NAN"])
def test_values_that_json_lacks_are_errors_unless_quoted(text: str) -> None:
    assert "quote" in problem(f"a: {text}\n")
    assert parse(f'a: "{text}"\n') == {"a": text}


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("!!binary aGVsbG8=", "hello"),
        ("!!binary |\n  aGVs\n  bG8=", "hello"),
        ("!!binary /w==", "\ufffd"),
        ("!!str 1", "1"),
        ("!!str", ""),
        ("! 1", "1"),
        ("!!int '0x10'", 16),
        ("!!float 1", 1),
        ("!!float '1.5'", 1.5),
        ("!!bool 'yes'", True),
        ("!!null ''", None),
        ("!!timestamp 2001-12-14", "2001-12-14"),
        ("!own 1", "1"),
        ("!own {b: 1}", {"b": 1}),
        ("!!set {b, c}", {"b": None, "c": None}),
        ("!<tag:yaml.org,2002:int> '3'", 3),
    ],
)
def test_tags_determine_the_type(text: str, value: JsonValue) -> None:
    assert is_same(parse(f"a: {text}\n"), {"a": value})


@pytest.mark.parametrize(
    "text",
    ["!!int 1.5", "!!int x", "!!bool x", "!!null x", "!!float x", "!!int ''", "!!binary '*'"],
)
def test_a_value_that_does_not_fit_its_tag_is_an_error(text: str) -> None:
    tag = text.partition(" ")[0]
    assert tag in problem(f"a: {text}\n")


def test_annotations_that_look_like_dates_and_times_stay_strings() -> None:
    text = "metadata:\n  annotations: {a: 2001-12-14, b: 1:30}\n"
    assert parse(text) == {"metadata": {"annotations": {"a": "2001-12-14", "b": "1:30"}}}


def problem(text: str) -> str:
    with pytest.raises(YamlError) as raised:
        parse(text)
    return str(raised.value)
