"""Values of charts."""

from pergola.api.objects import JsonObject


def merge_values(values: JsonObject, over: JsonObject) -> JsonObject:
    """Return values overlaid with others: maps are merged at all depths, the rest is replaced."""
    merged = {**values}
    for name, value in over.items():
        below = merged.get(name)
        if isinstance(below, dict) and isinstance(value, dict):
            merged[name] = merge_values(below, value)
        else:
            merged[name] = value
    return merged
