"""Label selectors: as objects (`matchLabels`, `matchExpressions`), and as the API's query text.

A malformed selector is rejected, never treated as an empty one, which would select everything.
"""

import re
from collections import deque
from collections.abc import Iterator, Mapping
from typing import Final, NamedTuple

from pergola.api.object_names import name_problem
from pergola.api.objects import JsonObject
from pergola.kube.errors import KubeError

_FIELDS: Final = frozenset({"matchLabels", "matchExpressions"})
_OPERATORS: Final = ("In", "NotIn", "Exists", "DoesNotExist")
_TEXT_OPERATORS: Final = {"=": "=", "==": "=", "!=": "NotIn", "in": "In", "notin": "NotIn"}
_PUNCTUATION: Final = frozenset({"=", "==", "!=", "!", "(", ")", ",", "<", ">"})
_TOKEN: Final = re.compile(r"==|!=|[=!(),<>]|[^\s=!(),<>]+")
_NAME: Final = re.compile(r"[A-Za-z0-9](?:[A-Za-z0-9_.-]*[A-Za-z0-9])?")
_DOMAIN: Final = re.compile(
    r"[a-z0-9](?:[a-z0-9-]*[a-z0-9])?(?:\.[a-z0-9](?:[a-z0-9-]*[a-z0-9])?)*"
)
_FIELD_SPECIAL: Final = re.compile(r"[\\,=]")
_ESCAPED: Final = r"\\\g<0>"
_LONGEST_NAME: Final = 63
_LONGEST_DOMAIN: Final = 253


class SelectorError(KubeError):
    """A selector that the API server would reject; the text says why."""


class _Requirement(NamedTuple):
    key: str
    operator: str
    values: list[str]


def matches(selector: JsonObject, labels: Mapping[str, str]) -> bool:
    """Return whether labels fulfil all requirements; an empty selector matches everything.

    `NotIn` also matches labels without the key.

    Raises:
        SelectorError: the selector is malformed.
    """
    return all(_holds(requirement, labels) for requirement in _requirements(selector))


def is_empty(selector: JsonObject) -> bool:
    """Return whether the selector has no requirements, and so matches everything; never raises."""
    return not any(selector.values())


def format_selector(selector: JsonObject) -> str:
    """Format a selector for a query: `a=b,c in (x,y),!d`; empty for an empty selector.

    Raises:
        SelectorError: the selector is malformed, or contains text that is not valid in a label.
    """
    return ",".join(_formatted(_checked(requirement)) for requirement in _requirements(selector))


def select_name(name: str) -> str:
    """Return the field selector for the object with a name.

    Raises:
        SelectorError: no object can have this name.
    """
    if problem := name_problem(name):
        raise SelectorError(f"name {name!r} {problem}")
    return f"metadata.name={_FIELD_SPECIAL.sub(_ESCAPED, name)}"


def parse_selector(text: str) -> JsonObject:
    """Parse a query text into a selector; `a!=b` is `a notin (b)`.

    Blank text is the empty selector. The API's `a>1` and `a<1` have no object form.

    Raises:
        SelectorError: the text is not such a selector.
    """
    labels: dict[str, str] = {}
    expressions: list[JsonObject] = []
    for key, operator, values in _parsed(text):
        # Two values for one key match nothing, and only expressions can say that.
        if operator != "=" or labels.setdefault(key, values[0]) != values[0]:
            expression: JsonObject = {"key": key, "operator": "In" if operator == "=" else operator}
            expressions.append(expression | ({"values": values} if values else {}))
    selector: JsonObject = {"matchLabels": labels} if labels else {}
    return selector | ({"matchExpressions": expressions} if expressions else {})


def _requirements(selector: JsonObject) -> Iterator[_Requirement]:
    """Yield the requirements of a selector, in a stable order."""
    if unknown := selector.keys() - _FIELDS:
        raise SelectorError(f"a label selector has no field {min(unknown)!r}")
    labels = selector.get("matchLabels") or {}
    expressions = selector.get("matchExpressions") or []
    if not isinstance(labels, dict) or not isinstance(expressions, list):
        raise SelectorError("matchLabels must be a map, and matchExpressions a list")
    for key in sorted(labels):
        if not isinstance(labels[key], str):
            raise SelectorError(f"matchLabels[{key}]: must be a string; quote it")
        yield _Requirement(key, "=", [labels[key]])
    for index, expression in enumerate(expressions):
        yield _requirement(f"matchExpressions[{index}]", expression)


def _requirement(path: str, expression: object) -> _Requirement:
    if not isinstance(expression, dict) or not isinstance(expression.get("key"), str):
        raise SelectorError(f"{path}: must be a map with a key, an operator and values")
    key, operator, values = expression["key"], expression.get("operator"), expression.get("values")
    if operator not in _OPERATORS:
        raise SelectorError(f"{path}.operator: must be one of {', '.join(_OPERATORS)}")
    takes_values = operator in ("In", "NotIn")
    if bool(values) != takes_values:
        must = "must have an entry" if takes_values else "must be empty"
        raise SelectorError(f"{path}.values: {must} for the operator {operator}")
    if takes_values and not (isinstance(values, list) and all(isinstance(v, str) for v in values)):
        raise SelectorError(f"{path}.values: must be a list of strings")
    return _Requirement(key, operator, values or [])


def _holds(requirement: _Requirement, labels: Mapping[str, str]) -> bool:
    key, operator, values = requirement
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    return (labels.get(key) in values) == (operator != "NotIn")


def _formatted(requirement: _Requirement) -> str:
    key, operator, values = requirement
    if operator == "=":
        return f"{key}={values[0]}"
    if operator in ("In", "NotIn"):
        return f"{key} {operator.lower()} ({','.join(sorted(values))})"
    return key if operator == "Exists" else f"!{key}"


def _checked(requirement: _Requirement) -> _Requirement:
    """Reject invalid labels: a comma in a value would change the meaning."""
    domain, slash, name = requirement.key.rpartition("/")
    domain_fits = _DOMAIN.fullmatch(domain) and len(domain) <= _LONGEST_DOMAIN
    if not _fits(name) or (slash and not domain_fits):
        raise SelectorError(f'"{requirement.key}" cannot be a label key')
    for value in requirement.values:
        if value and not _fits(value):
            raise SelectorError(f'"{value}" cannot be a value of the label {requirement.key}')
    return requirement


def _fits(name: str) -> bool:
    return len(name) <= _LONGEST_NAME and _NAME.fullmatch(name) is not None


def _parsed(text: str) -> Iterator[_Requirement]:
    tokens = deque(_TOKEN.findall(text))
    more = bool(tokens)
    while more:
        yield _checked(_next_requirement(tokens, text))
        more = bool(tokens)
        if more and tokens.popleft() != ",":
            raise _malformed(text, "a comma is missing between two requirements")


def _next_requirement(tokens: deque[str], text: str) -> _Requirement:
    mark = _taken(tokens)
    key = _taken(tokens) if mark == "!" else mark
    if not key or key in _PUNCTUATION:
        raise _malformed(text, "a label key is missing")
    if mark == "!":
        return _Requirement(key, "DoesNotExist", [])
    if not tokens or tokens[0] == ",":
        return _Requirement(key, "Exists", [])
    operator = _taken(tokens)
    if operator not in _TEXT_OPERATORS:
        raise _malformed(
            text, f"a label key is followed by {', '.join(_TEXT_OPERATORS)} or a comma"
        )
    values = _set(tokens, text) if operator in ("in", "notin") else [_value(tokens)]
    return _Requirement(key, _TEXT_OPERATORS[operator], values)


def _set(tokens: deque[str], text: str) -> list[str]:
    if _taken(tokens) != "(":
        raise _malformed(text, "the values of in and notin must be in parentheses")
    values = [_value(tokens)]
    while (mark := _taken(tokens)) == ",":
        values.append(_value(tokens))
    if mark != ")":
        raise _malformed(text, "a set of values lacks its closing parenthesis, or a comma")
    return sorted(set(values))


def _value(tokens: deque[str]) -> str:
    """Return the next word; values may be empty."""
    return tokens.popleft() if tokens and tokens[0] not in _PUNCTUATION else ""


def _taken(tokens: deque[str]) -> str:
    return tokens.popleft() if tokens else ""


def _malformed(text: str, problem: str) -> SelectorError:
    return SelectorError(f'"{text}" is not a label selector: {problem}')
