"""Record sets of Route 53, and those that a DNSRecord desires. Pure."""

from typing import Final

from pergola.api import marks
from pergola.api.objects import JsonObject, Key, annotations_of, map_at
from pergola.extension_api.errors import configuration_problem
from pergola.providers.aws.dns.load_balancers import zone_of_load_balancer
from pergola.providers.aws.resources.record_sets import CNAME, Alias, RecordSet, record_set

DEFAULT_TTL: Final = 120
_TYPES: Final = ("A", "AAAA", CNAME, "TXT")
_ALIAS_TYPES: Final = {"ipv4": ("A",), "ipv6": ("AAAA",), "dual-stack": ("A", "AAAA")}


def desired_record_sets(obj: JsonObject) -> tuple[RecordSet, ...]:
    """Return the record sets of a DNSRecord.

    A CNAME record for an AWS load balancer becomes alias records, one for each IP family in the
    annotation `dns.gardener.cloud/ip-stack` (IPv4 without it).

    Raises:
        ExtensionError: the spec is not valid.
    """
    spec = map_at(obj, "spec")
    name, of_type = str(spec.get("name") or ""), str(spec.get("recordType") or "")
    values = [str(value) for value in spec.get("values") or ()]
    _check(obj, name, of_type, values)
    zone = zone_of_load_balancer(values[0]) if of_type == CNAME else ""
    if zone:
        target = Alias(zone, values[0].rstrip(".").lower())
        return tuple(record_set(name, each, alias=target) for each in _families(obj))
    ttl = spec.get("ttl")
    return (record_set(name, of_type, DEFAULT_TTL if ttl is None else int(ttl), values),)


def _families(obj: JsonObject) -> tuple[str, ...]:
    stack = annotations_of(obj).get(marks.IP_STACK) or "ipv4"
    return _ALIAS_TYPES.get(stack, _ALIAS_TYPES["ipv4"])


def _check(obj: JsonObject, name: str, of_type: str, values: list[str]) -> None:
    where = f"DNSRecord {Key.of(obj)}"
    if not name:
        raise configuration_problem(f"{where}: spec.name is empty: set the name of the record")
    if of_type not in _TYPES:
        raise configuration_problem(
            f'{where}: spec.recordType is "{of_type}": set one of {", ".join(_TYPES)}'
        )
    if not all(values) or not values:
        raise configuration_problem(f"{where}: spec.values has no value, or an empty one: set it")
    if of_type == CNAME and len(values) > 1:
        raise configuration_problem(
            f"{where}: spec.values has {len(values)} values: a CNAME record has exactly one"
        )
