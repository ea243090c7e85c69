"""Where admission of Shoots finds a mistake is where the original finds it.

The verdicts themselves are compared in `conformance`.
"""

from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject
from pergola.providers.aws.shoot_webhooks import shoot_validator

DATA: Final = Path(__file__).parent / "data"
SHOOTS: Final = GroupVersionResource("core.gardener.cloud", "v1beta1", "shoots")


def base() -> JsonObject:
    """Return a valid Shoot with its CloudProfile."""
    found: JsonObject = orjson.loads((DATA / "shoot.json").read_bytes())
    return found


def verdict_of(given: JsonObject) -> Verdict:
    profiles = [each for each in given.get("others") or () if "CloudProfile" in each["kind"]]
    request = Request(
        uid="1",
        operation="UPDATE" if given.get("old") else "CREATE",
        kind=SHOOT,
        resource=SHOOTS,
        namespace="garden-demo",
        name="blue",
        object=given["object"],
        old_object=given.get("old"),
    )
    verdict = shoot_validator(lambda _: profiles[0] if profiles else None)(request)
    assert isinstance(verdict, Verdict)
    return verdict


def with_networks(given: JsonObject, change: Any) -> JsonObject:
    shoot = orjson.loads(orjson.dumps(given["object"]))
    change(shoot["spec"], shoot["spec"]["provider"]["infrastructureConfig"])
    return {**given, "object": shoot}


def _empty_vpc(_: JsonObject, config: JsonObject) -> None:
    config["networks"]["vpc"] = {"id": ""}


def _nodes_outside(spec: JsonObject, _: JsonObject) -> None:
    spec["networking"]["nodes"] = "10.0.0.0/8"


def _block_without_ipv6(_: JsonObject, config: JsonObject) -> None:
    pool = {"id": "ipam-pool-1", "cidrBlock": "2001:db8::/56"}
    config["networks"]["vpc"]["ipv6IpamPool"] = pool


def _zone_twice(_: JsonObject, config: JsonObject) -> None:
    zones = config["networks"]["zones"]
    zones[1]["name"] = zones[0]["name"]


def _load_balancer_subnets(_: JsonObject, config: JsonObject) -> None:
    config["networks"]["zones"][0]["publicSubnetID"] = "subnet-1"
    config["networks"]["zones"][0]["internalSubnetID"] = ""


def _empty_tags(_: JsonObject, config: JsonObject) -> None:
    config["ignoreTags"] = {"keys": [""], "keyPrefixes": [""]}


def _overlap(_: JsonObject, config: JsonObject) -> None:
    zone = config["networks"]["zones"][0]
    zone["workers"] = zone["public"]


CONFIG: Final = "spec.provider.infrastructureConfig"
ZONE: Final = f"{CONFIG}.networks.zones[0]"


@pytest.mark.parametrize(
    ("change", "expected"),
    [
        (_empty_vpc, {("FieldValueRequired", f"{CONFIG}.networks.vpc.id")}),
        # The original names networking.nodes, which the InfrastructureConfig does not have.
        (_nodes_outside, {("FieldValueInvalid", f"{CONFIG}.networks.vpc.cidr")}),
        (
            _block_without_ipv6,
            {("FieldValueInvalid", f"{CONFIG}.networks.vpc.ipv6IpamPool.cidrBlock")},
        ),
        # The original says so when it compares the config with the CloudProfile.
        (
            _zone_twice,
            {
                ("FieldValueDuplicate", f"{CONFIG}.networks.zones[1].name"),
                ("FieldValueInvalid", "spec.provider.workers[0].zones[1]"),
            },
        ),
        (
            _load_balancer_subnets,
            {
                ("FieldValueForbidden", f"{ZONE}.publicSubnetID"),
                ("FieldValueForbidden", f"{ZONE}.internalSubnetID"),
            },
        ),
        (
            _empty_tags,
            {
                ("FieldValueRequired", f"{CONFIG}.ignoreTags.keys[0]"),
                ("FieldValueRequired", f"{CONFIG}.ignoreTags.keyPrefixes[0]"),
            },
        ),
        (_overlap, {("FieldValueInvalid", f"{ZONE}.workers")}),
    ],
)
def test_findings_about_networks_are_those_of_the_original(
    change: Any, expected: set[tuple[str, str]]
) -> None:
    verdict = verdict_of(with_networks(base(), change))

    assert {(cause.reason, cause.field) for cause in verdict.causes} == expected


def test_a_longer_tag_than_the_name_may_be_ignored() -> None:
    def change(_: JsonObject, config: JsonObject) -> None:
        config["ignoreTags"] = {"keyPrefixes": ["NameFooIsAllowed"]}

    assert verdict_of(with_networks(base(), change)).allowed


def test_the_primary_dns_provider_needs_credentials() -> None:
    def change(spec: JsonObject, _: JsonObject) -> None:
        spec["dns"] = {
            "providers": [
                {"type": "aws-route53"},
                {"type": "aws-route53", "primary": True},
                {"type": "other", "primary": True},
            ]
        }

    verdict = verdict_of(with_networks(base(), change))

    (cause,) = verdict.causes
    assert cause.field == "spec.dns.providers[1].credentialsRef"


def test_a_shoot_without_networking_needs_a_range_for_its_nodes() -> None:
    def change(spec: JsonObject, _: JsonObject) -> None:
        del spec["networking"]

    verdict = verdict_of(with_networks(base(), change))

    assert "spec.networking.nodes" in {cause.field for cause in verdict.causes}
