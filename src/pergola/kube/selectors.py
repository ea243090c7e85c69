"""Label selectors, as objects (`matchLabels`, `matchExpressions`) and as the API's query text."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.kube.errors import KubeError

_OPERATORS: Final = frozenset({"In", "NotIn", "Exists", "DoesNotExist"})


class SelectorError(KubeError):
    """A selector that the API server would refuse; the text says why."""


def is_empty(selector: JsonObject) -> bool:
    """Whether the selector has no requirement, and so would match everything."""
    return not map_at(selector, "matchLabels") and not maps_at(selector, "matchExpressions")


def matches(selector: JsonObject, labels: Mapping[str, str]) -> bool:
    """Whether labels fulfil all requirements; an empty selector matches everything.

    Raises:
        SelectorError: an operator is unknown.
    """
    wanted = map_at(selector, "matchLabels")
    if any(labels.get(key) != value for key, value in wanted.items()):
        return False
    return all(_fulfils(e, labels) for e in maps_at(selector, "matchExpressions"))


def format_selector(selector: JsonObject) -> str:
    """The selector as the value of a `labelSelector` query.

    Raises:
        SelectorError: an operator is unknown.
    """
    parts = [f"{key}={value}" for key, value in sorted(map_at(selector, "matchLabels").items())]
    parts += [_format(expression) for expression in maps_at(selector, "matchExpressions")]
    return ",".join(parts)


def _fulfils(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    key, operator, values = _parts(expression)
    if operator == "Exists":
        return key in labels
    if operator == "DoesNotExist":
        return key not in labels
    return (labels.get(key) in values) == (operator == "In")


def _format(expression: JsonObject) -> str:
    key, operator, values = _parts(expression)
    if operator == "Exists":
        return key
    if operator == "DoesNotExist":
        return f"!{key}"
    return f"{key} {operator.lower()} ({','.join(values)})"


def _parts(expression: JsonObject) -> tuple[str, str, list[str]]:
    key, operator = str(expression.get("key") or ""), str(expression.get("operator") or "")
    if operator not in _OPERATORS:
        raise SelectorError(
            f"matchExpressions: operator {operator!r} of key {key!r} is none of "
            f"{', '.join(sorted(_OPERATORS))}"
        )
    values = expression.get("values")
    return key, operator, [str(v) for v in values] if isinstance(values, list) else []
