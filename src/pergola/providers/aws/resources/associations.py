"""Associations of a zone's subnets with their route tables (spec 30 §3.5).

AWS removes an association together with its subnet, so nothing is deleted here.
"""

from functools import partial
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.cloud.errors import AlreadyExists
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.decision import Decision, together
from pergola.providers.aws.resources.step import Step, Work
from pergola.providers.aws.resources.subnets.desired import subnets_of
from pergola.providers.aws.resources.waiting import once_visible

_KEYS: Final = {
    keys.SUBNET_WORKERS: keys.ASSOCIATION_WORKERS,
    keys.SUBNET_INTERNAL: keys.ASSOCIATION_INTERNAL,
    keys.SUBNET_PUBLIC: keys.ASSOCIATION_PUBLIC,
}
_GONE: Final = frozenset({"disassociating", "disassociated", "failed"})


class _Pair(NamedTuple):
    """A subnet and its table, as far as both exist.

    Attributes:
        key: the key of the association's id in the state.
        role: the role of the subnet, such as `SubnetWorkers`.
    """

    key: str
    role: str
    subnet: str | None
    table: str | None


def steps(desired: Desired, zone: Zone) -> list[Step]:
    """Return the step for all subnets of a zone; it need not wait for NAT."""
    del desired
    return [
        Step(
            name=names.associations(zone.name),
            decide=partial(_decide, zone=zone),
            after=(
                names.subnets(zone.name),
                names.route_table(zone.name),
                names.MAIN_ROUTE_TABLE,
            ),
        )
    ]


def _pairs(work: Work, zone: Zone) -> list[_Pair]:
    private = keys.zone_key(zone.name, keys.ROUTE_TABLE)
    tables = {keys.SUBNET_PUBLIC: work.state.get(keys.MAIN_ROUTE_TABLE)}
    return [
        _Pair(
            keys.zone_key(zone.name, _KEYS[subnet.role]),
            subnet.role,
            work.state.get(subnet.key),
            tables.get(subnet.role, work.state.get(private)),
        )
        for subnet in subnets_of(work.desired, zone)
    ]


def _present(work: Work, subnet: str | None) -> JsonObject | None:
    """Return a subnet's own association."""
    for table in work.snapshot.route_tables.values():
        for each in table.get("Associations") or []:
            state = (each.get("AssociationState") or {}).get("State")
            if subnet and each.get("SubnetId") == subnet and state not in _GONE:
                return {"RouteTableId": table["RouteTableId"], **each}
    return None


def _decide(work: Work, zone: Zone) -> Decision:
    present = {pair: _present(work, pair.subnet) or {} for pair in _pairs(work, zone)}
    record = {pair.key: each.get("RouteTableAssociationId", "") for pair, each in present.items()}
    wrong = [pair for pair, each in present.items() if not _leads_to(each, pair.table)]
    if not wrong:
        return Decision.keep("each subnet uses its table", record)
    said = ", ".join(pair.role for pair in wrong)
    calls = (partial(_associate, work, pair) for pair in wrong)
    return Decision.creation(said, together(*calls), record=record)


def _leads_to(association: JsonObject, table: str | None) -> bool:
    return table is not None and association.get("RouteTableId") == table


async def _associate(work: Work, pair: _Pair) -> None:
    present = _present(work, pair.subnet)
    if present is None:
        try:
            answer = await once_visible(
                work, "AssociateRouteTable", SubnetId=pair.subnet, RouteTableId=pair.table
            )
        except AlreadyExists:  # done before, but not visible when the tables were described
            await _observe_again(work, pair)
            present = _present(work, pair.subnet)
            if present is None:
                raise
        else:
            _associated(work, pair, answer["AssociationId"])
            return
    if present["RouteTableId"] != pair.table:
        old = present["RouteTableAssociationId"]
        answer = await once_visible(
            work, "ReplaceRouteTableAssociation", AssociationId=old, RouteTableId=pair.table
        )
        _dissociated(work, old)
        _associated(work, pair, answer["NewAssociationId"])


def _associated(work: Work, pair: _Pair, name: str) -> None:
    work.state.created(pair.key, name)
    table = work.snapshot.route_tables[pair.table or ""]
    association = {"RouteTableAssociationId": name, "SubnetId": pair.subnet}
    table.setdefault("Associations", []).append(association)


def _dissociated(work: Work, name: str) -> None:
    for table in work.snapshot.route_tables.values():
        associations = table.get("Associations") or []
        kept = [each for each in associations if each["RouteTableAssociationId"] != name]
        table["Associations"] = kept


async def _observe_again(work: Work, pair: _Pair) -> None:
    by = [{"Name": "association.subnet-id", "Values": [pair.subnet]}]
    for table in await work.aws.pages("ec2", "DescribeRouteTables", "RouteTables", Filters=by):
        work.snapshot.route_tables[table["RouteTableId"]] = table
