from collections.abc import Mapping

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.kube.selectors import (
    SelectorError,
    format_selector,
    is_empty,
    matches,
    parse_selector,
    select_name,
)


def expression(key: str, operator: str, *values: str) -> JsonObject:
    part: JsonObject = {"key": key, "operator": operator}
    return {"matchExpressions": [part | ({"values": list(values)} if values else {})]}


@pytest.mark.parametrize(
    ("selector", "labels", "verdict"),
    [
        ({}, {}, True),
        ({}, {"a": "b"}, True),
        ({"matchLabels": None, "matchExpressions": None}, {"a": "b"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "b", "c": "d"}, True),
        ({"matchLabels": {"a": "b"}}, {"a": "c"}, False),
        ({"matchLabels": {"a": ""}}, {}, False),
        ({"matchLabels": {"a": ""}}, {"a": ""}, True),
        ({"matchLabels": {"a": "b", "c": "d"}}, {"a": "b"}, False),
        (expression("a", "In", "x", "y"), {"a": "y"}, True),
        (expression("a", "In", "x", "y"), {"a": "z"}, False),
        (expression("a", "In", "x"), {}, False),
        (expression("a", "NotIn", "x"), {"a": "x"}, False),
        (expression("a", "NotIn", "x"), {"a": "y"}, True),
        (expression("a", "NotIn", "x"), {}, True),
        (expression("a", "Exists"), {"a": ""}, True),
        (expression("a", "Exists"), {"b": ""}, False),
        (expression("a", "DoesNotExist"), {"b": ""}, True),
        (expression("a", "DoesNotExist"), {"a": ""}, False),
        ({"matchLabels": {"a": "b"}} | expression("c", "Exists"), {"a": "b"}, False),
        ({"matchLabels": {"a": "b"}} | expression("c", "Exists"), {"a": "b", "c": ""}, True),
    ],
)
def test_labels_match_if_they_fulfil_every_requirement(
    selector: JsonObject, labels: Mapping[str, str], verdict: bool
) -> None:
    assert matches(selector, labels) is verdict


MALFORMED: list[tuple[JsonObject, str]] = [
    (expression("a", "Equals", "x"), r"matchExpressions\[0\].operator: must be one of In, NotIn"),
    (expression("a", "In"), r"matchExpressions\[0\].values: must have an entry"),
    (expression("a", "Exists", "x"), r"matchExpressions\[0\].values: must be empty"),
    ({"matchExpressions": [{"key": "a", "operator": "In", "values": "xyz"}]}, "list of strings"),
    ({"matchExpressions": [{"key": "a", "operator": "In", "values": [1]}]}, "list of strings"),
    ({"matchExpressions": [{"operator": "Exists"}]}, r"matchExpressions\[0\]: must be a map"),
    ({"matchExpressions": ["a"]}, r"matchExpressions\[0\]: must be a map"),
    ({"matchExpressions": {"key": "a"}}, "matchExpressions a list"),
    ({"matchLabels": ["a"]}, "matchLabels must be a map"),
    ({"matchLabels": {"a": 1}}, r"matchLabels\[a\]: must be a string"),
    ({"app": "x"}, "has no field 'app'"),
]


@pytest.mark.parametrize(("selector", "problem"), MALFORMED)
def test_a_malformed_selector_is_never_read_as_one_that_selects_everything(
    selector: JsonObject, problem: str
) -> None:
    assert not is_empty(selector)
    with pytest.raises(SelectorError, match=problem):
        matches(selector, {"a": "x"})
    with pytest.raises(SelectorError, match=problem):
        format_selector(selector)


@pytest.mark.parametrize(
    "selector", [{}, {"matchLabels": {}}, {"matchLabels": None, "matchExpressions": []}]
)
def test_a_selector_without_requirements_is_empty(selector: JsonObject) -> None:
    assert is_empty(selector)
    assert format_selector(selector) == ""


@pytest.mark.parametrize("selector", [{"matchLabels": {"a": "b"}}, expression("a", "Exists")])
def test_a_selector_with_a_requirement_is_not_empty(selector: JsonObject) -> None:
    assert not is_empty(selector)


@pytest.mark.parametrize(
    ("selector", "text"),
    [
        ({"matchLabels": {"b": "1", "a": "2"}}, "a=2,b=1"),
        ({"matchLabels": {"a": ""}}, "a="),
        (expression("a", "In", "y", "x"), "a in (x,y)"),
        (expression("a", "NotIn", "x"), "a notin (x)"),
        (expression("a", "Exists"), "a"),
        (expression("a", "DoesNotExist"), "!a"),
        ({"matchLabels": {"a": "b"}} | expression("c", "In", "d"), "a=b,c in (d)"),
    ],
)
def test_a_selector_is_written_in_the_syntax_of_the_api(selector: JsonObject, text: str) -> None:
    assert format_selector(selector) == text


@pytest.mark.parametrize(
    "selector",
    [
        {"matchLabels": {"a": "b,c"}},
        {"matchLabels": {"a,b": "c"}},
        {"matchLabels": {"a": "x" * 64}},
        {"matchLabels": {"A.com/b": "c"}},
        {"matchLabels": {"a.b/c/d": "e"}},
        {"matchLabels": {"/a": "b"}},
        {"matchLabels": {"a/": "b"}},
        {"matchLabels": {"a": "b\n"}},
        expression("a", "In", "x) or (y"),
        expression("", "Exists"),
    ],
)
def test_invalid_labels_are_not_written(selector: JsonObject) -> None:
    with pytest.raises(SelectorError, match="cannot be a"):
        format_selector(selector)


@pytest.mark.parametrize(
    ("text", "selector"),
    [
        ("", {}),
        ("  ", {}),
        ("a=b", {"matchLabels": {"a": "b"}}),
        ("a==b", {"matchLabels": {"a": "b"}}),
        (" a = b , c ", {"matchLabels": {"a": "b"}} | expression("c", "Exists")),
        ("a=", {"matchLabels": {"a": ""}}),
        ("a!=b", expression("a", "NotIn", "b")),
        ("a in (y,x,x)", expression("a", "In", "x", "y")),
        ("a in(x)", expression("a", "In", "x")),
        ("a in ()", expression("a", "In", "")),
        ("a in (x,)", expression("a", "In", "", "x")),
        ("a notin (x)", expression("a", "NotIn", "x")),
        ("!a", expression("a", "DoesNotExist")),
        ("! a", expression("a", "DoesNotExist")),
        ("in", expression("in", "Exists")),
        ("in in (in)", expression("in", "In", "in")),
        ("a=in", {"matchLabels": {"a": "in"}}),
        ("x.y/z=1,a=b", {"matchLabels": {"x.y/z": "1", "a": "b"}}),
        ("a=b,a=b", {"matchLabels": {"a": "b"}}),
        ("a=b,a=c", {"matchLabels": {"a": "b"}} | expression("a", "In", "c")),
    ],
)
def test_a_query_is_parsed_as_by_the_api(text: str, selector: JsonObject) -> None:
    assert parse_selector(text) == selector


@pytest.mark.parametrize(
    "text",
    [
        *("a,", ",a", "a,,b", ",", "a in x", "a in (x", "a in", "a in (x y)", "a = b c", "a)"),
        *("!a=b", "!", "a!", "a!b", "=b", "a==b=c", "a exists", "a>1", "a<1", "a in (x),", "(a)"),
        *("-a=b", "a=-b", "a=\u00e9", "a='x'", "/a=b", "a/=b", "X.com/y=z", "a" * 64),
    ],
)
def test_selectors_that_the_api_would_refuse_are_refused(text: str) -> None:
    with pytest.raises(SelectorError):
        parse_selector(text)


NAMES = st.from_regex(r"[a-z0-9]([a-z0-9._-]{0,4}[a-z0-9])?", fullmatch=True)
VALUES = NAMES | st.just("")
EXPRESSIONS = st.builds(
    lambda key, operator, values: expression(key, operator, *values)["matchExpressions"][0],
    NAMES,
    st.sampled_from(["In", "NotIn"]),
    st.lists(VALUES, min_size=1, max_size=3, unique=True).map(sorted),
) | st.builds(
    lambda key, operator: expression(key, operator)["matchExpressions"][0],
    NAMES,
    st.sampled_from(["Exists", "DoesNotExist"]),
)
SELECTORS = st.fixed_dictionaries(
    {},
    optional={
        "matchLabels": st.dictionaries(NAMES, VALUES, min_size=1, max_size=3),
        "matchExpressions": st.lists(EXPRESSIONS, min_size=1, max_size=3),
    },
)


@given(SELECTORS)
def test_written_text_parses_to_the_same_value(selector: JsonObject) -> None:
    assert parse_selector(format_selector(selector)) == selector


@given(SELECTORS, st.dictionaries(NAMES, VALUES, max_size=3))
def test_a_selector_matches_if_all_its_parts_match(
    selector: JsonObject, labels: dict[str, str]
) -> None:
    parts: list[JsonObject] = [
        {"matchLabels": {key: value}} for key, value in selector.get("matchLabels", {}).items()
    ] + [{"matchExpressions": [part]} for part in selector.get("matchExpressions", [])]
    assert matches(selector, labels) == all(matches(part, labels) for part in parts)


@pytest.mark.thorough("fuzz")
@given(st.text("ab=!,() in\tnotx<>-", max_size=12) | st.text(max_size=6))
def test_no_text_raises_an_unexpected_error(text: str) -> None:
    try:
        selector = parse_selector(text)
    except SelectorError:
        return
    assert parse_selector(format_selector(selector)) == selector


@pytest.mark.parametrize(
    ("name", "text"), [("a", "a"), ("a.b-c", "a.b-c"), ("a,b=c", r"a\,b\=c"), ("a\\b", r"a\\b")]
)
def test_a_name_selects_one_object(name: str, text: str) -> None:
    assert select_name(name) == f"metadata.name={text}"


@pytest.mark.parametrize("name", ["", ".", "..", "a/b", "a%b"])
def test_an_invalid_name_selects_nothing(name: str) -> None:
    with pytest.raises(SelectorError):
        select_name(name)
