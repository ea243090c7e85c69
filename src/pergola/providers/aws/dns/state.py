"""`DNSRecordState`: the record sets that were created for a DNSRecord.

It is written before anything is created, so that an interrupted run never leaves an unrecorded
record set. Record sets that are not in it belong to others, and are kept.
"""

from collections.abc import Iterable
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, map_at, maps_at
from pergola.providers.aws.config import GROUP
from pergola.providers.aws.resources.record_sets import Alias, Placed, RecordSet, record_set

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
