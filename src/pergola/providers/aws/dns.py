"""DNS records in Route 53, for Gardens, Seeds and Shoots: the extension kind `DNSRecord`.

    pergola extension run aws

The record sets are recorded in the state before anything is created, so that an interrupted run
never leaves an unrecorded one. Obsolete ones are deleted by the same request if they are in the
same zone, and afterwards otherwise. Record sets that are not in the state belong to others, and are
kept.

A CNAME record for a host of AWS becomes alias records if Route 53 knows the host. Another
implementation, or another version, may have created the other form: without a state, CNAME and
alias records to the host are both ours.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from pergola.api import marks
from pergola.api.objects import GroupVersionKind, JsonObject, Key, annotations_of, map_at, maps_at
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import NotFound, Throttled
from pergola.extension_api.errors import RequeueAfter, configuration_problem
from pergola.extensions.actuator import Context, Status
from pergola.providers.aws.access import AwsAccess
from pergola.providers.aws.codes import explained
from pergola.providers.aws.config import GROUP
from pergola.providers.aws.resources.alias_targets import CLOUDFRONT, alias_zone
from pergola.providers.aws.resources.hosted_zones import observe_hosted_zones, zone_for, zone_id
from pergola.providers.aws.resources.record_sets import (
    ADDRESSES,
    CNAME,
    Alias,
    Placed,
    RecordSet,
    apply_changes,
    delete_record_sets,
    is_ours,
    normal_name,
    observe_record_sets,
    plan_record_sets,
    record_set,
)
from pergola.providers.aws.warnings import warn

DEFAULT_TTL: Final = 120
_TYPES: Final = (*ADDRESSES, CNAME, "TXT")
_ALIAS_TYPES: Final = {"ipv4": ("A",), "ipv6": ("AAAA",), "dual-stack": ("A", "AAAA")}


def desired_record_sets(obj: JsonObject) -> tuple[RecordSet, ...]:
    """Return the record sets of a DNSRecord.

    A CNAME record for a load balancer or another alias target of AWS becomes alias records, one for
    each IP family in the annotation `dns.gardener.cloud/ip-stack` (IPv4 without it).

    Raises:
        ExtensionError: the spec is not valid.
    """
    spec = map_at(obj, "spec")
    name, of_type = str(spec.get("name") or ""), str(spec.get("recordType") or "")
    values = [str(value) for value in spec.get("values") or ()]
    _check(obj, name, of_type, values)
    zone = alias_zone(values[0]) if of_type == CNAME else ""
    if zone:
        aliases = _aliases(name, Alias(zone, normal_name(values[0])), _families(obj))
        # Route 53 refuses to evaluate the health of distributions.
        return tuple(each._replace(evaluates_health=zone != CLOUDFRONT) for each in aliases)
    ttl = spec.get("ttl")
    return (record_set(name, of_type, DEFAULT_TTL if ttl is None else int(ttl), values),)


def possible_record_sets(obj: JsonObject) -> tuple[RecordSet, ...]:
    """Return the record sets that another implementation may have created for a DNSRecord.

    Implementations differ in the hosts that get alias records, and annotations change.
    """
    desired, spec = desired_record_sets(obj), map_at(obj, "spec")
    if spec.get("recordType") != CNAME:
        return desired
    name, host = desired[0].name, str(spec["values"][0])
    aliases = _aliases(name, Alias(alias_zone(host), normal_name(host)), ADDRESSES)
    return (record_set(name, CNAME, values=[host]), *aliases)


def _aliases(name: str, target: Alias, types: Iterable[str]) -> tuple[RecordSet, ...]:
    return tuple(record_set(name, each, alias=target) for each in types)


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


DNS_RECORD_STATE: Final = GroupVersionKind(GROUP, "v1alpha1", "DNSRecordState")


def read_record_sets(obj: JsonObject) -> tuple[Placed, ...]:
    """Return the record sets in the state of a DNSRecord, with their zones."""
    state = map_at(obj, "status", "state")
    return tuple(map(_read, maps_at(state, "recordSets")))


def state_object(placed: Iterable[Placed]) -> JsonObject:
    """Return the content of `status.state`."""
    return {
        "apiVersion": DNS_RECORD_STATE.api_version,
        "kind": DNS_RECORD_STATE.kind,
        "recordSets": [_written(*each) for each in placed],
    }


def _written(zone: str, records: RecordSet) -> JsonObject:
    written: JsonObject = {"zone": zone, "name": records.name, "type": records.type}
    if records.alias is not None:
        return {**written, "alias": records.alias._asdict()}
    return {**written, "ttl": records.ttl, "values": list(records.values)}


def _read(written: JsonObject) -> Placed:
    name, of_type = str(written.get("name")), str(written.get("type"))
    zone, alias = str(written.get("zone")), map_at(written, "alias")
    if alias:
        target = Alias(str(alias.get("zone")), str(alias.get("name")))
        return Placed(zone, record_set(name, of_type, alias=target))
    values = map(str, written.get("values") or ())
    return Placed(zone, record_set(name, of_type, int(written.get("ttl") or 0), values))


THROTTLED_SECONDS: Final = 30.0
"""The delay before the next run if Route 53, which allows five requests a second, throttles."""
_GARDEN: Final = "garden"


class AwsDnsRecord(AwsAccess):
    """Creates, changes and deletes DNS records in existing hosted zones."""

    kind = "DNSRecord"
    type = "aws-route53"

    @classmethod
    def cluster_name(cls, key: Key) -> str:
        """Return the Cluster of a DNSRecord; those in the namespace `garden` have none."""
        return "" if key.namespace == _GARDEN else key.namespace

    async def reconcile(self, context: Context, obj: JsonObject) -> Status | None:
        """Create missing record sets, and change those that differ.

        Raises:
            RequeueAfter: Route 53 is throttling.
            ExtensionError: the spec is not valid, or no zone matches the name.
        """
        with explained(), _patient():
            desired, known = desired_record_sets(obj), read_record_sets(obj)
            async with self.aws(context, obj) as aws:
                zone = _named_zone(obj) or await _find_zone(aws, obj)
                try:
                    await _ensure(aws, context, zone, obj)
                except NotFound:
                    if map_at(obj, "spec").get("zone"):
                        raise
                    zone = await _find_zone(aws, obj)  # the zone in the status was deleted
                    await _ensure(aws, context, zone, obj)
                # Those with the same name and zone were replaced by the same request.
                placed = (zone, desired[0].name)
                moved = [each for each in known if (each.zone, each.records.name) != placed]
                left = await _delete(aws, moved)
        await warn(context.client, obj, left, context.clock)
        return {"zone": zone, "state": state_object(Placed(zone, each) for each in desired)}

    async def delete(self, context: Context, obj: JsonObject) -> Status | None:
        """Delete the record sets that were created, unless another client has since changed them.

        If none was ever created, no credentials are needed.

        Raises:
            RequeueAfter: Route 53 is throttling.
        """
        with explained(), _patient():
            known = read_record_sets(obj) or _of_another_implementation(obj)
            if not known:
                return None
            async with self.aws(context, obj) as aws:
                left = await _delete(aws, known)
        await warn(context.client, obj, left, context.clock)
        return None


def _named_zone(obj: JsonObject) -> str:
    """Return the zone in the spec, else the one in the status; empty if unknown."""
    named = map_at(obj, "spec").get("zone") or map_at(obj, "status").get("zone") or ""
    return zone_id(str(named))


async def _find_zone(aws: AwsClient, obj: JsonObject) -> str:
    return zone_for(str(map_at(obj, "spec").get("name")), await observe_hosted_zones(aws))


async def _ensure(aws: AwsClient, context: Context, zone: str, obj: JsonObject) -> None:
    """Create and change record sets in one request, after they are recorded in the state."""
    desired, known = desired_record_sets(obj), read_record_sets(obj)
    name = desired[0].name
    live = await observe_record_sets(aws, zone, name)
    if not known:
        possible = possible_record_sets(obj)
        known = tuple(Placed(zone, each) for each in live if is_ours(each, possible))
    ours = [each.records for each in known if each.zone == zone and each.records.name == name]
    changes = plan_record_sets(live, desired, ours)
    if changes:
        new = [each for each in (Placed(zone, one) for one in desired) if each not in known]
        await context.save({"zone": zone, "state": state_object([*known, *new])})
        await apply_changes(aws, zone, changes)


async def _delete(aws: AwsClient, placed: Iterable[Placed]) -> list[str]:
    """Delete created record sets, and return sentences about those that stay."""
    by_name: dict[tuple[str, str], list[RecordSet]] = {}
    for zone, records in placed:
        by_name.setdefault((zone, records.name), []).append(records)
    return [
        f"the {each} in zone {zone} is kept, because it was changed after it was created for "
        "this DNSRecord, or not created for it: delete it if it is not needed"
        for (zone, name), ours in by_name.items()
        for each in await delete_record_sets(aws, zone, name, ours)
    ]


def _of_another_implementation(obj: JsonObject) -> tuple[Placed, ...]:
    """Return the record sets that another implementation created, which keeps no state."""
    zone = map_at(obj, "status").get("zone")
    if not zone:
        return ()
    return tuple(Placed(zone_id(str(zone)), each) for each in possible_record_sets(obj))


@contextmanager
def _patient() -> Iterator[None]:
    """Requeue without backoff if Route 53 is throttling."""
    try:
        yield
    except Throttled as error:
        raise RequeueAfter(THROTTLED_SECONDS, error) from None
