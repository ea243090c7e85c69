"""DNS records in Route 53, for Gardens, Seeds and Shoots: the extension kind `DNSRecord`.

    pergola extension run aws

The record sets are recorded in the state before anything is created, so that an interrupted run
never leaves an unrecorded one. Obsolete ones are deleted by the same request if they are in the
same zone, and afterwards otherwise. Record sets that are not in the state belong to others, and are
kept.

Alias records point to the hosted zones of load balancers, which AWS publishes with the endpoints of
Elastic Load Balancing. They never change, but new regions add more: a load balancer in an unlisted
region gets a CNAME record.
"""

import re
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
from pergola.providers.aws.resources.hosted_zones import observe_hosted_zones, zone_for, zone_id
from pergola.providers.aws.resources.record_sets import (
    CNAME,
    Alias,
    Placed,
    RecordSet,
    apply_changes,
    delete_record_sets,
    observe_record_sets,
    plan_record_sets,
    record_set,
)
from pergola.providers.aws.warnings import warn

_TABLE: Final = """
    af-south-1 Z268VQBMOI5EKX Z203XCE67M25HM
    ap-east-1 Z3DQVH9N71FHZ0 Z12Y7K3UBGUAD1
    ap-east-2 Z02789141MW7T1WBU19PO Z09176273OC2HWIAUNYW
    ap-northeast-1 Z14GRHDCWA56QT Z31USIVHYNEOWT
    ap-northeast-2 ZWKZPGTI48KDX ZIBE1TIR4HY56
    ap-northeast-3 Z5LXEXXYW11ES Z1GWIQ4HH19I5X
    ap-south-1 ZP97RAFLXTNZK ZVDDRBQ08TROA
    ap-south-2 Z0173938T07WNTVAEPZN Z0711778386UTO08407HT
    ap-southeast-1 Z1LMS91P8CMLE5 ZKVM4W9LS7TM
    ap-southeast-2 Z1GM3OXH4ZPM65 ZCT6FZBF4DROD
    ap-southeast-3 Z08888821HLRG5A9ZRTER Z01971771FYVNCOVWJU1G
    ap-southeast-4 Z09517862IB2WZLPXG76F Z01156963G8MIIL7X90IV
    ap-southeast-5 Z06010284QMVVW7WO5J Z026317210H9ACVTRO6FB
    ap-southeast-6 Z023301818UFJ50CIO0MV Z01392953RKV2Q3RBP0KU
    ap-southeast-7 Z0390008CMBRTHFGWBCB Z054363131YWATEMWRG5L
    ca-central-1 ZQSVJUPU6J1EY Z2EPGBW3API2WT
    ca-west-1 Z06473681N0SF6OS049SD Z02754302KBB00W2LKWZ9
    cn-north-1 Z1GDH35T77C1KE Z3QFB96KMJ7ED6
    cn-northwest-1 ZM7IZAIOVVDZF ZQEIKTCZ8352D
    eu-central-1 Z215JYRZR1TBD5 Z3F0SRJ5LGBH90
    eu-central-2 Z06391101F2ZOEP8P5EB3 Z02239872DOALSIDCX66S
    eu-north-1 Z23TAZ6LKFMNIO Z1UDT6IFJ4EJM
    eu-south-1 Z3ULH7SSC9OV64 Z23146JA1KNAFP
    eu-south-2 Z0956581394HF5D5LXGAP Z1011216NVTVYADP1SSV
    eu-west-1 Z32O12XQLNTSW2 Z2IFOLAFXWLO4F
    eu-west-2 ZHURV8PSTC4K8 ZD4D7Y8KGAS4G
    eu-west-3 Z3Q77PNBQS71R4 Z1CMS0P5QUZ6D5
    il-central-1 Z09170902867EHPV2DABU Z0313266YDI6ZRHTGQY4
    me-central-1 Z08230872XQRWHG2XF6I Z00282643NTTLPANJJG2P
    me-south-1 ZS929ML54UICD Z3QSRYVP46NYYV
    mx-central-1 Z023552324OKD1BB28BH5 Z02031231H3ID6HYJ9A7U
    sa-east-1 Z2P70J7HTTTPLU ZTK26PT1VY4CU
    us-east-1 Z35SXDOTRQ7X7K Z26RNL4JYFTOTI
    us-east-2 Z3AADJGX6KTTL2 ZLMOA37VPKANP
    us-gov-east-1 Z166TLBEWOO7G0 Z1ZSMQQ6Q24QQ8
    us-gov-west-1 Z33AYJ8TM3BH4J ZMG1MZ2THAWF1
    us-west-1 Z368ELLRRE2KJ0 Z24FKFUX50B4VW
    us-west-2 Z1H1FL5HABSF5 Z18D5FSROUN65G
"""
"""Region, zone of application and classic load balancers, zone of network load balancers."""
_ZONES: Final = {region: zones for region, *zones in map(str.split, _TABLE.strip().splitlines())}
_DOMAIN: Final = r"amazonaws\.com(?:\.cn)?"
_APPLICATION: Final = re.compile(rf"[^.].*\.(?P<region>[a-z0-9-]+)\.elb\.{_DOMAIN}", re.ASCII)
_NETWORK: Final = re.compile(rf"[^.].*\.elb\.(?P<region>[a-z0-9-]+)\.{_DOMAIN}", re.ASCII)


def zone_of_load_balancer(host: str) -> str:
    """Return the hosted zone of a load balancer's host name; empty if it is unknown."""
    for position, pattern in enumerate((_APPLICATION, _NETWORK)):
        found = pattern.fullmatch(host.lower().rstrip("."))
        if found is not None and found["region"] in _ZONES:
            return _ZONES[found["region"]][position]
    return ""


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
                    await _ensure(aws, context, zone, desired, known)
                except NotFound:
                    if map_at(obj, "spec").get("zone"):
                        raise
                    zone = await _find_zone(aws, obj)  # the zone in the status was deleted
                    await _ensure(aws, context, zone, desired, known)
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


async def _ensure(
    aws: AwsClient,
    context: Context,
    zone: str,
    desired: tuple[RecordSet, ...],
    known: tuple[Placed, ...],
) -> None:
    """Create and change record sets in one request, after they are recorded in the state."""
    name = desired[0].name
    ours = [each.records for each in known if each.zone == zone and each.records.name == name]
    live = await observe_record_sets(aws, zone, name)
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
        "this DNSRecord: delete it if it is not needed"
        for (zone, name), ours in by_name.items()
        for each in await delete_record_sets(aws, zone, name, ours)
    ]


def _of_another_implementation(obj: JsonObject) -> tuple[Placed, ...]:
    """Return the record sets that another implementation created, which keeps no state."""
    zone = map_at(obj, "status").get("zone")
    if not zone:
        return ()
    return tuple(Placed(zone_id(str(zone)), each) for each in desired_record_sets(obj))


@contextmanager
def _patient() -> Iterator[None]:
    """Requeue without backoff if Route 53 is throttling."""
    try:
        yield
    except Throttled as error:
        raise RequeueAfter(THROTTLED_SECONDS, error) from None
