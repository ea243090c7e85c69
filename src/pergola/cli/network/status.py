"""How `pergola network status` shows a Network."""

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject


def described(obj: "JsonObject", problem: str, hint: str) -> "JsonObject":
    """What programs are told of a Network: why it is not ready, and what its extension reports."""
    from pergola.api.objects import Key, map_at, maps_at

    spec, reported = map_at(obj, "spec"), map_at(obj, "status")
    return {
        "name": str(Key.of(obj)),
        "type": spec.get("type"),
        "ready": not problem,
        "problem": problem or None,
        "hint": hint or None,
        "ipFamilies": reported.get("ipFamilies") or [],
        "lastOperation": reported.get("lastOperation"),
        "lastError": reported.get("lastError"),
        "conditions": maps_at(reported, "conditions"),
        "providerStatus": reported.get("providerStatus"),
    }


def print_table(told: "JsonObject") -> None:
    """Prints what `described` returned for people."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(title=f"Network {told['name']}", title_justify="left", show_header=False)
    operation, error = told["lastOperation"] or {}, told["lastError"] or {}
    rows = {
        "type": told["type"],
        "ready": "yes" if told["ready"] else f"no: {told['problem']}",
        "why": told["hint"] or "",
        "last operation": _operation(operation),
        "last error": error.get("description") or "",
        "codes": ", ".join(error.get("codes") or ()),
        "IP families": ", ".join(told["ipFamilies"]),
    }
    rows |= {c["type"]: f"{c.get('status')}: {c.get('message')}" for c in told["conditions"]}
    for label, value in rows.items():
        if value:
            table.add_row(label, Text(value))
    Console(highlight=False).print(table)


def print_json(value: "JsonObject") -> None:
    """Prints a value for programs."""
    import orjson

    print(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def _operation(operation: "JsonObject") -> str:
    if not operation:
        return "none"
    done = f"{operation.get('type')} {operation.get('state')}, {operation.get('progress')}%"
    return f"{done} at {operation.get('lastUpdateTime')}: {operation.get('description')}"
