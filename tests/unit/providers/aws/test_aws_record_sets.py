"""Record sets of Route 53: zones, names, values and changes; pure."""

from typing import Any, cast

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api import marks
from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import InvalidRequest
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.dns import (
    desired_record_sets,
    possible_record_sets,
    read_record_sets,
    state_object,
)
from pergola.providers.aws.resources.alias_targets import ALIAS_ZONES, CLOUDFRONT, alias_zone
from pergola.providers.aws.resources.hosted_zones import HostedZone, zone_for
from pergola.providers.aws.resources.record_sets import (
    Alias,
    Placed,
    RecordSet,
    delete_record_sets,
    is_ours,
    normal_name,
    plan_record_sets,
    record_set,
)

NAME = "api.example.org"
A = record_set(NAME, "A", 120, ["192.0.2.1"])
CNAME = record_set(NAME, "CNAME", 120, ["lb.example.com"])
TXT = record_set(NAME, "TXT", 120, ["hello"])
ALIAS = record_set(NAME, "A", alias=Alias("Z1", "lb.elb.example.com"))


def dns_record(**spec: object) -> JsonObject:
    full = {"name": NAME, "recordType": "A", "values": ["192.0.2.1"], **spec}
    return {
        "kind": "DNSRecord",
        "metadata": {"name": "api", "namespace": "garden"},
        "spec": full,
    }


def actions(changes: list[JsonObject]) -> list[tuple[str, str]]:
    return [(each["Action"], each["ResourceRecordSet"]["Type"]) for each in changes]


@pytest.mark.parametrize(
    ("host", "zone"),
    [
        ("web-1.eu-west-1.elb.amazonaws.com", "Z32O12XQLNTSW2"),
        ("dualstack.web-1.eu-west-1.elb.amazonaws.com.", "Z32O12XQLNTSW2"),
        ("Web-1.elb.eu-west-1.amazonaws.com", "Z2IFOLAFXWLO4F"),
        ("web-1.elb.cn-north-1.amazonaws.com.cn", "Z3QFB96KMJ7ED6"),
        ("elb.eu-west-1.amazonaws.com", ""),
        ("web-1.elb.xx-west-1.amazonaws.com", ""),
        ("web-1.elb.eu-west-1.amazonaws.com.example.org", ""),
        ("ec2-192-0-2-1.eu-west-1.compute.amazonaws.com", ""),
        ("a1.awsglobalaccelerator.com", "Z2BJ6XQ5FK7U4H"),
        ("d1.cloudfront.net", CLOUDFRONT),
        ("d1.notcloudfront.net", ""),
        ("vpce-1-a.vpce-svc-2.eu-west-1.vpce.amazonaws.com", "Z38GZ743OKFT7T"),
        ("d-1.execute-api.eu-west-1.amazonaws.com", "ZLY8HYME6SFDD"),
        ("web-1.elb.us-gov-west-1.amazonaws.com", ""),
        ("web-1.us-gov-east-1.elb.amazonaws.com", ""),
        ("web-1.elb.cn-north-1.amazonaws.com", ""),
        ("web-1.elb.eu-west-1.amazonaws.com.cn", ""),
    ],
)
def test_alias_targets_are_recognized_by_their_host_names(host: str, zone: str) -> None:
    assert alias_zone(host) == zone


@given(
    st.sampled_from(sorted(ALIAS_ZONES)),
    st.sampled_from(["", "ipv4", "ipv6", "dual-stack"]),
    st.sampled_from(["CNAME", "A", "AAAA"]),
)
def test_a_record_of_the_same_host_in_another_form_is_taken_over(
    suffix: str, stack: str, form: str
) -> None:
    """Implementations and their versions differ in the hosts that get alias records."""
    host = f"web-1.{suffix}"
    obj = dns_record(recordType="CNAME", values=[host])
    obj["metadata"]["annotations"] = {marks.IP_STACK: stack}
    alias = None if form == "CNAME" else Alias("ZOTHER", host)
    live = record_set(NAME, form, 0 if alias else 60, [] if alias else [host], alias=alias)
    desired, possible = desired_record_sets(obj), possible_record_sets(obj)

    changes = plan_record_sets([live], desired, possible)

    types = {each.type for each in desired}
    left = {form, *(each for action, each in actions(changes) if action == "UPSERT")}
    assert left - {each for action, each in actions(changes) if action == "DELETE"} == types
    assert is_ours(live, possible)


@pytest.mark.parametrize(
    "live",
    [
        record_set(NAME, "CNAME", 60, ["other.elb.eu-west-1.amazonaws.com"]),
        record_set(NAME, "A", alias=Alias("Z1", "other.elb.eu-west-1.amazonaws.com")),
        record_set(NAME, "A", 60, ["192.0.2.1"]),
    ],
)
def test_a_record_to_another_host_is_not_ours(live: RecordSet) -> None:
    obj = dns_record(recordType="CNAME", values=["web-1.elb.eu-west-1.amazonaws.com"])

    assert not is_ours(live, possible_record_sets(obj))


def test_the_health_of_a_distribution_is_not_evaluated() -> None:
    """Route 53 refuses an alias that evaluates it."""
    [found] = desired_record_sets(dns_record(recordType="CNAME", values=["d1.cloudfront.net"]))

    assert not found.evaluates_health


@pytest.mark.parametrize(
    ("written", "name"),
    [
        ("API.Example.org.", "api.example.org"),
        (r"\052.example.org.", "*.example.org"),
        (r"a\057b.example.org", "a/b.example.org"),
    ],
)
def test_names_are_normalized_before_they_are_compared(written: str, name: str) -> None:
    assert normal_name(written) == name


def test_a_zone_matches_a_name_by_whole_labels() -> None:
    zones = [
        HostedZone("Z1", "example.org", is_private=False),
        HostedZone("Z2", "pi.example.org", is_private=False),
    ]

    assert zone_for(NAME, zones) == "Z1"
    assert zone_for("example.org", zones) == "Z1"


def test_two_public_zones_of_the_same_name_are_an_error_that_names_both() -> None:
    zones = [HostedZone(each, "example.org", is_private=False) for each in ("Z2", "Z1")]

    with pytest.raises(ExtensionError, match=r"Z1, Z2.*spec\.zone") as raised:
        zone_for(NAME, zones)
    assert raised.value.codes == (Code.CONFIGURATION_PROBLEM,)


def test_a_private_zone_of_the_same_name_as_a_public_one_does_not_count() -> None:
    zones = [
        HostedZone("Z1", "example.org", is_private=True),
        HostedZone("Z2", "example.org", is_private=False),
    ]

    assert zone_for(NAME, zones) == "Z2"


@pytest.mark.parametrize(("ttl", "expected"), [(None, 120), (0, 0), (300, 300)])
def test_the_default_time_to_live_is_two_minutes(ttl: int | None, expected: int) -> None:
    [found] = desired_record_sets(dns_record(ttl=ttl))

    assert found.ttl == expected


def test_a_long_text_is_split_into_strings_of_255_characters() -> None:
    [found] = desired_record_sets(dns_record(recordType="TXT", values=["x" * 300]))

    assert found.values == (f'"{"x" * 255}" "{"x" * 45}"',)


def test_quoted_text_is_unchanged() -> None:
    [found] = desired_record_sets(dns_record(recordType="TXT", values=['"a" "b"']))

    assert found.values == ('"a" "b"',)


def test_alias_records_follow_the_ip_stack() -> None:
    host = "web-1.elb.eu-west-1.amazonaws.com"
    obj = dns_record(recordType="CNAME", values=[host])
    obj["metadata"]["annotations"] = {marks.IP_STACK: "dual-stack"}

    found = desired_record_sets(obj)

    assert [each.type for each in found] == ["A", "AAAA"]
    assert {each.ttl for each in found} == {0}


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"name": ""}, "spec.name"),
        ({"recordType": "MX"}, "spec.recordType"),
        ({"values": []}, "spec.values"),
        ({"values": ["192.0.2.1", ""]}, "spec.values"),
        ({"recordType": "CNAME", "values": ["a.example.com", "b.example.com"]}, "spec.values"),
    ],
)
def test_the_error_about_an_invalid_spec_names_its_field(spec: JsonObject, field: str) -> None:
    with pytest.raises(ExtensionError, match=f"DNSRecord garden/api: {field}") as raised:
        desired_record_sets(dns_record(**spec))
    assert raised.value.codes == (Code.CONFIGURATION_PROBLEM,)


def test_the_state_preserves_record_sets() -> None:
    balancer = desired_record_sets(
        dns_record(recordType="CNAME", values=["web-1.elb.eu-west-1.amazonaws.com"])
    )
    placed = tuple(Placed("Z1", each) for each in (A, TXT, *balancer))

    assert read_record_sets({"status": {"state": state_object(placed)}}) == placed


def test_nothing_changes_if_nothing_differs() -> None:
    assert plan_record_sets([A, TXT], [A], []) == []


def test_our_record_of_another_type_is_deleted_with_the_creation() -> None:
    assert actions(plan_record_sets([A], [CNAME], [A])) == [("DELETE", "A"), ("UPSERT", "CNAME")]
    assert actions(plan_record_sets([CNAME], [A], [CNAME])) == [
        ("DELETE", "CNAME"),
        ("UPSERT", "A"),
    ]


def test_our_record_with_another_time_to_live_is_recognized() -> None:
    changed = A._replace(ttl=5)

    assert actions(plan_record_sets([changed], [CNAME], [A])) == [
        ("DELETE", "A"),
        ("UPSERT", "CNAME"),
    ]


@pytest.mark.parametrize(
    ("live", "desired"),
    [
        (CNAME, A),
        (TXT, CNAME),
        (A._replace(routing="blue"), A._replace(values=("192.0.2.9",))),
    ],
)
def test_a_foreign_record_that_conflicts_with_ours_is_an_error(
    live: RecordSet, desired: RecordSet
) -> None:
    with pytest.raises(ExtensionError, match="not created for this DNSRecord"):
        plan_record_sets([live], [desired], [])


class OneAlias:
    """Route 53 with one alias; like it, refuses a deletion that differs from the record."""

    def __init__(self, record: JsonObject) -> None:
        self.records = [record]

    async def call(self, service: str, operation: str, **parameters: Any) -> JsonObject:
        del service
        if operation == "ListResourceRecordSets":
            return {"ResourceRecordSets": self.records, "IsTruncated": False}
        for change in parameters["ChangeBatch"]["Changes"]:
            if change["ResourceRecordSet"] not in self.records:
                raise InvalidRequest("the values do not match", code="InvalidChangeBatch")
            self.records.remove(change["ResourceRecordSet"])
        return {}


@pytest.mark.parametrize("evaluates", [True, False])
async def test_an_alias_is_deleted_with_the_health_evaluation_that_it_has(
    *, evaluates: bool
) -> None:
    target = {
        "HostedZoneId": "Z1",
        "DNSName": "lb.example.com.",
        "EvaluateTargetHealth": evaluates,
    }
    route53 = OneAlias({"Name": f"{NAME}.", "Type": "A", "AliasTarget": target})
    ours = record_set(NAME, "A", alias=Alias("Z1", "lb.example.com"))

    left = await delete_record_sets(cast("AwsClient", route53), "Z2", NAME, [ours])

    assert left == []
    assert route53.records == []


@pytest.mark.parametrize(
    ("ours", "live", "is_named"),
    [
        (CNAME, ALIAS, True),
        (ALIAS, CNAME, True),
        (ALIAS, ALIAS._replace(type="AAAA", alias=Alias("Z1", "other.example.com")), True),
        (A, CNAME, True),
        (A, A._replace(values=("192.0.2.9",)), True),
        (A, ALIAS._replace(type="AAAA"), False),
        (A, TXT, False),
        (TXT, A, False),
    ],
)
async def test_a_deletion_names_the_records_that_stay_in_place_of_ours(
    ours: RecordSet, live: RecordSet, *, is_named: bool
) -> None:
    change = plan_record_sets([], [live], [])[0]
    route53 = OneAlias(change["ResourceRecordSet"])

    left = await delete_record_sets(cast("AwsClient", route53), "Z2", NAME, [ours])

    assert left == ([live] if is_named else [])
    assert len(route53.records) == 1


def test_a_changed_health_evaluation_is_corrected() -> None:
    desired = record_set(NAME, "A", alias=Alias("Z1", "lb.example.com"))
    live = desired._replace(evaluates_health=False)

    [change] = plan_record_sets([live], [desired], [desired])

    assert change["ResourceRecordSet"]["AliasTarget"]["EvaluateTargetHealth"] is True
