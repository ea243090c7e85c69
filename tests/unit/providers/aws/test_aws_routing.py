"""Route tables of subnets, and the targets of their routes: spec 30 §7."""

import pytest

from pergola.api.objects import JsonObject
from pergola.providers.aws.byo.pod_routes import dead_pod_routes
from pergola.providers.aws.routing import reaches_internet, table_of
from pergola.providers.aws.snapshot import Snapshot


def table(name: str, *associations: JsonObject, gateway: str = "local") -> JsonObject:
    routes = [{"DestinationCidrBlock": "0.0.0.0/0", "GatewayId": gateway}]
    return {"RouteTableId": name, "Associations": list(associations), "Routes": routes}


def tables(*several: JsonObject) -> Snapshot:
    return Snapshot(route_tables={each["RouteTableId"]: each for each in several})


MAIN = table("rtb-main", {"Main": True}, {"Main": False, "SubnetId": "subnet-1"}, gateway="igw-1")
OWN = table("rtb-own", {"Main": False, "SubnetId": "subnet-2"})


@pytest.mark.parametrize(
    ("subnet", "expected"),
    [("subnet-1", "rtb-main"), ("subnet-2", "rtb-own"), ("subnet-3", "rtb-main")],
)
@pytest.mark.parametrize("several", [(MAIN, OWN), (OWN, MAIN)])
def test_a_subnet_has_its_own_table_or_else_the_main_one(
    several: tuple[JsonObject, ...], subnet: str, expected: str
) -> None:
    found = table_of(tables(*several), subnet)

    assert found is not None
    assert found["RouteTableId"] == expected
    assert reaches_internet(tables(*several), subnet) is (expected == "rtb-main")


def test_a_subnet_without_a_table_has_no_routes() -> None:
    assert table_of(Snapshot(), "subnet-1") is None
    assert not reaches_internet(Snapshot(), "subnet-1")


@pytest.mark.parametrize(
    ("route", "dead"),
    [
        ({"DestinationCidrBlock": "100.64.3.0/24", "State": "blackhole"}, ["100.64.3.0/24"]),
        ({"DestinationCidrBlock": "100.64.0.0/16", "State": "blackhole"}, ["100.64.0.0/16"]),
        ({"DestinationCidrBlock": "100.64.3.0/24", "State": "active"}, []),
        ({"DestinationCidrBlock": "100.0.0.0/8", "State": "blackhole"}, []),
        ({"DestinationCidrBlock": "0.0.0.0/0", "State": "blackhole"}, []),
        ({"DestinationCidrBlock": "10.0.0.0/24", "State": "blackhole"}, []),
        ({"DestinationIpv6CidrBlock": "2001:db8::/80", "State": "blackhole"}, ["2001:db8::/80"]),
        ({"DestinationIpv6CidrBlock": "::/0", "State": "blackhole"}, []),
        ({"DestinationPrefixListId": "pl-1", "State": "blackhole"}, []),
    ],
)
def test_only_blackhole_routes_within_the_pod_range_are_dead(
    route: JsonObject, dead: list[str]
) -> None:
    ranges = ["100.64.0.0/16", "2001:db8::/64"]

    assert list(dead_pod_routes({"Routes": [route]}, ranges)) == dead
