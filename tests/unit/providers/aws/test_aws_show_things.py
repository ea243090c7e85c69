"""The picture of a network with the owners of its parts, as text and as SVG."""

import xml.etree.ElementTree as ET

from pergola.api.objects import JsonObject
from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import InfrastructureConfig, Networks, Vpc, Zone
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.tags import as_list
from pergola.providers.aws.show import Owner, Thing, svg, things, tree
from pergola.providers.aws.snapshot import Snapshot

ZONE = "eu-west-1a"
TAG = "kubernetes.io/cluster/shoot--p--s"
OURS = as_list({TAG: "owned"})
SHARED = as_list({TAG: "shared"})


def desired(**zone: str) -> Desired:
    networks = Networks(vpc=Vpc(id="vpc-1"), zones=[Zone(name=ZONE, **zone)])
    config = InfrastructureConfig(networks=networks)
    return Desired(technical_id="shoot--p--s", region="eu-west-1", config=config)


def snapshot() -> Snapshot:
    routes: list[JsonObject] = [
        {"DestinationCidrBlock": "10.0.0.0/16", "GatewayId": "local"},
        {"DestinationCidrBlock": "0.0.0.0/0", "NatGatewayId": "nat-1", "State": "blackhole"},
    ]
    return Snapshot(
        vpc={"VpcId": "vpc-1", "CidrBlock": "10.0.0.0/16"},
        subnets={
            "subnet-w": {"CidrBlock": "10.0.1.0/24", "AvailableIpAddressCount": 7, "Tags": SHARED},
            "subnet-p": {"CidrBlock": "10.0.2.0/24", "Tags": OURS},
            "subnet-x": {"CidrBlock": "10.0.3.0/24"},
        },
        route_tables={
            "rtb-1": {
                "RouteTableId": "rtb-1",
                "Associations": [{"SubnetId": "subnet-w"}],
                "Routes": routes,
                "Tags": OURS,
            }
        },
        nat_gateways={
            "nat-1": {
                "SubnetId": "subnet-p",
                "State": "pending",
                "NatGatewayAddresses": [{"PublicIp": "1.2.3.4", "AllocationId": "eipalloc-1"}],
                "Tags": OURS,
            },
            "nat-0": {"SubnetId": "subnet-p", "State": "deleted"},
        },
        security_groups={"sg-1": {"IpPermissions": [{}, {}], "Tags": OURS}, "sg-2": {}},
        endpoints={"vpce-1": {"ServiceName": "com.amazonaws.eu-west-1.s3", "Tags": OURS}},
        role={"RoleName": "shoot--p--s-nodes"},
        key_pair={"KeyName": "shoot--p--s-ssh-publickey"},
    )


def state() -> State:
    return State(
        {
            keys.NODES_SECURITY_GROUP: "sg-1",
            keys.zone_key(ZONE, keys.SUBNET_PUBLIC): "subnet-p",
        }
    )


def test_each_item_has_a_line_with_its_parent_and_owner() -> None:
    assert tree(things(desired(workers_subnet_id="subnet-w"), snapshot(), state())) == (
        """\
cluster shoot--p--s in eu-west-1
├── VPC vpc-1 10.0.0.0/16 [the user's]
│   ├── gateway endpoint vpce-1 for s3 [ours]
│   ├── zone eu-west-1a
│   │   ├── subnet for nodes subnet-w 10.0.1.0/24 (7 addresses free) [the user's, with our tag]
│   │   │   └── route table rtb-1 [ours]
│   │   │       ├── route 10.0.0.0/16 → local
│   │   │       └── route 0.0.0.0/0 → nat-1 (blackhole)
│   │   └── subnet for public load balancers subnet-p 10.0.2.0/24 [ours]
│   │       └── NAT gateway nat-1 1.2.3.4 eipalloc-1 pending [ours]
│   ├── security group of nodes sg-1 2 rules in, 0 out [ours]
│   └── other subnets 1 [the user's]
├── IAM role shoot--p--s-nodes [ours]
└── key pair shoot--p--s-ssh-publickey [ours]
"""
    )


def test_an_empty_network_is_reported() -> None:
    nothing = things(desired(workers="10.0.1.0/24"), Snapshot(), State())
    assert tree(nothing) == "cluster shoot--p--s in eu-west-1: there is nothing yet\n"


def texts(document: str) -> list[str]:
    return [
        element.text or ""
        for element in ET.fromstring(document).iter("{http://www.w3.org/2000/svg}text")  # noqa: S314 - made here
    ]


def all_of(thing: Thing) -> list[Thing]:
    return [thing, *(inner for part in thing.parts for inner in all_of(part))]


def test_the_svg_has_all_items_and_a_legend() -> None:
    root = things(desired(workers_subnet_id="subnet-w"), snapshot(), state())
    said = texts(svg(root))
    assert {thing.title for thing in all_of(root)} <= set(said)
    assert {str(owner) for owner in Owner if owner} <= set(said)


def test_xml_characters_are_escaped() -> None:
    assert "a <b> & c" in texts(svg(Thing("a", "<b>", "& c")))


def test_boxes_are_inside_their_parents_and_zones_side_by_side() -> None:
    zones = tuple(Thing("zone", name, parts=(Thing("subnet", "s"),)) for name in "ab")
    document = svg(Thing("VPC", parts=(Thing("gateway"), *zones, Thing("group"))))
    rects = [
        {key: float(element.get(key) or 0) for key in ("x", "y", "width", "height")}
        for element in ET.fromstring(document).iter("{http://www.w3.org/2000/svg}rect")  # noqa: S314 - made here
    ]
    vpc, gateway, first, _, second, _, group = rects[-7:]
    for inner in (gateway, first, second, group):
        assert vpc["x"] < inner["x"]
        assert inner["x"] + inner["width"] < vpc["x"] + vpc["width"]
        assert vpc["y"] < inner["y"]
        assert inner["y"] + inner["height"] < vpc["y"] + vpc["height"]
    assert first["y"] == second["y"] > gateway["y"] + gateway["height"]
    assert second["x"] > first["x"] + first["width"]
    assert group["y"] > first["y"] + first["height"]
