"""DNSRecord (spec 12 §15.3)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.core_v1_validation import is_dns_label, is_dns_subdomain
from pergola.api.field_errors import Cause, invalid, required, unsupported
from pergola.api.ip_ranges import parse_address
from pergola.api.objects import JsonObject, map_at
from pergola.resource_manager.webhooks.extension_validation.simple_kinds import (
    Profile,
    changed,
    missing,
)

_TYPES: Final = ("A", "AAAA", "CNAME", "TXT")
_VERSIONS: Final = {"A": 4, "AAAA": 6}
_LONGEST_TTL: Final = 2**31 - 1
_NO_DOMAIN: Final = "must be a domain name with at least two parts, such as foo.example.com"


def check_dns_record(obj: JsonObject, profile: Profile) -> Iterator[Cause]:
    """Yield findings about a DNSRecord."""
    spec = map_at(obj, "spec")
    yield from missing(spec, ("type", "secretRef.name"))
    for name in ("region", "zone"):
        if spec.get(name) == "":
            yield invalid(f"spec.{name}", "", "field cannot be empty if specified")
    yield from _name(spec)
    record = spec.get("recordType")
    if record not in _TYPES:
        yield unsupported("spec.recordType", record or "", _TYPES)
    yield from _values(spec, profile)
    yield from _ttl(spec, profile)


def check_dns_record_update(new: JsonObject, old: JsonObject, _: Profile) -> Iterator[Cause]:
    """Yield findings about a change of a DNSRecord."""
    yield from changed(new, old, ("type", "name", "recordType"))


def is_domain(text: str) -> bool:
    """Return whether a text is a fully qualified domain name; it may end in a dot."""
    labels = text.removesuffix(".").split(".")
    return len(labels) > 1 and is_dns_subdomain(".".join(labels)) and all(map(is_dns_label, labels))


def _name(spec: JsonObject) -> Iterator[Cause]:
    name = spec.get("name")
    if not isinstance(name, str) or not name:
        yield required("spec.name")
        return
    bare = name.removeprefix("_") if spec.get("recordType") == "TXT" else name.removeprefix("*.")
    if not is_domain(bare):
        yield invalid("spec.name", name, _NO_DOMAIN)


def _values(spec: JsonObject, profile: Profile) -> Iterator[Cause]:
    values = spec.get("values")
    if not isinstance(values, list) or not values:
        yield required("spec.values")
        return
    record = spec.get("recordType")
    if record == "CNAME" and len(values) > 1:
        yield invalid("spec.values", values, "CNAME records must have a single value")
    for index, value in enumerate(values):
        problem = _value_problem(value, record, profile)
        if problem:
            yield invalid(f"spec.values[{index}]", value, problem)


def _value_problem(value: object, record: object, profile: Profile) -> str | None:
    if record == "CNAME":
        return None if isinstance(value, str) and is_domain(value) else _NO_DOMAIN
    expected = _VERSIONS.get(record) if isinstance(record, str) else None
    if expected is None:
        return None
    try:
        version = parse_address(str(value)).version
    except ValueError:
        return "must be a valid IP address, (e.g. 10.9.8.7 or 2001:db8::ffff)"
    if profile == "strict" and version != expected:
        return f"must be a valid IPv{expected} address"
    return None


def _ttl(spec: JsonObject, profile: Profile) -> Iterator[Cause]:
    ttl = spec.get("ttl")
    if not isinstance(ttl, int):
        return
    if ttl < 0:
        yield invalid("spec.ttl", ttl, "must be greater than or equal to 0")
    elif ttl > _LONGEST_TTL and profile == "relaxed":
        yield invalid("spec.ttl", ttl, f"must be less than or equal to {_LONGEST_TTL}")
