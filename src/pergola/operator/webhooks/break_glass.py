"""Emergencies: API servers do not call the operator's webhooks for objects with a label.

The API server decides it alone, by match conditions: the label works while no operator runs. A
selector would not do, because an update is selected by its old state, too: the label could not be
added.
"""

from dataclasses import replace
from typing import Final

from pergola.admission import Webhook
from pergola.api import marks
from pergola.api.objects import JsonObject

_NAME: Final = "break-glass"


def respecting(webhook: Webhook) -> Webhook:
    """Return a webhook that is not called for objects with the label."""
    conditions = (*webhook.registration.match_conditions, *_conditions())
    registration = replace(webhook.registration, match_conditions=conditions)
    return replace(webhook, registration=registration)


def _conditions() -> tuple[JsonObject, ...]:
    """Return the conditions: of a deletion the old state counts, of everything else the new one."""
    new, old = _without_label("object"), _without_label("oldObject")
    return (
        {"name": f"{_NAME}.write", "expression": f"request.operation == 'DELETE' || {new}"},
        {"name": f"{_NAME}.deletion", "expression": f"request.operation != 'DELETE' || {old}"},
    )


def _without_label(variable: str) -> str:
    labels = f"{variable}.metadata.labels"
    label = f"'{marks.BREAK_GLASS}'"
    return f"!(has({labels}) && {label} in {labels} && {labels}[{label}] == 'true')"
