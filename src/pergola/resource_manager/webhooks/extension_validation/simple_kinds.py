"""Kinds with simple rules: required and immutable fields (spec 12 §15.2)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from pergola.api.field_errors import IMMUTABLE, Cause, invalid, required, unsupported
from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.resource_manager.webhooks.extension_validation.findings import same_meaning, text_at

Profile = Literal["relaxed", "strict"]
"""The current rules, or the stricter ones of 2023 (spec 12 §18, D8)."""

Check = Callable[[JsonObject, Profile], Iterator[Cause]]
CheckUpdate = Callable[[JsonObject, JsonObject, Profile], Iterator[Cause]]
_PURPOSES: Final = ("normal", "exposure")


@dataclass(frozen=True, slots=True)
class Kind:
    """The rules of a kind.

    Attributes:
        word: the name of the kind in messages.
        check: validates a whole object.
        check_update: validates a change, from the new and the old object.
    """

    group: str
    kind: str
    plural: str
    word: str
    check: Check
    check_update: CheckUpdate
    namespaced: bool = True


def simple(
    needed: tuple[str, ...], frozen: tuple[str, ...], *extra: Check
) -> tuple[Check, CheckUpdate]:
    """Return checks of required strings and immutable values, by their paths below `spec`."""

    def check(obj: JsonObject, profile: Profile) -> Iterator[Cause]:
        spec = map_at(obj, "spec")
        yield from missing(spec, needed)
        for rule in extra:
            yield from rule(obj, profile)

    def check_update(new: JsonObject, old: JsonObject, _: Profile) -> Iterator[Cause]:
        yield from changed(new, old, frozen)

    return check, check_update


def missing(spec: JsonObject, paths: tuple[str, ...]) -> Iterator[Cause]:
    """Yield a finding for each path below `spec` that has no string."""
    for path in paths:
        if not text_at(spec, path):
            yield required(f"spec.{path}")


def changed(new: JsonObject, old: JsonObject, paths: tuple[str, ...]) -> Iterator[Cause]:
    """Yield a finding for each path below `spec` whose value changed."""
    for path in paths:
        now, before = _at(new, path), _at(old, path)
        if not same_meaning(now, before):
            yield invalid(f"spec.{path}", now, IMMUTABLE)


def check_bastion(obj: JsonObject, _: Profile) -> Iterator[Cause]:
    """Check that a Bastion allows ingress."""
    if not maps_at(obj, "spec", "ingress"):
        yield required("spec.ingress")


def check_control_plane(obj: JsonObject, profile: Profile) -> Iterator[Cause]:
    """Check the purpose of a ControlPlane; the relaxed profile accepts any."""
    purpose = map_at(obj, "spec").get("purpose")
    if profile == "strict" and purpose is not None and purpose not in _PURPOSES:
        yield unsupported("spec.purpose", purpose, _PURPOSES)


def check_control_plane_update(
    new: JsonObject, old: JsonObject, profile: Profile
) -> Iterator[Cause]:
    """Check the immutable fields of a ControlPlane, including the purpose in the strict profile."""
    paths = ("type", "region", "purpose") if profile == "strict" else ("type", "region")
    yield from changed(new, old, paths)


def _at(obj: JsonObject, path: str) -> JsonValue:
    value: JsonValue = map_at(obj, "spec")
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
