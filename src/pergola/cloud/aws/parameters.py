"""Parameters of requests, which must not affect more than they name.

An empty id, list or filter means "all" to many operations: `DescribeVpcs(VpcIds=[])` describes
every VPC, `DeleteTags(Tags=[])` removes every tag. Such requests are never sent. `*` and `?` in the
value of a filter match any text unless they are escaped, so they are.
"""

from collections.abc import Iterator, Mapping
from typing import Any, Final

from pergola.api.objects import JsonObject
from pergola.cloud.errors import InvalidRequest

CODE: Final = "EmptyParameter"
_FILTERS: Final = ("Filters", "Filter")
_TAG: Final = "tag:"
_TAGS: Final = "Tags"
_CREATE: Final = (
    "Add",
    "Allocate",
    "Associate",
    "Attach",
    "Authorize",
    "Create",
    "Import",
    "Modify",
    "Put",
    "Run",
)
"""These operations accept empty properties, but no empty id, name or `Resources`."""
_RESOURCES: Final = "Resources"
_IDENTIFIES: Final = ("Id", "Ids", "Arn", "Arns", "Name", "Names", _RESOURCES)
_ESCAPED: Final = str.maketrans({"\\": r"\\", "*": r"\*", "?": r"\?"})


def checked(call: str, operation: str, parameters: Mapping[str, Any]) -> JsonObject:
    """Return the parameters to send, with nothing empty and with filters that match literally.

    Args:
        call: the request for errors, such as `ec2 DescribeVpcs in eu-west-1`.

    Raises:
        InvalidRequest: an empty value would widen the request; it must not be sent.
    """
    faults = list(_faults(operation, parameters))
    if faults:
        text = f"{call}: {'; '.join(faults)}: the request was not sent, as it could affect too much"
        raise InvalidRequest(text, code=CODE, call=call)
    return {
        name: [_literal(each) for each in value] if name in _FILTERS else value
        for name, value in parameters.items()
    }


def _faults(operation: str, parameters: Mapping[str, Any]) -> Iterator[str]:
    for name, value in parameters.items():
        if name in _FILTERS:
            yield from _filter_faults(name, value)
        elif operation.startswith(_CREATE) and _may_be_empty(name, value):
            continue
        elif _is_empty(value):
            yield f"{name} is empty"
        elif name == _TAGS and any(_is_empty(tag.get("Key")) for tag in value):
            yield f"{name} has a tag without a key"


def _may_be_empty(name: str, value: object) -> bool:
    return not name.endswith(_IDENTIFIES) or (value == [] and name != _RESOURCES)


def _filter_faults(name: str, filters: list[JsonObject]) -> Iterator[str]:
    if not filters:
        yield f"{name} is empty"
    for each in filters:
        by, values = str(each.get("Name") or ""), each.get("Values") or []
        if by in ("", _TAG):
            yield f"{name} has one without a name"
        # Only tags may have an empty value.
        elif not values or not (by.startswith(_TAG) or all(values)):
            yield f"filter {by} has no value"


def _is_empty(value: object) -> bool:
    if isinstance(value, list | tuple):
        return not value or any(_is_empty(each) for each in value)
    return value is None or value in ("", b"")


def _literal(condition: JsonObject) -> JsonObject:
    return {**condition, "Values": [str(each).translate(_ESCAPED) for each in condition["Values"]]}
