"""Let administrators bypass the operator's webhooks in an emergency, by labelling an object.

The API server evaluates the label itself, in match conditions, so that it works even while no
operator runs. A selector would not do: it also matches the old state of an update, so that the
webhook would still judge the update that adds the label.
"""

from dataclasses import replace
from typing import Final

from pergola.admission import Webhook
from pergola.api import marks
from pergola.api.objects import JsonObject

_NAME: Final = "break-glass"


def respecting(webhook: Webhook) -> Webhook:
    """Return the webhook, with conditions that exclude objects with the label."""
    conditions = (*webhook.registration.match_conditions, *_conditions())
    registration = replace(webhook.registration, match_conditions=conditions)
    return replace(webhook, registration=registration)


def _conditions() -> tuple[JsonObject, ...]:
    """Return conditions on the new state of the object; for a deletion, on the old one."""
    new, old = _without_label("object"), _without_label("oldObject")
    return (
        {"name": f"{_NAME}.write", "expression": f"request.operation == 'DELETE' || {new}"},
        {"name": f"{_NAME}.deletion", "expression": f"request.operation != 'DELETE' || {old}"},
    )


def _without_label(variable: str) -> str:
    labels = f"{variable}.metadata.labels"
    label = f"'{marks.BREAK_GLASS}'"
    return f"!(has({labels}) && {label} in {labels} && {labels}[{label}] == 'true')"
