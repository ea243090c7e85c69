"""Creating, changing and deleting the DNSRecords of a garden (spec 20 §15.3)."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonObject, deletion_timestamp_of, labels_of, map_at, name_of
from pergola.extension_api.kinds import DNS_RECORD
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.errors import UnknownKind
from pergola.operator.reconcile.extension_resources.caller import Caller, together
from pergola.operator.reconcile.extension_resources.dns import ORIGIN, dns_records
from pergola.operator.reconcile.extension_resources.inputs import is_ours

ADDRESS_LIMIT: Final = 60.0
"""Seconds to wait for the address of the ingress gateway."""

_IMMUTABLE: Final = ("type", "name", "recordType")


async def reconcile_dns_records(caller: Caller, landscape: Landscape, address: str) -> None:
    """Deploy the DNSRecords; once they are ready, delete stale ones.

    A name whose provider changed is thus always served by one of the two.

    Raises:
        OperatorError: See `dns_records`; or a DNSRecord of the same name is not the garden's.
        CallerError: A record did not become ready, or was not deleted.
        KubeError: The API server refused, or did not answer.
    """
    desired = dns_records(landscape, address)
    listed = await caller.client.list(DNS_RECORD.gvk, NAMESPACE)
    live = {name_of(obj): obj for obj in listed}
    await together(_reconcile(caller, record, live.get(name_of(record))) for record in desired)
    names = {name_of(record) for record in desired}
    await _remove(caller, {name: obj for name, obj in live.items() if name not in names})


async def destroy_dns_records(caller: Caller) -> None:
    """Delete all DNSRecords that the operator created, and wait until they are gone.

    Raises:
        CallerError: A record was not deleted.
        KubeError: The API server refused, or did not answer.
    """
    try:
        listed = await caller.client.list(DNS_RECORD.gvk, NAMESPACE)
    except UnknownKind:
        return
    await _remove(caller, {name_of(obj): obj for obj in listed})


async def _reconcile(caller: Caller, desired: JsonObject, live: JsonObject | None) -> None:
    if live is not None and is_ours(live) and _is_replaced(desired, live):
        await caller.remove(DNS_RECORD, live)
        live = None
    request = await caller.deploy(DNS_RECORD, desired, live)
    await caller.wait(DNS_RECORD, request)


async def _remove(caller: Caller, live: Mapping[str, JsonObject]) -> None:
    created = (obj for obj in live.values() if ORIGIN.items() <= labels_of(obj).items())
    await together(caller.remove(DNS_RECORD, obj) for obj in created)


def _is_replaced(desired: JsonObject, live: JsonObject) -> bool:
    """Return whether a record must be recreated because an immutable field differs."""
    if deletion_timestamp_of(live) is not None:
        return True
    old, new = map_at(live, "spec"), map_at(desired, "spec")
    return any(old.get(field) != new.get(field) for field in _IMMUTABLE)
