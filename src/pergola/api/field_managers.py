"""The field managers of objects: who wrote to them, and when."""

from collections.abc import Mapping
from typing import Any

from pergola.api.objects import maps_at


def writers(obj: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Return the field managers of an object, each with the time of its last write."""
    found: dict[str, str] = {}
    for entry in maps_at(obj, "metadata", "managedFields"):
        part = "/status" if entry.get("subresource") == "status" else ""
        name = f"{entry.get('manager', 'unknown')}{part}"
        found[name] = max(found.get(name, ""), str(entry.get("time", "")))
    return sorted(found.items(), key=lambda item: item[1], reverse=True)
