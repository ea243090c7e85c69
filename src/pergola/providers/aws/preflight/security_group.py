"""Checks of a user-provided security group's rules, on request (spec 30 §6.3, Beyond 11).

Not among the `findings`, because the Infrastructure permanently has a condition about this.
"""

from collections.abc import Iterator

import orjson

from pergola.api.objects import JsonObject
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.health.security_group import nodes_security_group_valid
from pergola.providers.aws.preflight.finding import Finding, ec2, hint
from pergola.providers.aws.preflight.vpc import ipv6_blocks
from pergola.providers.aws.resources.security_group.desired import Ranges, desired_rules
from pergola.providers.aws.resources.security_group.rules import (
    EGRESS,
    INGRESS,
    Rule,
    compare,
    permissions,
)
from pergola.providers.aws.snapshot import Snapshot


def check_rules(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield a hint if rules that nodes need are missing, or if that is unknown."""
    name = desired.config.networks.nodes_security_group_id or ""
    group = snapshot.security_groups.get(name)
    if group is None:  # that is reported as a separate finding
        return
    said = nodes_security_group_valid(desired, group, _ranges(desired, snapshot))
    if said.status != "True":
        missing = compare(desired_rules(desired, name, ()), group).authorize
        yield hint("networks.nodesSecurityGroupID", said.message, _fix(desired, name, missing))


def _fix(desired: Desired, group: str, missing: frozenset[Rule]) -> str:
    """Return the command for ingress; egress is reported only after ingress is fixed."""
    ingress = permissions(missing, INGRESS)
    way, rules = ("ingress", ingress) if ingress else ("egress", permissions(missing, EGRESS))
    if not rules:
        return ec2(desired, f"describe-security-groups --group-ids {group}")
    text = orjson.dumps(rules).decode()
    return ec2(
        desired, f"authorize-security-group-{way} --group-id {group} --ip-permissions '{text}'"
    )


def _ranges(desired: Desired, snapshot: Snapshot) -> list[Ranges]:
    """Return the actual ranges of user-provided subnets."""
    return [
        Ranges(
            workers=_of(snapshot, zone.workers_subnet_id),
            public=_of(snapshot, zone.public_subnet_id),
            internal=_of(snapshot, zone.internal_subnet_id),
        )
        for zone in desired.config.networks.zones
    ]


def _of(snapshot: Snapshot, name: str | None) -> tuple[str, ...]:
    subnet: JsonObject = snapshot.subnets.get(name or "", {})
    cidr = subnet.get("CidrBlock")
    return (*([str(cidr)] if cidr else []), *ipv6_blocks(subnet))
