"""The live table of ManagedResources that `pergola up` shows."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from rich.table import Table

    from pergola.api.objects import JsonObject, Key

_CONDITIONS: Final = {"Applied": "True", "Healthy": "True", "Progressing": "False"}


def table(rows: list[tuple["Key", "JsonObject | None"]]) -> "Table":
    """Return the table of these ManagedResources with their conditions; None if one is absent."""
    from rich.table import Table

    table = Table(box=None, header_style="dim", pad_edge=False)
    for column in ("MANAGEDRESOURCE", "OBJECTS", "APPLIED", "HEALTHY", "PROGRESSING"):
        table.add_column(column)
    for key, resource in rows:
        states = [_condition(resource, f"Resources{what}") for what in _CONDITIONS]
        count = len(((resource or {}).get("status") or {}).get("resources") or [])
        cells = [_coloured(status, good) for status, _, good in states]
        table.add_row(str(key), str(count), *cells)
    return table


def reason(resource: "JsonObject | None") -> str:
    """Return in one line why a ManagedResource is not ready."""
    if resource is None:
        return "it does not exist"
    states = [_condition(resource, f"Resources{what}") for what in _CONDITIONS]
    why = next((message for status, message, good in states if status not in ("", good)), "")
    return " ".join(why.split()) or "it was not reconciled"


def _condition(resource: "JsonObject | None", kind: str) -> tuple[str, str, str]:
    """Return the status, the message, and the good status."""
    good = _CONDITIONS[kind.removeprefix("Resources")]
    for found in ((resource or {}).get("status") or {}).get("conditions") or []:
        if found.get("type") == kind:
            return found.get("status", ""), found.get("message", ""), good
    return "", "", good


def _coloured(status: str, good: str) -> str:
    if not status:
        return "[dim]…[/]"
    return f"[green]{status}[/]" if status == good else f"[yellow]{status}[/]"


def is_ready(resource: "JsonObject") -> bool:
    """Return whether everything is applied, healthy and rolled out."""
    from pergola.health import check_rolled_out

    return check_rolled_out(resource) is None
