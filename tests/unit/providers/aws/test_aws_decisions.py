"""Decisions of single steps, which depend only on what is desired, known and described."""

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
from pergola.providers.aws.resources import elastic_ips, endpoints
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
