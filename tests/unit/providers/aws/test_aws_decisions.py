"""Decisions of single steps, which depend only on what is desired, known and described."""

from collections.abc import Mapping
from dataclasses import replace
from typing import Any, cast

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient, Credentials
from pergola.flow import State
from pergola.flow.picture import Fate
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import (
    ElasticFileSystem,
    InfrastructureConfig,
    Networks,
    Vpc,
    Zone,
)
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import elastic_ips, endpoints, service_range
from pergola.providers.aws.resources.efs import mount_targets
from pergola.providers.aws.resources.step import Work
from pergola.providers.aws.snapshot import Snapshot

ZONE = "eu-west-1a"


def work(state: dict[str, str], **config: object) -> Work:
    zone = Zone(name=ZONE, workers="10.0.0.0/24", public="10.0.1.0/24")
    networks = Networks(vpc=Vpc(cidr="10.0.0.0/16"), zones=[zone])
    given = {"networks": networks, **config}
    return Work(
        aws=AwsClient("eu-west-1", credentials=Credentials("a", "b")),
        desired=Desired(
            technical_id="shoot--p--s",
            region="eu-west-1",
            config=InfrastructureConfig(**given),  # type: ignore[arg-type]  # fields of a struct
        ),
        state=State({keys.VPC: "vpc-1", **state}),
        snapshot=Snapshot(),
    )


def with_file_system(*, group: str) -> Work:
    """Return a cluster with a user's file system and a mount target of ours for a group."""
    found = work(
        {
            keys.NODES_SECURITY_GROUP: "sg-new",
            keys.zone_key(ZONE, keys.SUBNET_WORKERS): "subnet-1",
            keys.mount_target_key("fs-1", "subnet-1", group): "fsmt-1",
        },
        elastic_file_system=ElasticFileSystem(enabled=True, id="fs-1"),
    )
    found.snapshot.mount_targets["fsmt-1"] = mount_target("subnet-1")
    return found


def mount_target(subnet: str) -> JsonObject:
    return {"SubnetId": subnet, "AvailabilityZoneName": ZONE, "LifeCycleState": "available"}


def test_a_mount_target_with_another_group_is_replaced() -> None:
    old = with_file_system(group="sg-old")

    decision = mount_targets.step(old.desired, None).decide(old)

    assert (decision.note.fate, decision.warnings) == (Fate.CREATE, ())


def test_a_mount_target_with_the_right_group_is_kept() -> None:
    right = with_file_system(group="sg-new")

    assert mount_targets.step(right.desired, None).decide(right).note.fate is Fate.KEEP


class Recorder:
    """Records requests to AWS.

    Attributes:
        items: what it returns for `pages`, by the id of the subnet.
    """

    def __init__(self, items: Mapping[str, list[JsonObject]] | None = None) -> None:
        self.items = items or {}
        self.sent: list[tuple[str, JsonObject]] = []

    async def call(self, service: str, operation: str, **parameters: Any) -> JsonObject:
        del service
        self.sent.append((operation, parameters))
        return {"MountTargetId": "fsmt-2", "LifeCycleState": "available"}

    async def pages(self, *_: str, **parameters: str) -> list[JsonObject]:
        return self.items.get(parameters["SubnetId"], [])


@pytest.mark.parametrize(
    ("families", "expected"),
    [
        (("IPv4",), "IPV4_ONLY"),
        (("IPv4", "IPv6"), "DUAL_STACK"),
        (("IPv6", "IPv4"), "DUAL_STACK"),
        (("IPv6",), "IPV6_ONLY"),
    ],
)
async def test_a_mount_target_has_addresses_of_the_families_of_the_shoot(
    families: tuple[str, ...], expected: str
) -> None:
    """AWS gives it IPv4 addresses by default, which a subnet with IPv6 alone does not have."""
    aws = Recorder()
    found = with_file_system(group="sg-new")
    found.snapshot.mount_targets.clear()
    found.aws = cast("AwsClient", aws)
    found.desired = replace(found.desired, families=families)

    for call in mount_targets.step(found.desired, None).decide(found).calls:
        await call()

    [(operation, parameters)] = aws.sent
    assert (operation, parameters["IpAddressType"]) == ("CreateMountTarget", expected)


WORKERS = {"subnet-1": "2001:db8:0:1::", "subnet-2": "2001:db8:0:2::"}


@pytest.mark.parametrize(
    ("without_range", "reserved", "expected"),
    [
        ((), (), "2001:db8:0:1::10:0/108"),
        ((), ("subnet-1",), "2001:db8:0:1::10:0/108"),
        ((), ("subnet-2",), "2001:db8:0:2::10:0/108"),
        ((), ("subnet-1", "subnet-2"), "2001:db8:0:1::10:0/108"),
        (("subnet-1",), (), "2001:db8:0:2::10:0/108"),
    ],
)
async def test_the_range_of_services_is_the_one_that_any_worker_subnet_reserves(
    without_range: tuple[str, ...], reserved: tuple[str, ...], expected: str
) -> None:
    """A zone that is added later may have a subnet whose id is the first."""
    aws = Recorder({name: [{"Cidr": f"{WORKERS[name]}10:0/108"}] for name in reserved})
    zones = [Zone(name=name, workers_subnet_id=name) for name in WORKERS]
    found = work({}, networks=Networks(vpc=Vpc(id="vpc-1"), zones=zones))
    found.aws = cast("AwsClient", aws)
    found.desired = replace(found.desired, families=("IPv4", "IPv6"))
    for name, block in WORKERS.items():
        held = {"Ipv6CidrBlock": f"{block}/64", "Ipv6CidrBlockState": {"State": "associated"}}
        found.snapshot.subnets[name] = {
            "Ipv6CidrBlockAssociationSet": [] if name in without_range else [held]
        }

    (step,) = service_range.steps(found.desired)
    for call in step.decide(found).calls:
        await call()

    assert found.state.get(keys.SERVICE_CIDR) == expected
    created = [parameters["Cidr"] for _, parameters in aws.sent]
    assert created == ([] if reserved else [expected])


def test_no_mount_target_would_be_created_beside_one_of_the_user() -> None:
    taken = with_file_system(group="sg-new")
    taken.state.forget(keys.mount_target_key("fs-1", "subnet-1", "sg-new"))
    taken.snapshot.mount_targets["fsmt-1"] = mount_target("subnet-of-the-user")

    decision = mount_targets.step(taken.desired, None).decide(taken)

    assert decision.note.fate is Fate.KEEP
    assert "already has mount target fsmt-1" in decision.warnings[0]


@pytest.mark.parametrize(("association", "calls"), [({}, 1), ({"AssociationId": "a"}, 0)])
def test_a_replaced_elastic_ip_is_released_once_it_is_unused(
    association: JsonObject, calls: int
) -> None:
    zone = Zone(name=ZONE, public="10.0.1.0/24", elastic_ip_allocation_id="eipalloc-user")
    existing = work({keys.zone_key(ZONE, keys.ADDRESS): "eipalloc-1"})
    existing.snapshot.addresses["eipalloc-1"] = {"AllocationId": "eipalloc-1", **association}
    [step] = elastic_ips.steps(existing.desired, zone)

    decision = step.decide(existing)

    assert decision.note.fate is Fate.DELETE
    assert len(decision.calls) == calls


def test_wrong_tags_of_an_endpoint_are_part_of_the_plan() -> None:
    existing = work({keys.endpoint_key("s3"): "vpce-1"})
    existing.desired.config.networks.vpc.gateway_endpoints = ["s3"]
    existing.snapshot.endpoints["vpce-1"] = {"VpcEndpointId": "vpce-1", "VpcId": "vpc-1"}
    [step] = endpoints.steps(existing.desired)

    assert str(step.decide(existing).note) == "would change: tags of vpce-1"
