"""Hints about complete networks, for `pergola infra check`.

They never prevent a network from being ready.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.externally_managed.aws.decide import groups_by_role
from pergola.externally_managed.aws.desired import Desired
from pergola.externally_managed.aws.observe import Observed
from pergola.externally_managed.aws.read import ipv6_block_of

_EVERYBODY: Final = {"IpRanges": ("CidrIp", "0.0.0.0/0"), "Ipv6Ranges": ("CidrIpv6", "::/0")}
_ANY_PROTOCOL: Final = "-1"


def open_rules(observed: Observed, desired: Desired) -> list[str]:
    """Return hints about rules that allow traffic from everywhere, in groups for this cluster.

    Groups for load balancers are skipped, because they are meant to be reachable.
    """
    return [
        f"security group {group['GroupId']} for {role} lets {_traffic(rule)} in from "
        f"{everybody}; restrict the rule unless this is intended"
        for role, group in groups_by_role(observed, desired).items()
        if role not in ("apiserver-lb", "lb")
        for rule in maps_at(group, "IpPermissions")
        for everybody in _everybody(rule)
    ]


def unused_ipv6(observed: Observed, desired: Desired) -> list[str]:
    """Return a hint if the VPC has IPv6 that machines do not use."""
    block = ipv6_block_of(observed).get("Ipv6CidrBlock") if len(observed.vpcs) == 1 else None
    if desired.ipv6 or not block:
        return []
    vpc = observed.vpcs[0]["VpcId"]
    hint = (
        f"{vpc} has the IPv6 block {block}, which machines do not use; to use it, set "
        "spec.network.vpc.ipv6 to {}"
    )
    return [hint]


def templates_without_groups(templates: Sequence[Mapping[str, Any]]) -> list[str]:
    """Return hints about AWSMachines and templates that would get the VPC's default security group.

    In external mode, machines have only the groups in `additionalSecurityGroups` (§8).
    """
    return [
        f"{template.get('kind', 'AWSMachineTemplate')} {Key.of(template)} names no security group: "
        f"its machines get the VPC's default group; set {path}.additionalSecurityGroups"
        for template in templates
        for path, spec in [_machine_spec(template)]
        if not any(group.get("id") or group.get("filters") for group in _groups(spec))
    ]


def _machine_spec(template: Mapping[str, Any]) -> tuple[str, JsonObject]:
    if "template" in map_at(template, "spec"):
        return "spec.template.spec", map_at(template, "spec", "template", "spec")
    return "spec", map_at(template, "spec")


def _groups(spec: JsonObject) -> list[JsonObject]:
    return maps_at(spec, "additionalSecurityGroups")


def _everybody(rule: JsonObject) -> Iterator[str]:
    for ranges, (name, everybody) in _EVERYBODY.items():
        if any(each.get(name) == everybody for each in maps_at(rule, ranges)):
            yield everybody


def _traffic(rule: JsonObject) -> str:
    """Return protocol and ports, as in `tcp 22` or `tcp 30000-32767`."""
    protocol = str(rule.get("IpProtocol", _ANY_PROTOCOL))
    if protocol == _ANY_PROTOCOL:
        return "everything"
    first, last = rule.get("FromPort"), rule.get("ToPort")
    if first in (None, -1):
        return protocol
    return f"{protocol} {first}" if first == last else f"{protocol} {first}-{last}"
