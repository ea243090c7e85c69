"""Numbers in live objects; what is missing or no number reads as a default."""

from decimal import ROUND_FLOOR, Decimal, InvalidOperation

from pergola.api.objects import JsonObject, generation_of, map_at


def number(obj: JsonObject, *path: str, default: int = 0) -> int:
    """The integer at a path."""
    *parents, last = path
    value = map_at(obj, *parents).get(last)
    return value if isinstance(value, int) and not isinstance(value, bool) else default


def generation_problem(obj: JsonObject) -> str | None:
    """Whether the controller of the object has not seen its present generation yet."""
    observed, generation = number(obj, "status", "observedGeneration"), generation_of(obj)
    if observed >= generation:
        return None
    return f"observed generation {observed} is behind generation {generation}"


def scaled(value: object, total: int) -> int:
    """A number, or a percentage of `total` rounded down; 0 for anything else."""
    if isinstance(value, bool):
        return 0
    if isinstance(value, int):
        return value
    if isinstance(value, str) and value.endswith("%"):
        try:
            share = Decimal(value[:-1]) * total / 100
            return int(share.to_integral_value(ROUND_FLOOR))
        except (InvalidOperation, ValueError, OverflowError):
            return 0
    return 0
