"""Valid objects with a few odd values, such as people write by mistake."""

import copy
from collections.abc import Iterator, Sequence
from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from pergola.api.objects import JsonObject, JsonValue

Path = tuple[str | int, ...]
"""The keys and indexes that lead to a value."""

_TEXTS: Final = (
    *("", "a", "b", "A", "a_b", "-a", "a.b", ".a", "a.", "a..b", " a", "a b", "ä", "x" * 64),
    *("x" * 254, "true", "0", "1", "-1", "10", "65536", "1.5", "1Gi", "0.5", "10%"),
    *("10.0.0.0/8", "10.0.0.1/8", "10.0.0.0/33", "10.0.0.1", "010.0.0.1", "::1", "2001:db8::/32"),
    *("1.2.3.4.5", "fe80::1%eth0", "example.com", "*.example.com", "_a.example.com", "EXAMPLE.com"),
    *("http://example.com", "https://example.com/a?b#c", "https://", "unix:///a", "/a", "../a"),
)
_NUMBERS: Final = (0, -1, 1, 2, 80, 65535, 65536, 2**31 - 1, 2**31, 2**40)
_REMOVED: Final = object()


def changed(
    base: JsonObject, *, most: int = 3, texts: Sequence[str] = (), keep: Sequence[Path] = ()
) -> SearchStrategy[JsonObject]:
    """Return the object with up to `most` of its values removed or replaced.

    Values keep their JSON type, as anything else is refused before a validation sees it. Fields
    at the top, such as `metadata` and `spec`, stay.

    Args:
        texts: texts that may be of interest in this object, in addition to the usual ones.
        keep: paths that never change, with everything below.
    """
    paths = [
        path
        for path in _paths(base)
        if len(path) > 1 and not any(path[: len(kept)] == kept for kept in keep)
    ]
    places = st.lists(st.sampled_from(paths), max_size=most, unique=True)
    return places.flatmap(lambda chosen: _with(base, chosen, texts))


def _with(
    base: JsonObject, places: Sequence[Path], texts: Sequence[str]
) -> SearchStrategy[JsonObject]:
    values = st.tuples(*(_value(_at(base, place), texts) for place in places))

    def apply(found: tuple[Any, ...]) -> JsonObject:
        obj = copy.deepcopy(base)
        # From the end, because a removal moves later elements.
        for place, value in sorted(zip(places, found, strict=True), key=_order, reverse=True):
            _replace(obj, place, value)
        return obj

    return values.map(apply)


def _value(present: JsonValue, texts: Sequence[str]) -> SearchStrategy[Any]:
    removed = st.just(_REMOVED)
    if isinstance(present, bool):
        return removed | st.just(not present)
    if isinstance(present, str):
        return removed | st.sampled_from([*texts, *_TEXTS])
    if isinstance(present, int):
        return removed | st.sampled_from(_NUMBERS)
    if isinstance(present, list):
        twice = [present + present[:1], [*present, *present]]
        return removed | st.sampled_from([[], *twice])
    return removed | st.just({})


def _paths(value: JsonValue, above: Path = ()) -> Iterator[Path]:
    if above:
        yield above
    steps: Iterator[tuple[str | int, JsonValue]] = iter(())
    if isinstance(value, dict):
        steps = iter(value.items())
    elif isinstance(value, list):
        steps = iter(enumerate(value))
    for step, below in steps:
        yield from _paths(below, (*above, step))


def _at(value: Any, path: Path) -> JsonValue:
    for step in path:
        value = value[step]
    found: JsonValue = value
    return found


def _replace(obj: Any, path: Path, value: Any) -> None:
    *above, last = path
    try:
        for step in above:
            obj = obj[step]
        if value is _REMOVED:
            del obj[last]
        else:
            obj[last] = copy.deepcopy(value)
    except (KeyError, IndexError, TypeError):
        pass  # a value above it was replaced or removed


def _order(change: tuple[Path, Any]) -> list[tuple[int, int, str]]:
    path, _ = change
    return [(0, s, "") if isinstance(s, int) else (1, 0, s) for s in path]
