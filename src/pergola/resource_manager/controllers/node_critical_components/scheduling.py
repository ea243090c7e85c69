"""The rules by which the DaemonSet controller runs a pod on a Node, as pure functions.

A pod of the template would run there if the Node's name, labels and taints allow it (spec 11 §5.3).
Unreadable affinity terms match nothing, but never make the whole check fail.
"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from pergola.api.objects import JsonObject, map_at, maps_at

NO_SCHEDULE: Final = "NoSchedule"
NO_EXECUTE: Final = "NoExecute"
_KEEPING_AWAY: Final = frozenset({NO_SCHEDULE, NO_EXECUTE})
_INT64: Final = 2**63
_MOST_DIGITS: Final = 19

# The DaemonSet controller adds these tolerations to every pod.
_DAEMON_TOLERATIONS: Final = tuple(
    {"key": f"node.kubernetes.io/{name}", "operator": "Exists", "effect": effect}
    for name, effect in (
        ("not-ready", NO_EXECUTE),
        ("unreachable", NO_EXECUTE),
        ("disk-pressure", NO_SCHEDULE),
        ("memory-pressure", NO_SCHEDULE),
        ("pid-pressure", NO_SCHEDULE),
        ("unschedulable", NO_SCHEDULE),
    )
)
_HOST_NETWORK_TOLERATION: Final = {
    "key": "node.kubernetes.io/network-unavailable",
    "operator": "Exists",
    "effect": NO_SCHEDULE,
}


@dataclass(frozen=True, slots=True)
class Placement:
    """The scheduling constraints of a template's pods.

    Attributes:
        terms: The terms of the required node affinity, one of which must match; None without an
            affinity.
        tolerations: The tolerations, including those that every pod of a DaemonSet gets.
    """

    node_name: str
    node_selector: Mapping[str, str]
    terms: Sequence[JsonObject] | None
    tolerations: Sequence[JsonObject]


def placement_of(pod_spec: JsonObject) -> Placement:
    """Read the scheduling constraints from the pod spec of a DaemonSet's template."""
    required = map_at(pod_spec, "affinity", "nodeAffinity").get(
        "requiredDuringSchedulingIgnoredDuringExecution"
    )
    tolerations = [*maps_at(pod_spec, "tolerations"), *_DAEMON_TOLERATIONS]
    if pod_spec.get("hostNetwork"):
        tolerations.append(_HOST_NETWORK_TOLERATION)
    return Placement(
        node_name=pod_spec.get("nodeName") or "",
        node_selector=map_at(pod_spec, "nodeSelector"),
        terms=maps_at(required, "nodeSelectorTerms") if isinstance(required, dict) else None,
        tolerations=tolerations,
    )


def is_chosen(placement: Placement, node_name: str, labels: Mapping[str, str]) -> bool:
    """Return whether the node name, node selector and required affinity select a Node."""
    if placement.node_name not in ("", node_name):
        return False
    if any(labels.get(key) != value for key, value in placement.node_selector.items()):
        return False
    if placement.terms is None:
        return True
    return any(_term_matches(term, node_name, labels) for term in placement.terms)


def untolerated(
    tolerations: Sequence[JsonObject], taints: Iterable[JsonObject]
) -> list[JsonObject]:
    """Return the taints that repel a pod; `PreferNoSchedule` never does."""
    return [
        taint
        for taint in taints
        if taint.get("effect") in _KEEPING_AWAY and not is_tolerated(taint, tolerations)
    ]


def is_tolerated(taint: JsonObject, tolerations: Iterable[JsonObject]) -> bool:
    """Return whether one of the tolerations covers the taint."""
    return any(_tolerates(toleration, taint) for toleration in tolerations)


def _tolerates(toleration: JsonObject, taint: JsonObject) -> bool:
    effect, key = toleration.get("effect"), toleration.get("key")
    if effect and effect != taint.get("effect"):
        return False
    if key and key != taint.get("key"):
        return False
    operator = toleration.get("operator") or "Equal"
    if operator == "Equal":
        return (toleration.get("value") or "") == (taint.get("value") or "")
    return bool(operator == "Exists")


def _term_matches(term: JsonObject, node_name: str, labels: Mapping[str, str]) -> bool:
    """Return whether a term matches; one without requirements matches nothing."""
    expressions, fields = maps_at(term, "matchExpressions"), maps_at(term, "matchFields")
    if not expressions and not fields:
        return False
    return all(_expression_holds(e, labels) for e in expressions) and all(
        _field_holds(f, node_name) for f in fields
    )


def _expression_holds(expression: JsonObject, labels: Mapping[str, str]) -> bool:
    values = _values(expression)
    value = labels.get(expression.get("key") or "")
    match expression.get("operator"):
        case "In":
            return value in values
        case "NotIn":
            return bool(values) and value not in values
        case "Exists":
            return not values and value is not None
        case "DoesNotExist":
            return not values and value is None
        case "Gt" | "Lt" as operator:
            return _compares(operator, value, values)
    return False


def _compares(operator: str, value: str | None, values: Sequence[str]) -> bool:
    bound = _integer(values[0]) if len(values) == 1 else None
    number = _integer(value or "")
    if bound is None or number is None:
        return False
    return number > bound if operator == "Gt" else number < bound


def _field_holds(field: JsonObject, node_name: str) -> bool:
    """Return whether a field requirement matches; only the name with one value is supported."""
    values = _values(field)
    if field.get("key") != "metadata.name" or len(values) != 1:
        return False
    match field.get("operator"):
        case "In":
            return values[0] == node_name
        case "NotIn":
            return values[0] != node_name
    return False


def _values(requirement: Mapping[str, Any]) -> list[str]:
    values = requirement.get("values")
    return values if isinstance(values, list) else []


def _integer(text: str) -> int | None:
    """Parse a signed 64-bit integer in decimal digits as the API server does, or return None."""
    digits = text[1:] if text[:1] in ("-", "+") else text
    if not (digits.isascii() and digits.isdigit()):
        return None
    digits = digits.lstrip("0") or "0"
    if len(digits) > _MOST_DIGITS:
        return None  # Python refuses to parse thousands of digits
    number = int(f"-{digits}" if text.startswith("-") else digits)
    return number if -_INT64 <= number < _INT64 else None
