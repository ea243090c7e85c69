"""The instance of a bastion, with recorded answers of AWS."""

import gzip
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import Any, cast

import pytest

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import InvalidRequest
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.bastion.host import ensure_instance
from pergola.providers.aws.bastion.machine import Machine
from pergola.providers.aws.bastion.site import Site

NOW = datetime(2026, 1, 1, 12, tzinfo=UTC)
SITE = Site(
    technical_id="shoot--p--s",
    name="cli",
    uid="u-1",
    vpc="vpc-1",
    subnet="subnet-1",
    nodes_group="sg-1",
    is_users_group=False,
)
STARTED: JsonObject = {"InstanceId": "i-new"}


class Aws:
    """An AWS with some instances, which refuses some tokens."""

    def __init__(self, *instances: JsonObject, refused: dict[str, str] | None = None) -> None:
        self.instances = list(instances)
        self.refused = refused or {}
        self.started: list[JsonObject] = []

    async def pages(self, *_: str, **__: object) -> list[JsonObject]:
        return [{"Instances": self.instances}]

    async def call(self, service: str, operation: str, **parameters: Any) -> JsonObject:
        assert (service, operation) == ("ec2", "RunInstances")
        self.started.append(parameters)
        if code := self.refused.get(parameters["ClientToken"]):
            raise InvalidRequest(code, code=code)
        return {"Instances": [STARTED]}


async def ensured(aws: Aws) -> JsonObject:
    client = cast("AwsClient", aws)
    return await ensure_instance(client, SITE, Machine("t3.micro", "ami-1"), "sg-2", NOW)


def instance(state: str, *, age: int = 0, code: str = "", **more: object) -> JsonObject:
    return {
        "InstanceId": f"i-{age}",
        "VpcId": "vpc-1",
        "State": {"Name": state},
        "NetworkInterfaces": [{"Groups": [{"GroupName": SITE.group_name}]}],
        "LaunchTime": NOW - timedelta(minutes=age),
        **({"StateReason": {"Code": code, "Message": f"{code}: why"}} if code else {}),
        **more,
    }


async def test_instances_start_where_instance_metadata_is_restricted() -> None:
    """Tag keys with a slash are refused where the account puts tags into the metadata."""
    aws = Aws()

    assert await ensured(aws) == STARTED

    (parameters,) = aws.started
    assert parameters["MetadataOptions"] == {
        "HttpTokens": "required",
        "InstanceMetadataTags": "disabled",
    }


@pytest.mark.parametrize(
    "data",
    [b"#!/bin/sh\n", gzip.compress(b"#!/bin/sh\n", mtime=0), b"\xff\x00", b""],
    ids=["text", "compressed", "bytes", "empty"],
)
async def test_user_data_reaches_the_instance_byte_by_byte(data: bytes) -> None:
    """It may be compressed. The library encodes it."""
    aws = Aws()
    site = replace(SITE, user_data=data)

    await ensure_instance(cast("AwsClient", aws), site, Machine("t3.micro", "ami-1"), "sg-2", NOW)

    assert aws.started[0]["UserData"] == data


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("Client.InvalidKMSKey.InvalidState", Code.CONFIGURATION_PROBLEM),
        ("Client.VolumeLimitExceeded", Code.CONFIGURATION_PROBLEM),
        ("Server.InternalError", Code.DEPENDENCIES),
    ],
)
async def test_the_reason_of_an_instance_that_ended_is_reported_and_no_other_is_started(
    code: str, expected: Code
) -> None:
    aws = Aws(instance("terminated", age=30), instance("terminated", age=1, code=code))

    with pytest.raises(ExtensionError, match=rf"i-1 .* ended by itself: {code}: why") as raised:
        await ensured(aws)

    assert raised.value.codes == (expected,)
    assert aws.started == []


@pytest.mark.parametrize(
    "ended",
    [
        instance("terminated", age=11, code="Server.InternalError"),
        instance("terminated", age=1, code="Client.UserInitiatedShutdown"),
        instance("shutting-down", age=1, code="Server.InternalError"),
        instance("running", VpcId="vpc-2"),
        instance("running", NetworkInterfaces=[{"Groups": [{"GroupName": "users"}]}]),
    ],
)
async def test_other_instances_do_not_prevent_a_start(ended: JsonObject) -> None:
    assert await ensured(Aws(ended)) == STARTED


@pytest.mark.parametrize("state", ["pending", "running", "stopped"])
async def test_an_existing_instance_is_kept(state: str) -> None:
    aws = Aws(instance("terminated", age=1, code="Server.InternalError"), instance(state))

    assert (await ensured(aws))["State"]["Name"] == state
    assert aws.started == []


async def test_tokens_of_instances_that_are_gone_or_had_another_image_are_skipped() -> None:
    refused = {"u-1-0": "IdempotentInstanceTerminated", "u-1-1": "IdempotentParameterMismatch"}
    aws = Aws(refused=refused)

    assert await ensured(aws) == STARTED
    assert [each["ClientToken"] for each in aws.started] == ["u-1-0", "u-1-1", "u-1-2"]


async def test_an_instance_that_aws_does_not_list_yet_is_not_started_twice() -> None:
    """AWS answers an equal request with the same token with the same instance."""
    aws = Aws()

    assert await ensured(aws) == await ensured(aws)

    first, second = aws.started
    assert first == second
    assert first["ClientToken"]


async def test_other_refusals_are_passed_on() -> None:
    with pytest.raises(InvalidRequest, match="InvalidAMIID"):
        await ensured(Aws(refused={"u-1-0": "InvalidAMIID.NotFound"}))
