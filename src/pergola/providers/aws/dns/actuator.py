"""The DNSRecord actuator for Route 53.

    pergola extension run aws

The record sets are recorded in the state, then created; obsolete ones are deleted by the same
request if they are in the same zone, and afterwards otherwise.
"""

from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from typing import Final

from pergola.api.objects import JsonObject, Key, map_at
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import NotFound, Throttled
from pergola.extension_api.errors import RequeueAfter
from pergola.extensions.actuator import Context, Status
from pergola.providers.aws.access import AwsAccess
from pergola.providers.aws.codes import explained
from pergola.providers.aws.dns.record import desired_record_sets
from pergola.providers.aws.dns.state import read_record_sets, state_object
from pergola.providers.aws.resources.hosted_zones import observe_hosted_zones, zone_for, zone_id
from pergola.providers.aws.resources.record_sets import (
    Placed,
    RecordSet,
    apply_changes,
    delete_record_sets,
    observe_record_sets,
    plan_record_sets,
)
from pergola.providers.aws.warnings import warn

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
