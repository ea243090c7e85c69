"""The merge patches of the status of an extension resource; pure (spec 40 §2.4).

Only these functions write `lastOperation`, `lastError`, `observedGeneration` and
`observedTimestamp`; the fields returned by an actuator are merged into the patch with the outcome,
so that both appear together.
"""

from collections.abc import Iterable, Sequence
from datetime import datetime
from typing import Final

from pergola.api.conditions import timestamp
from pergola.api.objects import JsonObject, generation_of, map_at
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extension_api.predicates import request_of
from pergola.extensions.actuator import Status
from pergola.extensions.lifecycle.operation import VERBS, Operation
from pergola.kube.patches import merge_patch, same

OWN_FIELDS: Final = frozenset(
    {"lastOperation", "lastError", "conditions", "observedGeneration", "observedTimestamp"}
)
LONGEST: Final = 10_000
"""The maximum length of a description: a longer one could make an object too large."""


def processing(obj: JsonObject, operation: Operation, kind: str, now: datetime) -> JsonObject:
    """Return the patch for the start of the work."""
    description = f"{VERBS[operation].doing.capitalize()} the {kind}"
    return _operation(operation, "Processing", 1, description, now) | _echo(obj)


def progressing(percent: int, description: str, now: datetime) -> JsonObject:
    """Return the patch for progress; the type and state of the operation are unchanged."""
    fields = {
        "progress": percent,
        "description": _cut(description),
        "lastUpdateTime": timestamp(now),
    }
    return {"lastOperation": fields}


def failed(
    obj: JsonObject,
    operation: Operation,
    kind: str,
    text: str,
    codes: Sequence[Code],
    now: datetime,
) -> JsonObject:
    """Return the patch for a failure.

    Args:
        text: the error message.
    """
    description = _cut(upper_first(f"Error {VERBS[operation].doing} {kind}: {text}"))
    error: JsonObject = {
        "description": description,
        # A merge patch would keep the codes of an earlier error.
        "codes": list(map(str, codes)) or None,
        "lastUpdateTime": timestamp(now),
    }
    return {
        **_operation(operation, "Error", 50, description, now),
        "observedGeneration": generation_of(obj),
        "lastError": error,
    } | _echo(obj)


def succeeded(
    obj: JsonObject, operation: Operation, kind: str, fields: Status | None, now: datetime
) -> JsonObject:
    """Return the patch for a success.

    Args:
        obj: the processed object, with its current status.
        fields: the status fields that the actuator returned.

    Raises:
        ExtensionError: a field does not belong to the actuator.
    """
    description = f"Successfully {VERBS[operation].done} {kind}"
    return {
        **changes(obj, fields or {}),
        **_operation(operation, "Succeeded", 100, description, now),
        "observedGeneration": generation_of(obj),
        "lastError": None,
    } | _echo(obj)


def changes(obj: JsonObject, fields: Status) -> JsonObject:
    """Return the patch that sets the fields of `fields` in the status; None removes a field.

    Raises:
        ExtensionError: a field does not belong to the actuator.
    """
    _check_fields(fields)
    status = map_at(obj, "status")
    patch: JsonObject = {}
    for name, value in fields.items():
        before = status.get(name)
        if same(before, value):
            continue
        if isinstance(before, dict) and isinstance(value, dict):
            patch[name] = merge_patch(before, value)
        else:
            patch[name] = value
    return patch


def upper_first(text: str) -> str:
    """Return the text with its first letter in upper case."""
    return text[:1].upper() + text[1:]


def describe(error: BaseException) -> str:
    """Return the text of an error, prefixed with the type if it is unexpected."""
    if isinstance(error, BaseExceptionGroup):
        return "; ".join(map(describe, error.exceptions))
    text = str(error)
    if not text:
        return type(error).__name__
    return text if _is_sentence(error) else f"{type(error).__name__}: {text}"


def _is_sentence(error: BaseException) -> bool:
    """Return whether the text is meant for people, as in our errors and those of the system."""
    return isinstance(error, OSError) or any(
        kind.__module__.startswith("pergola.") for kind in type(error).__mro__
    )


def _operation(
    operation: Operation, state: str, progress: int, description: str, now: datetime
) -> JsonObject:
    return {
        "lastOperation": {
            "type": str(operation),
            "state": state,
            "progress": progress,
            "description": description,
            "lastUpdateTime": timestamp(now),
        }
    }


def _echo(obj: JsonObject) -> JsonObject:
    """Return the field that identifies the request exactly (spec 40, Beyond 7)."""
    timestamp_of_request = request_of(obj).timestamp
    if not timestamp_of_request and "observedTimestamp" not in map_at(obj, "status"):
        return {}
    return {"observedTimestamp": timestamp_of_request or None}


def _check_fields(names: Iterable[str]) -> None:
    foreign = sorted(OWN_FIELDS.intersection(names))
    if foreign:
        raise ExtensionError(
            f"the actuator sets status.{', status.'.join(foreign)}, which the SDK writes; it may "
            "set providerStatus, state, resources and the fields of its kind"
        )


def _cut(text: str) -> str:
    return text if len(text) <= LONGEST else f"{text[: LONGEST - 1]}…"
