"""Admission of Shoots decides like the original's (gardener-extension-provider-aws v1.73.0).

`data/shoot_admission.jsonl.gz` has 565 Shoots, most of them a valid one with one changed field,
with the original's verdict: reason and field of each error. `data/shoot_defaults.jsonl.gz` has 33
Shoots as they are before and after the original's mutator.
"""

import gzip
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from pergola.admission.draft import Draft
from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject
from pergola.providers.aws.shoot_defaults import mutate_shoot
from pergola.providers.aws.shoot_webhooks import aws_shoot_validator

DATA: Final = Path(__file__).parent / "data"
SHOOTS: Final = GroupVersionResource("core.gardener.cloud", "v1beta1", "shoots")
DECIDED: Final = {
    "pool: no CloudProfile": (
        "gardener-apiserver refuses it, and the cache of CloudProfiles may only be late"
    ),
    "update: image left the CloudProfile": (
        "an operator who removes an image must not stop changes of the clusters that use it"
    ),
    "update: image left the CloudProfile, another change": "the same",
    "update: machine type left the CloudProfile": "the same",
    "update: old without infrastructureConfig": "the new Shoot repairs it",
    "update: unknown field in WorkerConfig, old and new": (
        "findings that the stored Shoot also has are warnings"
    ),
}
"""Cases that are admitted although the original refuses them, with the reason."""
DECIDED_DEFAULTS: Final = {
    "new, IPv4IPv6, load balancer controller off": "the original writes a default of its own type",
    "new, IPv6, load balancer controller off": "the same",
    "new, custom routes on, overlay on": "the same",
    "new, no infrastructureConfig": "validation reports it; a part of a config helps nobody",
    "new, overlay is no object": "validation reports it",
    "new, unknown field in controlPlaneConfig": "validation reports it, with its path",
    "new, unknown field in infrastructureConfig": "the same",
    "update, overlay never said": "overlay and routes have their defaults, which agree",
    "update, restored": "the same",
}
"""Cases whose defaults differ from the original's, with the reason."""


def cases(name: str = "shoot_admission") -> list[JsonObject]:
    lines = gzip.decompress((DATA / f"{name}.jsonl.gz").read_bytes()).splitlines()
    return [orjson.loads(line) for line in lines]


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
    verdict = aws_shoot_validator(lambda _: profiles[0] if profiles else None).handler(request)
    assert isinstance(verdict, Verdict)
    return verdict


def test_the_verdicts_are_those_of_the_original_but_for_decided_ones() -> None:
    different = {
        case["case"]
        for case in cases()
        if verdict_of(case["input"]).allowed is bool(case["verdict"])
    }
    assert different == DECIDED.keys()


def test_nothing_is_refused_that_the_original_admits() -> None:
    admitted = [case for case in cases() if not case["verdict"]]

    assert len(admitted) > 270
    refused = [case["case"] for case in admitted if not verdict_of(case["input"]).allowed]
    assert refused == []


def test_the_defaults_are_those_of_the_original_but_for_decided_ones() -> None:
    different = set()
    for case in cases("shoot_defaults"):
        given, expected = case["input"], case["output"]
        if "panic" in expected:  # a crash of the original
            continue
        draft = Draft(orjson.loads(orjson.dumps(given["object"])))
        mutate_shoot(draft, given.get("old"))
        after = given["object"] if expected.get("unchanged") else expected.get("after")
        if draft.object != after:
            different.add(case["case"])

    assert different == DECIDED_DEFAULTS.keys()


def base() -> JsonObject:
    (found,) = (case for case in cases() if case["case"] == "ControlPlaneConfig with everything")
    given: JsonObject = found["input"]
    return given


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
