"""Network (spec 12 §15.4)."""

import ipaddress
from collections.abc import Iterator
from itertools import pairwise
from typing import Final

from pergola.admission.review import Cause
from pergola.api.objects import JsonObject, JsonValue, map_at
from pergola.resource_manager.webhooks.extension_validation.findings import (
    IMMUTABLE,
    duplicate,
    forbidden,
    invalid,
    required,
    unsupported,
)
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import (
    Profile,
    changed,
    missing,
)

_FAMILIES: Final = {"IPv4": 4, "IPv6": 6}
_RANGES: Final = ("podCIDR", "serviceCIDR")
_MAY_BECOME: Final[tuple[tuple[list[JsonValue], list[JsonValue]], ...]] = (
    ([], ["IPv4"]),
    (["IPv4"], ["IPv4", "IPv6"]),
    (["IPv4", "IPv6"], ["IPv4"]),
)

Range = ipaddress.IPv4Network | ipaddress.IPv6Network


def check_network(obj: JsonObject, profile: Profile) -> Iterator[Cause]:
    """What is wrong with a Network."""
    spec = map_at(obj, "spec")
    yield from missing(spec, ("type",))
    families = _families(spec)
    problems = list(_family_findings(families, profile))
    if problems:
        yield from problems
        return
    ranges: dict[str, Range] = {}
    for name in _RANGES:
        read = _range(spec, name, families, profile)
        if isinstance(read, Cause):
            yield read
        else:
            ranges[name] = read
    ignores_overlap = families == ["IPv6"] and profile == "relaxed"
    if len(ranges) == len(_RANGES) and not ignores_overlap:
        yield from _overlaps(spec, ranges)


def check_network_update(new: JsonObject, old: JsonObject, profile: Profile) -> Iterator[Cause]:
    """What is wrong with a change of a Network."""
    yield from changed(new, old, ("type", *_RANGES))
    now, before = _families(map_at(new, "spec")), _families(map_at(old, "spec"))
    if now == before:
        return
    if profile == "strict":
        if (before, now) != _MAY_BECOME[0]:
            yield invalid("spec.ipFamilies", now, IMMUTABLE)
    elif (before, now) not in _MAY_BECOME:
        yield forbidden(
            "spec.ipFamilies",
            "unsupported IP family update: "
            f"oldIPFamilies=[{_joined(before)}], newIPFamilies=[{_joined(now)}]",
        )


def _families(spec: JsonObject) -> list[JsonValue]:
    families = spec.get("ipFamilies")
    return families if isinstance(families, list) else []


def _family_findings(families: list[JsonValue], profile: Profile) -> Iterator[Cause]:
    for index, family in enumerate(families):
        if family not in _FAMILIES:
            yield unsupported(f"spec.ipFamilies[{index}]", family, _FAMILIES)
        elif family in families[:index]:
            yield duplicate(f"spec.ipFamilies[{index}]", family)
    if profile == "strict" and len(families) > 1:
        yield invalid("spec.ipFamilies", families, "dual-stack networking is not supported")


def _range(
    spec: JsonObject, name: str, families: list[JsonValue], profile: Profile
) -> Range | Cause:
    path, value = f"spec.{name}", spec.get(name)
    if not isinstance(value, str) or not value:
        return required(path)
    try:
        read = ipaddress.ip_network(value, strict=False)
    except ValueError:
        return invalid(path, value, f"invalid CIDR address: {value}")
    if "/" not in value:
        return invalid(path, value, f"invalid CIDR address: {value}")
    primary = str(families[0]) if families else "IPv4"
    if (len(families) < 2 or profile == "strict") and read.version != _FAMILIES[primary]:
        return invalid(path, value, f"must be a valid {primary} address")
    return read


def _overlaps(spec: JsonObject, ranges: dict[str, Range]) -> Iterator[Cause]:
    for first, second in pairwise(_RANGES):
        one, other = ranges[first], ranges[second]
        if one.version == other.version and one.overlaps(other):
            yield invalid(
                f"spec.{second}",
                spec[second],
                f'must not overlap with "spec.{first}" ("{spec[first]}")',
            )


def _joined(families: list[JsonValue]) -> str:
    return " ".join(map(str, families))
