"""An evaluation of IAM policies, with the operators that our policies use."""

from collections.abc import Callable, Mapping
from fnmatch import fnmatchcase
from typing import Final

from pergola.api.objects import JsonObject

Context = Mapping[str, list[str]]
_OPERATORS: Final[Mapping[str, Callable[[list[str], list[str]], bool]]] = {
    "StringEquals": lambda found, expected: any(each in expected for each in found),
    "StringLike": lambda found, expected: any(_like(each, expected) for each in found),
    "ForAnyValue:StringLike": lambda found, expected: any(_like(each, expected) for each in found),
    "ForAllValues:StringLike": lambda found, expected: all(_like(each, expected) for each in found),
    "Null": lambda found, expected: expected == [str(not found).lower()],
}


def allows(policy: JsonObject, action: str, resource: str, context: Context) -> bool:
    """Return whether a policy allows an action on a resource.

    Args:
        resource: its type with the service, such as `ec2:instance/*`; `*` for all.
        context: the keys of conditions with their values.
    """
    return any(
        action in statement["Action"]
        and _applies(statement, resource)
        and _holds(statement.get("Condition", {}), context)
        for statement in policy["Statement"]
    )


def _applies(statement: JsonObject, resource: str) -> bool:
    if "NotResource" in statement:
        return not any(_covers(each, resource) for each in statement["NotResource"])
    return any(_covers(each, resource) for each in statement["Resource"])


def _covers(pattern: str, resource: str) -> bool:
    """Return whether a pattern of ARNs covers all resources of a type."""
    if pattern == "*":
        return True
    _, _, service, _, _, kind = pattern.split(":", 5)
    return fnmatchcase(resource, f"{service}:{kind}")


def _holds(condition: JsonObject, context: Context) -> bool:
    return all(
        _OPERATORS[operator](
            context.get(key, []), [expected] if isinstance(expected, str) else expected
        )
        for operator, keys in condition.items()
        for key, expected in keys.items()
    )


def _like(text: str, patterns: list[str]) -> bool:
    return any(fnmatchcase(text, each) for each in patterns)
