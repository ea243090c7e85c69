"""Kinds whose rules are: these fields must be there, and those may not change (spec 12 §15.2)."""

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import Final, Literal

from pergola.api.field_errors import IMMUTABLE, Cause, invalid, required, unsupported
from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.resource_manager.webhooks.extension_validation.findings import same_meaning, text_at

Profile = Literal["relaxed", "strict"]
"""Today's rules, or the stricter ones of 2023 (spec 12 §18, D8)."""

Check = Callable[[JsonObject, Profile], Iterator[Cause]]
CheckUpdate = Callable[[JsonObject, JsonObject, Profile], Iterator[Cause]]
_PURPOSES: Final = ("normal", "exposure")


@dataclass(frozen=True, slots=True)
class Kind:
    """The rules of a kind.

    Attributes:
        word: what an object is called in messages.
        check: what must hold of an object; asked with the whole object.
        check_update: what must hold of a change; asked with the new and the old object.
    """

    group: str
    kind: str
    plural: str
    word: str
    check: Check
    check_update: CheckUpdate
    namespaced: bool = True


def simple(
    needed: tuple[str, ...], frozen: tuple[str, ...], *further: Check
) -> tuple[Check, CheckUpdate]:
    """Check that some texts are there, and that some values stay; paths are below `spec`."""

    def check(obj: JsonObject, profile: Profile) -> Iterator[Cause]:
        spec = map_at(obj, "spec")
        yield from missing(spec, needed)
        for rule in further:
            yield from rule(obj, profile)

    def check_update(new: JsonObject, old: JsonObject, _: Profile) -> Iterator[Cause]:
        yield from changed(new, old, frozen)

    return check, check_update


def missing(spec: JsonObject, paths: tuple[str, ...]) -> Iterator[Cause]:
    """Return a finding for each path below `spec` at which there is no text."""
    for path in paths:
        if not text_at(spec, path):
            yield required(f"spec.{path}")


def changed(new: JsonObject, old: JsonObject, paths: tuple[str, ...]) -> Iterator[Cause]:
    """Return a finding for each path below `spec` whose value is another one now."""
    for path in paths:
        now, before = _at(new, path), _at(old, path)
        if not same_meaning(now, before):
            yield invalid(f"spec.{path}", now, IMMUTABLE)


def check_bastion(obj: JsonObject, _: Profile) -> Iterator[Cause]:
    """Return a Bastion lets somebody in."""
    if not maps_at(obj, "spec", "ingress"):
        yield required("spec.ingress")


def check_control_plane(obj: JsonObject, profile: Profile) -> Iterator[Cause]:
    """A purpose was checked as long as there was one."""
    purpose = map_at(obj, "spec").get("purpose")
    if profile == "strict" and purpose is not None and purpose not in _PURPOSES:
        yield unsupported("spec.purpose", purpose, _PURPOSES)


def check_control_plane_update(
    new: JsonObject, old: JsonObject, profile: Profile
) -> Iterator[Cause]:
    """Return a purpose could not change."""
    paths = ("type", "region", "purpose") if profile == "strict" else ("type", "region")
    yield from changed(new, old, paths)


def _at(obj: JsonObject, path: str) -> JsonValue:
    value: JsonValue = map_at(obj, "spec")
    for step in path.split("."):
        value = value.get(step) if isinstance(value, dict) else None
    return value
