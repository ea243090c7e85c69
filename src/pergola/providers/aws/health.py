"""Conditions of an Infrastructure about what users bring (spec 30 §6.4, Beyond 10, 11).

They tell what is missing before nodes fail to join or Services stay without an address. They never
keep anything from being reconciled. What a condition says is decided by pure functions; the checks
around them read as little of AWS as they can, and not at every look.
"""

from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from datetime import datetime
from ipaddress import IPv4Network, IPv6Network, collapse_addresses
from typing import Final, Literal, NamedTuple

from pergola.api.ip_ranges import parse_network
from pergola.api.objects import JsonObject, map_at, uid_of
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import CloudError, NotFound
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks.checks import CheckContext, HealthCheck, Verdict
from pergola.providers.aws.load_balancers import LEAST_FREE, Role, in_zones
from pergola.providers.aws.request import wanted_of
from pergola.providers.aws.security_rules import (
    ALL,
    EGRESS,
    EVERYWHERE,
    EVERYWHERE_6,
    INGRESS,
    NFS,
    NODE_PORTS,
    TCP,
    UDP,
    Ports,
    Ranges,
    Rule,
    rules_of,
    zone_ranges,
)
from pergola.providers.aws.snapshot import Snapshot
from pergola.providers.aws.state import read_state
from pergola.providers.aws.tags import filters
from pergola.providers.aws.wanted import Wanted

NODES_SECURITY_GROUP_VALID: Final = "NodesSecurityGroupValid"
LOAD_BALANCER_SUBNETS_AVAILABLE: Final = "LoadBalancerSubnetsAvailable"

RULES_PRESENT: Final = "RequiredRulesPresent"
RULES_MISSING: Final = "MissingRequiredRules"
CHECK_FAILED: Final = "CheckFailed"
SUBNETS_FOUND: Final = "SubnetsFound"
SUBNETS_MISSING: Final = "SubnetsMissing"

PERIOD: Final = 600.0
"""Seconds between two looks at AWS, unless something is reconciled in between."""

Access = Callable[[CheckContext, JsonObject], AbstractAsyncContextManager[AwsClient]]
"""A client of AWS with the credentials of an Infrastructure."""

_Network = IPv4Network | IPv6Network


class Said(NamedTuple):
    """What a condition says."""

    status: Literal["True", "False", "Unknown"]
    reason: str
    message: str


class _Need(NamedTuple):
    """A rule that has to be there: for each of the peers, by whatever rules together.

    Attributes:
        by_group: only a rule that names the group will do, for what goes without IP addresses.
    """

    rule: Rule
    peers: tuple[str, ...]
    purpose: str
    by_group: bool = False

    def __str__(self) -> str:
        described = self.rule._replace(peer=" or ".join(self.peers) or self.rule.peer)
        return f"{described} ({self.purpose})"


# The security group of the nodes


def nodes_security_group_valid(
    wanted: Wanted, group: JsonObject | None, zones: Iterable[Ranges] = ()
) -> Said:
    """Whether a user's security group has the rules that nodes need (§6.3).

    Args:
        group: as AWS describes it; None if it does not exist.
        zones: the ranges of the subnets, from which load balancers may come.
    """
    name = wanted.config.networks.nodes_security_group_id or ""
    if group is None:
        return Said("False", RULES_MISSING, f"security group {name} does not exist")
    rules, several = rules_of(group), list(zones)
    lacking = [need for need in _needs(wanted, name, several) if not _is_met(need, rules)]
    unclear = [need for need in lacking if _may_be_met(need, rules, name)]
    missing = [need for need in lacking if need not in unclear]
    if missing:
        texts = [f"security group {name} lacks {_listed(missing)}", *_unclear(unclear)]
        return Said("False", RULES_MISSING, "; ".join(texts))
    if unclear:
        return Said(
            "Unknown", CHECK_FAILED, "; ".join([f"security group {name}", *_unclear(unclear)])
        )
    notes = [
        f"security group {name} has the rules that nodes need",
        *_notes(wanted, rules, several),
    ]
    return Said("True", RULES_PRESENT, "; ".join(notes))


def _needs(wanted: Wanted, group: str, zones: Sequence[Ranges]) -> Iterator[_Need]:
    yield _Need(Rule(INGRESS, ALL, None, group), (group,), "pods and nodes reach each other")
    for everywhere in _everywhere(wanted):
        balancers = [
            peer
            for ranges in zones
            for peer in (*ranges.public, *ranges.internal)
            if (":" in peer) == (":" in everywhere)
        ]
        peers = (everywhere, *dict.fromkeys(balancers))
        for protocol in (TCP, UDP):
            rule = Rule(INGRESS, protocol, NODE_PORTS, everywhere)
            yield _Need(rule, peers, "Services of type LoadBalancer and NodePort")
    yield _Need(Rule(EGRESS, ALL, None, EVERYWHERE), (), "nodes join and pull images")
    if wanted.uses_efa:
        rule = Rule(EGRESS, ALL, None, group)
        yield _Need(rule, (group,), "Elastic Fabric Adapters reach each other", by_group=True)


def _everywhere(wanted: Wanted) -> list[str]:
    return [*([EVERYWHERE] if wanted.ipv4 else []), *([EVERYWHERE_6] if wanted.ipv6 else [])]


def _is_met(need: _Need, rules: Iterable[Rule]) -> bool:
    of_direction = [rule for rule in rules if rule.direction == need.rule.direction]
    if not need.peers:  # which destinations are enough, only the user knows
        return bool(of_direction)
    if "/" not in need.peers[0]:
        open_to = need.peers if need.by_group else (EVERYWHERE, EVERYWHERE_6, *need.peers)
        return any(rule.protocol == ALL and rule.peer in open_to for rule in of_direction)
    everywhere, *balancers = need.peers
    ranges = [rule for rule in of_direction if rule.is_range and _is_of(need.rule, rule)]
    return _covers(ranges, everywhere, NODE_PORTS) or (
        bool(balancers) and all(_covers(ranges, peer, NODE_PORTS) for peer in balancers)
    )


def _may_be_met(need: _Need, rules: Iterable[Rule], group: str) -> bool:
    """Whether a prefix list or another group, which cannot be looked into, might allow it."""
    return any(
        rule.direction == need.rule.direction
        and not rule.is_range
        and rule.peer != group
        and _is_of(need.rule, rule)
        and _overlaps(rule.ports, need.rule.ports)
        for rule in rules
    )


def _is_of(needed: Rule, rule: Rule) -> bool:
    return rule.protocol in (ALL, needed.protocol)


def _overlaps(one: Ports | None, other: Ports | None) -> bool:
    return one is None or other is None or (one[0] <= other[1] and other[0] <= one[1])


def _covers(rules: Iterable[Rule], peer: str, ports: Ports) -> bool:
    """Whether rules together allow all addresses of a range to reach all ports."""
    several = [(rule.ports or ports, parse_network(rule.peer)) for rule in rules]
    # Between these ports the answer does not change.
    edges = {ports[0], *(edge for (low, high), _ in several for edge in (low, high + 1))}
    return all(
        _contains(parse_network(peer), [net for (low, high), net in several if low <= edge <= high])
        for edge in edges
        if ports[0] <= edge <= ports[1]
    )


def _contains(needed: _Network, networks: Iterable[_Network]) -> bool:
    if isinstance(needed, IPv4Network):
        own = collapse_addresses(n for n in networks if isinstance(n, IPv4Network))
        return any(needed.subnet_of(net) for net in own)
    own6 = collapse_addresses(n for n in networks if isinstance(n, IPv6Network))
    return any(needed.subnet_of(net) for net in own6)


def _unclear(needs: Sequence[_Need]) -> list[str]:
    if not needs:
        return []
    text = "cannot be told: a prefix list or another security group is the peer"
    return [f"whether it has {_listed(needs)} {text}"]


def _notes(wanted: Wanted, rules: Iterable[Rule], zones: Sequence[Ranges]) -> Iterator[str]:
    everything = {rule.peer for rule in rules if rule.direction == EGRESS and rule.protocol == ALL}
    if closed := [peer for peer in _everywhere(wanted) if peer not in everything]:
        yield (
            f"not all traffic may leave to {' and '.join(closed)}: nodes need the API server, "
            "registries, and EC2, ELB, STS and S3 of AWS"
        )
    workers = [peer for ranges in zones for peer in ranges.workers]
    nfs = [
        rule
        for rule in rules
        if rule.direction == INGRESS and rule.is_range and rule.protocol == TCP
    ]
    if wanted.config.wants_efs and not all(_covers(nfs, peer, NFS) for peer in workers):
        yield (
            "mount targets of the file system have to be in this security group too, or let "
            f"tcp 2049 in from {', '.join(workers)}"
        )


def _listed(needs: Iterable[_Need]) -> str:
    return ", ".join(map(str, needs))


# Subnets for load balancers


def load_balancer_subnets_available(wanted: Wanted, snapshot: Snapshot) -> Said:
    """Whether load balancers find a subnet in every zone, with addresses left in it."""
    zones = [zone.name for zone in wanted.config.networks.zones]
    found = {role: dict(in_zones(wanted, role, snapshot.subnets)) for role in Role}
    if not any(found.values()):
        text = (
            f"no subnet in {', '.join(zones)} is for load balancers: Services of type LoadBalancer "
            f"stay pending; name subnets in the configuration, or tag them with "
            f"{wanted.cluster_tag} and {Role.PUBLIC.tag}=1 or {Role.INTERNAL.tag}=1"
        )
        return Said("False", SUBNETS_MISSING, text)
    problems = [
        problem
        for role, covered in found.items()
        if covered
        for problem in (*_uncovered(role, zones, covered), *_full(role, covered, snapshot))
    ]
    if problems:
        return Said("False", SUBNETS_MISSING, "; ".join(problems))
    texts = [f"{role} load balancers: {_placed(covered)}" for role, covered in found.items()]
    return Said("True", SUBNETS_FOUND, "; ".join(texts))


def _uncovered(role: Role, zones: Iterable[str], covered: dict[str, str]) -> Iterator[str]:
    lacking = [zone for zone in zones if zone not in covered]
    if lacking:
        yield (
            f"{', '.join(lacking)} without a subnet for {role} load balancers, "
            f"{', '.join(covered)} with one: tag one with {role.tag}=1 and the cluster's tag"
        )


def _full(role: Role, covered: dict[str, str], snapshot: Snapshot) -> Iterator[str]:
    for name in covered.values():
        free = snapshot.subnets.get(name, {}).get("AvailableIpAddressCount", LEAST_FREE)
        if free < LEAST_FREE:
            yield (
                f"subnet {name} for {role} load balancers has {free} addresses left, and "
                f"{LEAST_FREE} are needed"
            )


def _placed(covered: dict[str, str]) -> str:
    return ", ".join(f"{name} in {zone}" for zone, name in covered.items()) or "none"


# The checks


def health_checks(access: Access, *, period: float = PERIOD) -> list[HealthCheck]:
    """The checks of an Infrastructure.

    Args:
        period: seconds for which a result is good enough, unless there was a reconciliation.
    """
    return [
        HealthCheck(
            name="rules of the nodes' security group",
            condition=NODES_SECURITY_GROUP_VALID,
            run=_Remembered(_Groups(access).run, period).run,
            applies=_brings_group,
        ),
        HealthCheck(
            name="subnets for load balancers",
            condition=LOAD_BALANCER_SUBNETS_AVAILABLE,
            run=_Remembered(_Subnets(access).run, period).run,
            applies=_brings_subnets,
        ),
    ]


Look = Callable[[CheckContext, JsonObject], Awaitable[Said]]


@dataclass(slots=True)
class _Result:
    at: datetime
    operation: JsonObject
    said: Said


class _Remembered:
    """A look that is taken once in a period, and after every reconciliation."""

    def __init__(self, look: Look, period: float) -> None:
        self._look = look
        self._period = period
        self._results: dict[str, _Result] = {}

    async def run(self, context: CheckContext, obj: JsonObject) -> Verdict:
        """The verdict of the last look, or of a new one; unknown if AWS refuses to tell."""
        operation, known = map_at(obj, "status", "lastOperation"), self._results.get(uid_of(obj))
        if known is None or not self._is_good(known, context.now, operation):
            try:
                said = await self._look(context, obj)
            except CloudError as error:
                return verdict(Said("Unknown", CHECK_FAILED, str(error)))
            known = self._results[uid_of(obj)] = _Result(context.now, operation, said)
        return verdict(known.said)

    def _is_good(self, known: _Result, now: datetime, operation: JsonObject) -> bool:
        age = (now - known.at).total_seconds()
        return age < self._period and known.operation == operation


def verdict(said: Said) -> Verdict:
    """What a condition says, as the result of the only check that it is about."""
    codes = (Code.CONFIGURATION_PROBLEM,) if said.status == "False" else ()
    return Verdict(said.status, said.message, codes, reason=said.reason)


@dataclass(frozen=True, slots=True)
class _Groups:
    access: Access

    async def run(self, context: CheckContext, obj: JsonObject) -> Said:
        wanted = wanted_of(obj, await context.cluster())
        state = read_state(map_at(obj, "status").get("state"))
        name = wanted.config.networks.nodes_security_group_id
        async with self.access(context, obj) as aws:
            try:
                answer = await aws.call("ec2", "DescribeSecurityGroups", GroupIds=[name])
            except NotFound:
                answer = {"SecurityGroups": []}
        group = next(iter(answer["SecurityGroups"]), None)
        return nodes_security_group_valid(wanted, group, zone_ranges(wanted, state, Snapshot()))


@dataclass(frozen=True, slots=True)
class _Subnets:
    access: Access

    async def run(self, context: CheckContext, obj: JsonObject) -> Said:
        wanted = wanted_of(obj, await context.cluster())
        vpc = wanted.config.networks.vpc.id or ""
        async with self.access(context, obj) as aws:
            found = await aws.pages(
                "ec2", "DescribeSubnets", "Subnets", Filters=filters(vpc_id=vpc)
            )
        snapshot = Snapshot(subnets={subnet["SubnetId"]: subnet for subnet in found})
        return load_balancer_subnets_available(wanted, snapshot)


def _brings_group(obj: JsonObject) -> bool:
    networks = map_at(obj, "spec", "providerConfig", "networks")
    return bool(networks.get("nodesSecurityGroupID"))


def _brings_subnets(obj: JsonObject) -> bool:
    zones = map_at(obj, "spec", "providerConfig", "networks").get("zones")
    several = zones if isinstance(zones, list) else []
    return any(isinstance(zone, dict) and zone.get("workersSubnetID") for zone in several)
