"""Conditions about user-provided resources: spec 30 §6.4, Beyond 10."""

from dataclasses import replace
from datetime import UTC, datetime, timedelta
from typing import cast

import msgspec
import pytest

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks.checks import CheckContext, Verdict
from pergola.kube.client import Client
from pergola.providers.aws.config import (
    ElasticFileSystem,
    InfrastructureConfig,
    Networks,
    Vpc,
    Zone,
)
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.health.checks import PERIOD, _Remembered, verdict
from pergola.providers.aws.health.condition import ConditionUpdate as Said
from pergola.providers.aws.health.load_balancer_subnets import load_balancer_subnets_available
from pergola.providers.aws.health.security_group import nodes_security_group_valid
from pergola.providers.aws.resources.security_group.desired import Ranges
from pergola.providers.aws.resources.security_group.rules import (
    ALL,
    EGRESS,
    EVERYWHERE,
    EVERYWHERE_6,
    INGRESS,
    NFS,
    NODE_PORTS,
    TCP,
    UDP,
    Rule,
    permissions,
)
from pergola.providers.aws.snapshot import Snapshot

GROUP = "sg-0a"
TID = "shoot--p--s"
SELF = Rule(INGRESS, ALL, None, GROUP)
TCP_PORTS = Rule(INGRESS, TCP, NODE_PORTS, EVERYWHERE)
UDP_PORTS = Rule(INGRESS, UDP, NODE_PORTS, EVERYWHERE)
OUT = Rule(EGRESS, ALL, None, EVERYWHERE)
COMPLETE = [SELF, TCP_PORTS, UDP_PORTS, OUT]
BALANCERS = [Ranges(("10.0.0.0/24",), ("10.0.1.0/24",), ("10.0.2.0/24",))]


def desired(
    families: tuple[str, ...] = ("IPv4",), *, efs: bool = False, zones: str = "ab"
) -> Desired:
    networks = Networks(
        vpc=Vpc(id="vpc-1"),
        nodes_security_group_id=GROUP,
        zones=[Zone(name=f"eu-{z}", workers_subnet_id=f"subnet-{z}") for z in zones],
    )
    return Desired(
        technical_id=TID,
        region="eu-west-1",
        families=families,
        config=InfrastructureConfig(
            networks=networks, elastic_file_system=ElasticFileSystem(enabled=efs)
        ),
    )


def group(*rules: Rule, prefix_list: JsonObject | None = None) -> JsonObject:
    ingress = permissions(rules, INGRESS)
    return {
        "GroupId": GROUP,
        "IpPermissions": [*ingress, *([prefix_list] if prefix_list else [])],
        "IpPermissionsEgress": permissions(rules, EGRESS),
    }


def test_a_group_with_all_rules_is_valid() -> None:
    said = nodes_security_group_valid(desired(), group(*COMPLETE))

    assert said[:2] == ("True", "RequiredRulesPresent")
    assert said.message == f"security group {GROUP} has the rules that nodes need"


@pytest.mark.parametrize("missing", COMPLETE)
def test_each_missing_rule_is_reported(missing: Rule) -> None:
    said = nodes_security_group_valid(desired(), group(*(r for r in COMPLETE if r != missing)))

    assert said[:2] == ("False", "MissingRequiredRules")
    assert said.message.count("(") == 1
    assert str(missing) in said.message


def test_all_missing_rules_are_reported_at_once() -> None:
    said = nodes_security_group_valid(desired(), group())

    assert all(str(rule) in said.message for rule in COMPLETE)


def test_rules_for_load_balancer_ranges_suffice() -> None:
    narrow = [
        rule._replace(peer=peer)
        for rule in (TCP_PORTS, UDP_PORTS)
        for peer in ("10.0.1.0/24", "10.0.2.0/24")
    ]

    assert nodes_security_group_valid(desired(), group(SELF, OUT, *narrow), BALANCERS)[0] == "True"
    said = nodes_security_group_valid(desired(), group(SELF, OUT, *narrow[1:]), BALANCERS)
    assert said.status == "False"
    assert "ingress tcp 30000-32767 from 0.0.0.0/0 or 10.0.2.0/24 or 10.0.1.0/24" in said.message
    assert "udp" not in said.message


@pytest.mark.parametrize(
    "rules",
    [
        [Rule(INGRESS, ALL, None, EVERYWHERE)],
        [SELF, UDP_PORTS, Rule(INGRESS, TCP, (0, 65535), EVERYWHERE)],
        [
            SELF,
            UDP_PORTS,
            TCP_PORTS._replace(peer="0.0.0.0/1"),
            TCP_PORTS._replace(peer="128.0.0.0/1"),
        ],
        [
            SELF,
            UDP_PORTS,
            TCP_PORTS._replace(ports=(80, 31000)),
            TCP_PORTS._replace(ports=(31001, 40000)),
            TCP_PORTS._replace(ports=(80, 80), peer="10.0.0.0/8"),
        ],
    ],
)
def test_rules_may_be_wider_or_in_several_parts(rules: list[Rule]) -> None:
    assert nodes_security_group_valid(desired(), group(OUT, *rules)).status == "True"


def test_a_gap_between_ports_is_found() -> None:
    parts = [TCP_PORTS._replace(ports=(30000, 31000)), TCP_PORTS._replace(ports=(31002, 32767))]

    assert nodes_security_group_valid(desired(), group(SELF, UDP_PORTS, OUT, *parts))[0] == "False"


def test_the_sources_in_a_prefix_list_are_unknown() -> None:
    allowed: JsonObject = {
        "IpProtocol": "tcp",
        "FromPort": 30000,
        "ToPort": 32767,
        "PrefixListIds": [{"PrefixListId": "pl-1"}],
    }

    said = nodes_security_group_valid(desired(), group(SELF, UDP_PORTS, OUT, prefix_list=allowed))

    assert said[:2] == ("Unknown", "CheckFailed")
    assert "is unknown" in said.message


def test_the_sources_in_another_group_are_unknown() -> None:
    other = UDP_PORTS._replace(peer="sg-other")

    said = nodes_security_group_valid(desired(), group(SELF, TCP_PORTS, OUT, other))

    assert said.status == "Unknown"


def test_a_missing_rule_outweighs_an_unknown_one() -> None:
    other = UDP_PORTS._replace(peer="sg-other")

    said = nodes_security_group_valid(desired(), group(TCP_PORTS, OUT, other))

    assert said.status == "False"
    assert str(SELF) in said.message
    assert "is unknown" in said.message


def test_restricted_egress_is_only_noted() -> None:
    narrow = Rule(EGRESS, TCP, (443, 443), "10.0.0.0/8")

    said = nodes_security_group_valid(desired(), group(SELF, TCP_PORTS, UDP_PORTS, narrow))

    assert said[:2] == ("True", "RequiredRulesPresent")
    assert "not all traffic may leave to 0.0.0.0/0" in said.message


def test_ipv6_needs_separate_rules() -> None:
    families = ("IPv4", "IPv6")
    more = [r._replace(peer=EVERYWHERE_6) for r in (TCP_PORTS, UDP_PORTS, OUT)]

    assert nodes_security_group_valid(desired(families), group(*COMPLETE)).status == "False"
    assert nodes_security_group_valid(desired(families), group(*COMPLETE, *more)).status == "True"
    assert nodes_security_group_valid(desired(("IPv6",)), group(SELF, *more)).status == "True"


def test_elastic_fabric_adapters_need_the_group_itself_as_a_destination() -> None:
    with_adapters = replace(desired(), uses_efa=True)
    said = nodes_security_group_valid(with_adapters, group(*COMPLETE), BALANCERS)
    assert (said.status, said.reason) == ("False", "MissingRequiredRules")
    assert said.message.endswith("(Elastic Fabric Adapters reach each other)")
    complete = group(*COMPLETE, Rule(EGRESS, ALL, None, GROUP))
    assert nodes_security_group_valid(with_adapters, complete, BALANCERS).status == "True"


def test_access_to_a_file_system_is_noted() -> None:
    nfs = Rule(INGRESS, TCP, NFS, "10.0.0.0/16")

    with_note = nodes_security_group_valid(desired(efs=True), group(*COMPLETE), BALANCERS)
    without = nodes_security_group_valid(desired(efs=True), group(*COMPLETE, nfs), BALANCERS)

    assert with_note.status == without.status == "True"
    assert "tcp 2049 in from 10.0.0.0/24" in with_note.message
    assert "2049" not in without.message


def test_a_group_that_does_not_exist_is_not_valid() -> None:
    said = nodes_security_group_valid(desired(), None)

    assert said == Said("False", "MissingRequiredRules", f"security group {GROUP} does not exist")


# Subnets for load balancers


def subnet(zone: str, role: str, free: int = 100) -> JsonObject:
    tags = {f"kubernetes.io/cluster/{TID}": "shared", f"kubernetes.io/role/{role}": "1"}
    return {
        "VpcId": "vpc-1",
        "AvailabilityZone": f"eu-{zone}",
        "AvailableIpAddressCount": free,
        "Tags": [{"Key": key, "Value": value} for key, value in tags.items()],
    }


def available(**subnets: JsonObject) -> Said:
    snapshot = Snapshot(subnets={name.replace("_", "-"): each for name, each in subnets.items()})
    return load_balancer_subnets_available(desired(), snapshot)


def test_without_any_subnet_services_stay_pending() -> None:
    said = available()

    assert said[:2] == ("False", "SubnetsMissing")
    assert "no subnet in eu-a, eu-b is for load balancers" in said.message


def test_a_subnet_in_every_zone_is_enough() -> None:
    said = available(subnet_1=subnet("a", "elb"), subnet_2=subnet("b", "elb"))

    assert said == Said(
        "True",
        "SubnetsFound",
        "public load balancers: subnet-1 in eu-a, subnet-2 in eu-b; internal load balancers: none",
    )


def test_zones_without_a_subnet_are_reported() -> None:
    said = available(
        subnet_1=subnet("a", "elb"),
        subnet_2=subnet("b", "elb"),
        subnet_3=subnet("b", "internal-elb"),
    )

    assert said.status == "False"
    assert said.message.startswith("eu-a without a subnet for internal load balancers, eu-b with")


def test_a_subnet_without_free_addresses_is_reported() -> None:
    said = available(subnet_1=subnet("a", "elb", 7), subnet_2=subnet("b", "elb", 8))

    assert said.message == (
        "subnet subnet-1 for public load balancers has 7 addresses left, and 8 are needed"
    )


def named(**subnets: JsonObject) -> Said:
    """Return the condition of a cluster whose config names public subnets."""
    asked = desired()
    zones = [
        msgspec.structs.replace(zone, public_subnet_id=f"subnet-{zone.name[-1]}")
        for zone in asked.config.networks.zones
    ]
    networks = msgspec.structs.replace(asked.config.networks, zones=zones)
    config = msgspec.structs.replace(asked.config, networks=networks)
    snapshot = Snapshot(subnets={name.replace("_", "-"): each for name, each in subnets.items()})
    return load_balancer_subnets_available(replace(asked, config=config), snapshot)


def test_named_subnets_need_their_tags_as_well() -> None:
    """The cloud controller looks at tags alone, which other tools may remove."""
    tagged = {"subnet_a": subnet("a", "elb"), "subnet_b": subnet("b", "elb")}
    untagged = {name: {**each, "Tags": []} for name, each in tagged.items()}

    assert named(**tagged).status == "True"
    said = named(**untagged)
    assert (said.status, said.reason) == ("False", "SubnetsMissing")
    assert said.message == (
        "subnet subnet-a, subnet-b for public load balancers has no tag "
        f"kubernetes.io/cluster/{TID}, kubernetes.io/role/elb, so that the cloud controller does "
        "not find it: aws ec2 create-tags --region eu-west-1 --resources subnet-a subnet-b "
        f"--tags Key=kubernetes.io/cluster/{TID},Value=shared Key=kubernetes.io/role/elb,Value=1"
    )
    partly = named(**{**tagged, "subnet_b": subnet("b", "internal-elb")})
    assert (
        "subnet-b for public load balancers has no tag kubernetes.io/role/elb, so" in partly.message
    )


def test_a_named_subnet_that_is_gone_is_reported() -> None:
    said = named(subnet_a=subnet("a", "elb"))

    assert said.message == "subnet subnet-b for public load balancers is not in the VPC any more"


# As results of health checks


async def test_verdicts_about_infrastructures_that_are_gone_are_forgotten() -> None:
    evaluated: list[str] = []

    async def observe(_: CheckContext, obj: JsonObject) -> Said:
        evaluated.append(obj["metadata"]["uid"])
        return Said("True", "Fine", "")

    check = _Remembered("Valid", observe, PERIOD)
    now = datetime(2026, 1, 1, tzinfo=UTC)

    async def run(name: str, periods: float) -> None:
        at = now + timedelta(seconds=periods * PERIOD)
        await check.run(_at(at), {"metadata": {"uid": name}})

    for number in range(20):
        for name in (f"gone-{number}", "stays"):
            await run(name, number)
            await run(name, number + 0.5)

    assert evaluated.count("stays") == 20
    assert len(check._results) < 10


def _at(now: datetime) -> CheckContext:
    """Return a context that has the time alone."""
    unused = cast("Client", None)

    async def nothing(*_: object) -> None:
        raise AssertionError

    return CheckContext(client=unused, read=nothing, cluster=nothing, namespace=TID, now=now)


def test_the_message_of_a_condition_has_every_finding() -> None:
    assert verdict(Said("Unknown", "CheckFailed", "who knows")) == Verdict(
        "Unknown", "who knows", reason="CheckFailed"
    )


def test_findings_that_the_user_must_fix_have_a_code() -> None:
    assert verdict(Said("False", "x", "y")).codes == (Code.CONFIGURATION_PROBLEM,)
    assert verdict(Said("True", "x", "y")).codes == ()
