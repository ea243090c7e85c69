"""Numbers in live objects; missing or invalid values are replaced with a default."""

from pergola.api.objects import JsonObject, generation_of, map_at


def number(obj: JsonObject, *path: str, default: int = 0) -> int:
    """Return the integer at a path."""
    *parents, last = path
    value = map_at(obj, *parents).get(last)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def generation_problem(obj: JsonObject) -> str | None:
    """Return a problem if the controller has not observed the current generation, or None."""
    observed, generation = number(obj, "status", "observedGeneration"), generation_of(obj)
    if observed >= generation:
        return None
    return f"observed generation {observed} is behind generation {generation}"


def scaled(value: object, total: int) -> int:
    """Return a number, or a percentage of `total` rounded down; 0 for anything else."""
    if isinstance(value, int) and not isinstance(value, bool):
        return max(0, value)
    if not isinstance(value, str) or not value.endswith("%"):
        return 0
    digits = value[:-1]
    # The API server only accepts digits; the limit keeps absurdly long values cheap.
    if not (digits.isascii() and digits.isdigit() and len(digits) < 10):
        return 0
    return int(digits) * total // 100
