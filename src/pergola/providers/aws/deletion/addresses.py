"""Releases the elastic IP of a zone's NAT gateway; one of the user stays (spec 30 §9.2)."""

from pergola.api.objects import JsonObject
from pergola.flow.picture import Note
from pergola.providers.aws import state as keys
from pergola.providers.aws.deletion.removing import condemned, forget, named, note, remove
from pergola.providers.aws.deletion.subnets import subnets_in
from pergola.providers.aws.step import Step, Work


def name(zone: str) -> str:
    """The step of a zone."""
    return f"release elastic IP in {zone}"


def step(zone: str, after: tuple[str, ...]) -> Step:
    """The step of a zone's elastic IP."""

    async def ensure(work: Work) -> None:
        for each in _addresses(work, zone):
            await remove(work, "ReleaseAddress", AllocationId=each)
            work.snapshot.addresses.pop(each, None)
        forget(work, keys.zone_key(zone, keys.ADDRESS))

    def plan(work: Work) -> Note:
        return note(_addresses(work, zone))

    return Step(name=name(zone), plan=plan, ensure=ensure, after=after)


def _addresses(work: Work, zone: str) -> list[str]:
    suffix = work.state.get(keys.zone_key(zone, keys.SUFFIX))
    has_name = named(work, f"eip-natgw-{suffix}")
    at_gateway = _at_gateways(work, zone)

    def of_zone(address: JsonObject) -> bool:
        return has_name(address) or address.get("AllocationId") in at_gateway

    known = work.state.get(keys.zone_key(zone, keys.ADDRESS))
    of_user = {each.elastic_ip_allocation_id for each in work.wanted.config.networks.zones}
    found = condemned(work, work.snapshot.addresses, (known,), of_zone)
    return [each for each in found if each not in of_user]


def _at_gateways(work: Work, zone: str) -> set[str]:
    """The addresses of a zone's NAT gateways, also of those that are just gone."""
    subnets = set(subnets_in(work, zone))
    return {
        address.get("AllocationId", "")
        for nat in work.snapshot.nat_gateways.values()
        if nat.get("SubnetId") in subnets
        for address in nat.get("NatGatewayAddresses") or ()
    }
