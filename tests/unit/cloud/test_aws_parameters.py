"""No request to AWS affects more than it names, whatever an id, name or tag contains."""

import re
from typing import Any

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.parameters import checked
from pergola.cloud.errors import InvalidRequest

READS_AND_REMOVALS = (
    ("DescribeVpcs", "VpcIds"),
    ("DescribeSubnets", "SubnetIds"),
    ("DescribeSecurityGroups", "GroupIds"),
    ("DescribeLoadBalancers", "LoadBalancerArns"),
    ("DescribeLoadBalancers", "Names"),
    ("DescribeFileSystems", "FileSystemId"),
    ("DescribeMountTargets", "FileSystemId"),
    ("GetRole", "RoleName"),
    ("DeleteTags", "Resources"),
    ("DeleteTags", "Tags"),
    ("DeleteVpc", "VpcId"),
    ("DeleteVpcEndpoints", "VpcEndpointIds"),
    ("ReleaseAddress", "AllocationId"),
    ("RevokeSecurityGroupIngress", "IpPermissions"),
    ("TerminateInstances", "InstanceIds"),
    ("CreateTags", "Resources"),
    ("ModifyVpcEndpoint", "VpcEndpointId"),
)
EMPTY = st.sampled_from(["", b"", None, [], (), [""], [None], ["vpc-1", ""]])
ODD = st.text(alphabet=st.sampled_from("ab*?\\ é:/"), max_size=6)


class Untouched(AwsClient):
    """An AWS that must not receive requests."""

    async def _ask(self, service: str, operation: str, parameters: JsonObject) -> JsonObject:
        raise AssertionError(f"{service} {operation} was sent with {parameters}")


def sent(operation: str, **parameters: Any) -> JsonObject:
    return checked(f"ec2 {operation} in eu-west-1", operation, parameters)


def matches(pattern: str, text: str) -> bool:
    """Match like AWS: `*` is any text, `?` any character, and a backslash escapes both."""
    parts = re.findall(r"\\.|.", pattern, re.DOTALL)
    known = {"*": ".*", "?": "."}
    expression = "".join(known.get(part, re.escape(part[-1])) for part in parts)
    return re.fullmatch(expression, text, re.DOTALL) is not None


@pytest.mark.parametrize(("operation", "name"), READS_AND_REMOVALS)
@given(empty=EMPTY)
def test_an_empty_id_name_or_list_is_never_sent(operation: str, name: str, empty: object) -> None:
    assume(not (operation == "ModifyVpcEndpoint" and empty == []))  # not a list there
    with pytest.raises(InvalidRequest, match=f"{name} is empty"):
        sent(operation, **{name: empty})


@given(
    name=st.sampled_from(["vpc-id", "subnet-id", "tag-key", "group-id", "key-name"]),
    values=st.sampled_from([[], [""], ["vpc-1", ""], None]),
    by=st.sampled_from(["Filters", "Filter"]),
)
def test_a_filter_without_a_value_is_never_sent(name: str, values: list[str], by: str) -> None:
    with pytest.raises(InvalidRequest, match=f"filter {name} has no value"):
        sent("DescribeSubnets", **{by: [{"Name": name, "Values": values}]})


@pytest.mark.parametrize("name", ["", "tag:"])
def test_a_filter_without_a_name_is_never_sent(name: str) -> None:
    with pytest.raises(InvalidRequest, match="without a name"):
        sent("DescribeVpcs", Filters=[{"Name": name, "Values": ["x"]}])


def test_an_empty_list_of_filters_is_refused() -> None:
    assert sent("DescribeAddresses") == {}
    with pytest.raises(InvalidRequest, match="Filters is empty"):
        sent("DescribeAddresses", Filters=[])


def test_a_tag_may_have_an_empty_value_but_no_empty_key() -> None:
    assert sent("DescribeVpcs", Filters=[{"Name": "tag:team", "Values": [""]}])
    assert sent("DeleteTags", Resources=["vpc-1"], Tags=[{"Key": "team", "Value": ""}])
    with pytest.raises(InvalidRequest, match="without a key"):
        sent("DeleteTags", Resources=["vpc-1"], Tags=[{"Key": "", "Value": "x"}])


@given(value=ODD, other=ODD)
def test_a_value_with_wildcards_matches_only_itself(value: str, other: str) -> None:
    assume(value != other)
    (condition,) = sent("DescribeVpcs", Filters=[{"Name": "tag:Name", "Values": [value]}])[
        "Filters"
    ]
    (pattern,) = condition["Values"]
    assert matches(pattern, value)
    assert not matches(pattern, other)


def test_new_resources_may_have_empty_properties() -> None:
    parameters = {"VpcId": "vpc-1", "RouteTableIds": [], "Description": "", "Tags": []}
    assert sent("CreateVpcEndpoint", **parameters) == parameters


@given(empty=EMPTY)
async def test_the_client_refuses_unsafe_parameters_before_it_sends_them(empty: object) -> None:
    async with Untouched("eu-west-1") as client:
        with pytest.raises(InvalidRequest, match="the request was not sent"):
            await client.call("ec2", "DeleteTags", Resources=["vpc-1"], Tags=empty)
        with pytest.raises(InvalidRequest, match="the request was not sent"):
            await client.pages("ec2", "DescribeVpcs", "Vpcs", VpcIds=empty)
