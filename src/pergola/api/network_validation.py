"""Validation of Networks, for their webhook and for extensions (spec 40 §1.3)."""

from collections.abc import Iterator
from itertools import pairwise
from typing import Final, Literal

from pergola.api.field_errors import (
    IMMUTABLE,
    Cause,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from pergola.api.ip_ranges import Network, overlap, parse_network
from pergola.api.objects import JsonObject, JsonValue, map_at

Rules = Literal["relaxed", "strict"]
"""Today's rules, or the stricter ones of 2023 (spec 12 §18, D8)."""

_FAMILIES: Final = {"IPv4": 4, "IPv6": 6}
_RANGES: Final = ("podCIDR", "serviceCIDR")
_ONE: Final[list[JsonValue]] = ["IPv4"]
_BOTH: Final[list[JsonValue]] = ["IPv4", "IPv6"]


def check_network(obj: JsonObject, rules: Rules = "relaxed") -> Iterator[Cause]:
    """Return all findings about a Network, or only the one about an invalid family."""
    spec = map_at(obj, "spec")
    kind = spec.get("type")
    if not isinstance(kind, str) or not kind:
        yield required("spec.type")
    families = _families(spec)
    problems = list(_family_findings(families, rules))
    if problems:
        yield from problems
        return
    ranges: dict[str, Network] = {}
    for name in _RANGES:
        read = _range(spec, name, families, rules)
        if isinstance(read, Cause):
            yield read
        else:
            ranges[name] = read
    ignores_overlap = families == ["IPv6"] and rules == "relaxed"
    if len(ranges) == len(_RANGES) and not ignores_overlap:
        yield from _overlaps(spec, ranges)


def check_network_update(
    new: JsonObject, old: JsonObject, rules: Rules = "relaxed"
) -> Iterator[Cause]:
    """Return the findings about a change of a Network that is not being deleted.

    IPv4 is the default, so adding or removing exactly IPv4 is not a change.
    """
    now, before = map_at(new, "spec"), map_at(old, "spec")
    for name in ("type", *_RANGES):
        if (now.get(name) or None) != (before.get(name) or None):
            yield invalid(f"spec.{name}", now.get(name), IMMUTABLE)
    yield from _families_changed(_families(now), _families(before), rules)


def _families_changed(
    now: list[JsonValue], before: list[JsonValue], rules: Rules
) -> Iterator[Cause]:
    if rules == "strict":
        if now != before and (before, now) != ([], _ONE):
            yield invalid("spec.ipFamilies", now, IMMUTABLE)
    elif not _may_become(before or _ONE, now or _ONE):
        yield forbidden(
            "spec.ipFamilies",
            "unsupported IP family update: "
            f"oldIPFamilies=[{_joined(before)}], newIPFamilies=[{_joined(now)}]",
        )


def _may_become(before: list[JsonValue], now: list[JsonValue]) -> bool:
    return now == before or (before, now) in ((_ONE, _BOTH), (_BOTH, _ONE))


def _families(spec: JsonObject) -> list[JsonValue]:
    families = spec.get("ipFamilies")
    return families if isinstance(families, list) else []


def _family_findings(families: list[JsonValue], rules: Rules) -> Iterator[Cause]:
    for index, family in enumerate(families):
        if not isinstance(family, str) or family not in _FAMILIES:
            yield unsupported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        elif family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    if rules == "strict" and len(families) > 1:
        yield invalid("spec.ipFamilies", families, "dual-stack networking is not supported")


def _range(spec: JsonObject, name: str, families: list[JsonValue], rules: Rules) -> Network | Cause:
    path, value = f"spec.{name}", spec.get(name)
    if not isinstance(value, str) or not value:
        return required(path)
    try:
        read = parse_network(value)
    except ValueError:
        return invalid(path, value, f"invalid CIDR address: {value}")
    primary = str(families[0]) if families else "IPv4"
    if (len(families) < 2 or rules == "strict") and read.version != _FAMILIES[primary]:
        return invalid(path, value, f"must be a valid {primary} address")
    return read


def _overlaps(spec: JsonObject, ranges: dict[str, Network]) -> Iterator[Cause]:
    for first, second in pairwise(_RANGES):
        one, other = ranges[first], ranges[second]
        if overlap(one, other):
            yield invalid(
                f"spec.{second}",
                spec[second],
                f'must not overlap with "spec.{first}" ("{spec[first]}")',
            )


def _joined(families: list[JsonValue]) -> str:
    return " ".join(map(str, families))
