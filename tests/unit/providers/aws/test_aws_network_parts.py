"""Decisions of a network's steps without AWS: ranges, routes, names (spec 30 §3.2, §3.5)."""

import asyncio
import ipaddress
from collections.abc import Awaitable
from itertools import islice

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient, Credentials
from pergola.flow import State
from pergola.flow.picture import Fate
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import InfrastructureConfig, Networks, Vpc, Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.flows.reconcile import network_steps
from pergola.providers.aws.resources import ipv6_block as ipv6_blocks
from pergola.providers.aws.resources import step_names as names
from pergola.providers.aws.resources.decision import all_done
from pergola.providers.aws.resources.egress_ranges import egress_ranges
from pergola.providers.aws.resources.nat_gateways import ensure as nat_gateways
from pergola.providers.aws.resources.routes import EVERYWHERE, NAT_GATEWAY, Route, missing_routes
from pergola.providers.aws.resources.step import Work, graph_of
from pergola.providers.aws.resources.subnets.desired import Subnet, subnets_of
from pergola.providers.aws.resources.subnets.ipv6_ranges import (
    free_ranges,
    part,
    places_in,
    places_taken,
)
from pergola.providers.aws.resources.zone_suffixes import keep_suffixes, zone_suffix
from pergola.providers.aws.snapshot import Snapshot

BLOCK = "2001:db8:0:100::/56"
MANAGED = Zone(
    name="eu-west-1a", workers="10.0.0.0/24", internal="10.0.1.0/24", public="10.0.2.0/24"
)
PRIVATE = Zone(name="eu-west-1b", workers="10.0.4.0/24", internal="10.0.5.0/24")
BARE = Zone(name="eu-west-1c", workers="10.0.8.0/24")


def desired(*zones: Zone, vpc: Vpc | None = None, families: tuple[str, ...] = ("IPv4",)) -> Desired:
    networks = Networks(vpc=vpc or Vpc(cidr="10.0.0.0/16"), zones=list(zones))
    return Desired(
        technical_id="shoot--p--s",
        region="eu-west-1",
        config=InfrastructureConfig(networks=networks),
        families=families,
    )


def work(for_: Desired, state: State) -> Work:
    aws = AwsClient("eu-west-1", credentials=Credentials("a", "b"))
    return Work(aws=aws, desired=for_, state=state, snapshot=Snapshot())


@pytest.mark.parametrize(
    ("zone", "prefixes"),
    [
        (MANAGED, ["nodes", "private-utility", "public-utility"]),
        (PRIVATE, ["nodes", "private-utility"]),
        (BARE, ["nodes"]),
        (Zone(name="eu-west-1a", workers_subnet_id="subnet-1"), []),
    ],
)
def test_a_zone_gets_a_subnet_for_each_of_its_ranges(zone: Zone, prefixes: list[str]) -> None:
    assert [each.prefix for each in subnets_of(desired(zone), zone)] == prefixes


def test_each_zone_reserves_three_ranges_of_the_ipv6_block() -> None:
    zones = (BARE, PRIVATE, MANAGED)
    dual = desired(*zones, families=("IPv4", "IPv6"))

    assert [[each.place for each in subnets_of(dual, zone)] for zone in zones] == [
        [0],
        [3, 4],
        [6, 7, 8],
    ]


def test_only_node_subnets_lose_their_ipv4_range_without_ipv4() -> None:
    zone = Zone(name="eu-west-1a", workers="10.0.0.0/24", internal="10.0.1.0/24")
    subnets = list(subnets_of(desired(zone, families=("IPv6",)), zone))

    assert [(each.cidr, each.native) for each in subnets] == [(None, True), ("10.0.1.0/24", False)]


@given(st.integers(0, 255))
def test_the_index_of_a_range_in_a_block_is_computed(place: int) -> None:
    found = part(BLOCK, 64, place)
    association = {"Ipv6CidrBlock": found, "Ipv6CidrBlockState": {"State": "associated"}}

    assert ipaddress.IPv6Network(found).subnet_of(ipaddress.IPv6Network(BLOCK))
    assert places_taken(BLOCK, [{"Ipv6CidrBlockAssociationSet": [association]}]) == {place}


@given(st.integers(44, 64), st.integers(0, 20), st.sets(st.integers(0, 20)))
def test_subnets_get_each_free_range_of_a_block_of_any_size(
    bits: int, place: int, taken: set[int]
) -> None:
    block = f"2001:db8:0:f000::/{bits}" if bits > 52 else f"2001:db8::/{bits}"
    count = places_in(block)
    used = [part(block, 64, each) for each in taken if each < count]
    subnets = {
        name: {"VpcId": "vpc-1", "Ipv6CidrBlockAssociationSet": [with_block(name)]} for name in used
    }
    state = State({keys.VPC: "vpc-1", keys.VPC_IPV6_BLOCK: block})
    dual = work(desired(MANAGED, families=("IPv4", "IPv6")), state)
    dual.snapshot.subnets = subnets
    subnet = Subnet(zone="a", role="SubnetWorkers", prefix="nodes", cidr=None, place=place)

    found = list(islice(free_ranges(dual, subnet), 30))

    assert len(found) == len(set(found)) == min(30, count - len(used))
    assert not set(found) & set(used)
    whole = ipaddress.IPv6Network(block)
    assert all(ipaddress.IPv6Network(each).subnet_of(whole) for each in found)
    if place < count and place not in taken:
        assert found[0] == part(block, 64, place)


def with_block(block: str) -> JsonObject:
    return {"Ipv6CidrBlock": block, "Ipv6CidrBlockState": {"State": "associated"}}


def test_the_range_of_services_is_the_second_108() -> None:
    assert part("2001:db8:0:100::/64", 108, 1) == "2001:db8:0:100::10:0/108"


@pytest.mark.parametrize(
    ("present", "changed"),
    [
        ({"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1"}, False),
        ({"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-2"}, True),
        ({"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": "igw-1"}, True),
        ({"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local"}, True),
        ({"DestinationIpv6CidrBlock": "::/0", "NatGatewayId": "nat-1"}, True),
    ],
)
def test_routes_are_compared_by_value(present: JsonObject, changed: bool) -> None:
    table = {"RouteTableId": "rtb-1", "Routes": [present]}

    assert bool(missing_routes(table, [Route(EVERYWHERE, NAT_GATEWAY, "nat-1")])) is changed


def test_zones_keep_their_suffix_and_new_ones_get_the_smallest_free_one() -> None:
    state = State({"Zones/eu-west-1b/Suffix": "z0"})
    asked = desired(MANAGED, PRIVATE, BARE)
    before = state.snapshot()

    foreseen = [zone_suffix(work(asked, state), zone.name) for zone in (MANAGED, PRIVATE, BARE)]

    assert foreseen == ["z1", "z0", "z2"]
    assert state.snapshot() == before
    keep_suffixes(asked, state)
    assert [state.get(f"Zones/{zone.name}/Suffix") for zone in (MANAGED, PRIVATE, BARE)] == foreseen


@pytest.mark.parametrize(
    ("zones", "vpc", "skipped"),
    [
        ((MANAGED,), None, {names.IPV6_BLOCK, names.EGRESS_ONLY_GATEWAY}),
        (
            (PRIVATE,),
            Vpc(id="vpc-1"),
            {
                names.DHCP_OPTIONS,
                names.DEFAULT_SECURITY_GROUP,
                names.INTERNET_GATEWAY,
                names.MAIN_ROUTE_TABLE,
                names.NAT_GATEWAYS,
                names.outdated_nat("eu-west-1b"),
                names.address("eu-west-1b"),
                names.nat("eu-west-1b"),
                names.routes("eu-west-1b"),
            },
        ),
        (
            (Zone(name="eu-west-1a", workers_subnet_id="subnet-1"),),
            Vpc(id="vpc-1"),
            {
                names.GATEWAY_ENDPOINTS,
                names.ENDPOINT_ASSOCIATIONS,
                names.REMOVED_ZONES,
                names.INTERNET_GATEWAY,
                names.MAIN_ROUTE_TABLE,
            },
        ),
    ],
)
def test_skipped_steps_are_known_before_the_flow_starts(
    zones: tuple[Zone, ...], vpc: Vpc | None, skipped: set[str]
) -> None:
    steps = network_steps(desired(*zones, vpc=vpc))

    assert skipped <= {step.name for step in steps if step.skip}


@pytest.mark.parametrize("zones", [(MANAGED,), (MANAGED, PRIVATE, BARE), (PRIVATE,)])
def test_the_steps_form_an_ordered_graph(zones: tuple[Zone, ...]) -> None:
    asked = desired(*zones, families=("IPv4", "IPv6"))
    steps = network_steps(asked)

    graph = graph_of("network", steps, work(asked, State()))

    assert {task.name for task in graph.order()} == {step.name for step in steps}


def test_only_routes_and_egress_depend_on_nat_gateways() -> None:
    behind = {
        step.name for step in network_steps(desired(MANAGED)) if names.NAT_GATEWAYS in step.after
    }

    assert behind == {names.routes("eu-west-1a"), names.EGRESS_RANGES}


async def test_concurrent_steps_all_finish_before_a_failure_is_reported() -> None:
    done: list[str] = []

    async def fails(text: str) -> None:
        raise ValueError(text)

    async def takes_longer() -> None:
        await asyncio.sleep(0)
        done.append("it")

    doings: list[Awaitable[None]] = [fails("no"), takes_longer()]
    with pytest.raises(ValueError, match="no"):
        await all_done(*doings)
    with pytest.raises(ExceptionGroup):
        await all_done(fails("one"), fails("two"))

    assert done == ["it"]


async def test_a_step_that_is_cancelled_from_inside_is_not_done() -> None:
    done: list[str] = []

    async def is_interrupted() -> None:
        raise asyncio.CancelledError

    async def takes_longer() -> None:
        await asyncio.sleep(0)
        done.append("it")

    with pytest.raises(RuntimeError, match="it was cancelled before it was done"):
        await all_done(is_interrupted(), takes_longer())
    assert done == ["it"]


def nat_gateway(*addresses: JsonObject) -> JsonObject:
    return {
        "NatGatewayId": "nat-1",
        "VpcId": "vpc-1",
        "SubnetId": "subnet-1",
        "State": "available",
        "NatGatewayAddresses": list(addresses),
        "Tags": [
            {"Key": "kubernetes.io/cluster/shoot--p--s", "Value": "owned"},
            {"Key": "Name", "Value": "shoot--p--s-natgw-z0"},
        ],
    }


PRIMARY: JsonObject = {"AllocationId": "eipalloc-1", "PublicIp": "192.0.2.1", "IsPrimary": True}
SECONDARY: JsonObject = {"AllocationId": "eipalloc-2", "PublicIp": "192.0.2.2", "IsPrimary": False}


def with_nat(*addresses: JsonObject) -> Work:
    state = State(
        {
            keys.VPC: "vpc-1",
            keys.zone_key(MANAGED.name, keys.SUBNET_PUBLIC): "subnet-1",
            keys.zone_key(MANAGED.name, keys.ADDRESS): "eipalloc-1",
            keys.zone_key(MANAGED.name, keys.NAT_GATEWAY): "nat-1",
        }
    )
    existing = work(desired(MANAGED), state)
    existing.snapshot.nat_gateways["nat-1"] = nat_gateway(*addresses)
    return existing


@pytest.mark.parametrize("addresses", [[PRIMARY], [PRIMARY, SECONDARY], [SECONDARY, PRIMARY]])
def test_a_nat_gateway_with_secondary_addresses_is_kept(addresses: list[JsonObject]) -> None:
    outdated, _ = nat_gateways.steps(desired(MANAGED), MANAGED)

    assert outdated.decide(with_nat(*addresses)).note.fate is Fate.KEEP


def test_a_nat_gateway_with_the_desired_address_only_as_a_secondary_one_is_replaced() -> None:
    outdated, _ = nat_gateways.steps(desired(MANAGED), MANAGED)
    swapped = [{**SECONDARY, "IsPrimary": True}, {**PRIMARY, "IsPrimary": False}]

    assert outdated.decide(with_nat(*reversed(swapped))).note.fate is Fate.DELETE


def test_all_working_addresses_of_a_nat_gateway_are_egress_ranges() -> None:
    failed = {"PublicIp": "192.0.2.3", "IsPrimary": False, "Status": "failed"}

    ranges = egress_ranges(with_nat(SECONDARY, failed, PRIMARY))

    assert ranges == ["192.0.2.1/32", "192.0.2.2/32"]


def ipv6_block(cidr: str, state: str = "associated") -> JsonObject:
    return {"Ipv6CidrBlock": cidr, "Ipv6CidrBlockState": {"State": state}}


OTHER_BLOCK = "2001:db8:0:200::/56"


@pytest.mark.parametrize(
    ("known", "blocks", "kept"),
    [
        (BLOCK, [ipv6_block(OTHER_BLOCK), ipv6_block(BLOCK)], BLOCK),
        (BLOCK, [ipv6_block(OTHER_BLOCK), ipv6_block(BLOCK, "disassociated")], OTHER_BLOCK),
        (None, [ipv6_block(OTHER_BLOCK), ipv6_block(BLOCK)], OTHER_BLOCK),
    ],
)
def test_the_ipv6_block_of_a_vpc_with_several_stays_the_same(
    known: str | None, blocks: list[JsonObject], kept: str
) -> None:
    for_ = desired(MANAGED, vpc=Vpc(id="vpc-1"), families=("IPv4", "IPv6"))
    state = {keys.VPC: "vpc-1"} | ({keys.VPC_IPV6_BLOCK: known} if known else {})
    existing = work(for_, State(state))
    existing.snapshot.vpc = {"VpcId": "vpc-1", "Ipv6CidrBlockAssociationSet": blocks}

    [step] = ipv6_blocks.steps(for_)

    assert step.decide(existing).record == {keys.VPC_IPV6_BLOCK: kept}
