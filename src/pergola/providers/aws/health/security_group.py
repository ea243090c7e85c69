"""The condition about a user-provided security group's rules for nodes (spec 30 §6.3). Pure."""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.health.condition import CHECK_FAILED, ConditionUpdate
from pergola.providers.aws.health.coverage import applies_to, covers, overlaps
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
    rules_of,
)

NODES_SECURITY_GROUP_VALID: Final = "NodesSecurityGroupValid"
RULES_PRESENT: Final = "RequiredRulesPresent"
RULES_MISSING: Final = "MissingRequiredRules"


class _Need(NamedTuple):
    """A required rule: for each of the peers, by any rules together.

    Attributes:
        by_group: whether the rule must name the group, for traffic without IP addresses.
    """

    rule: Rule
    peers: tuple[str, ...]
    purpose: str
    by_group: bool = False

    def __str__(self) -> str:
        described = self.rule._replace(peer=" or ".join(self.peers) or self.rule.peer)
        return f"{described} ({self.purpose})"


def nodes_security_group_valid(
    desired: Desired, group: JsonObject | None, zones: Iterable[Ranges] = ()
) -> ConditionUpdate:
    """Decide whether a user-provided security group has the rules that nodes need (§6.3).

    Args:
        group: as AWS describes it; None if it does not exist.
        zones: the ranges of the subnets, from which load balancers may come.
    """
    name = desired.config.networks.nodes_security_group_id or ""
    if group is None:
        return ConditionUpdate("False", RULES_MISSING, f"security group {name} does not exist")
    rules, several = rules_of(group), list(zones)
    lacking = [need for need in _needs(desired, name, several) if not _is_met(need, rules)]
    unclear = [need for need in lacking if _may_be_met(need, rules, name)]
    missing = [need for need in lacking if need not in unclear]
    if missing:
        texts = [f"security group {name} lacks {_listed(missing)}", *_unclear(unclear)]
        return ConditionUpdate("False", RULES_MISSING, "; ".join(texts))
    if unclear:
        return ConditionUpdate(
            "Unknown", CHECK_FAILED, "; ".join([f"security group {name}", *_unclear(unclear)])
        )
    notes = [
        f"security group {name} has the rules that nodes need",
        *_notes(desired, rules, several),
    ]
    return ConditionUpdate("True", RULES_PRESENT, "; ".join(notes))


def _needs(desired: Desired, group: str, zones: Sequence[Ranges]) -> Iterator[_Need]:
    yield _Need(Rule(INGRESS, ALL, None, group), (group,), "pods and nodes reach each other")
    for everywhere in _everywhere(desired):
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
    if desired.uses_efa:
        rule = Rule(EGRESS, ALL, None, group)
        yield _Need(rule, (group,), "Elastic Fabric Adapters reach each other", by_group=True)


def _everywhere(desired: Desired) -> list[str]:
    return [*([EVERYWHERE] if desired.ipv4 else []), *([EVERYWHERE_6] if desired.ipv6 else [])]


def _is_met(need: _Need, rules: Iterable[Rule]) -> bool:
    of_direction = [rule for rule in rules if rule.direction == need.rule.direction]
    if not need.peers:  # only the user knows which destinations are sufficient
        return bool(of_direction)
    if "/" not in need.peers[0]:
        open_to = need.peers if need.by_group else (EVERYWHERE, EVERYWHERE_6, *need.peers)
        return any(rule.protocol == ALL and rule.peer in open_to for rule in of_direction)
    everywhere, *balancers = need.peers
    ranges = [rule for rule in of_direction if rule.is_range and applies_to(need.rule, rule)]
    return covers(ranges, everywhere, NODE_PORTS) or (
        bool(balancers) and all(covers(ranges, peer, NODE_PORTS) for peer in balancers)
    )


def _may_be_met(need: _Need, rules: Iterable[Rule], group: str) -> bool:
    """Return whether a prefix list or another group, whose content is unknown, might allow it."""
    return any(
        rule.direction == need.rule.direction
        and not rule.is_range
        and rule.peer != group
        and applies_to(need.rule, rule)
        and overlaps(rule.ports, need.rule.ports)
        for rule in rules
    )


def _unclear(needs: Sequence[_Need]) -> list[str]:
    if not needs:
        return []
    text = "is unknown: a prefix list or another security group is the peer"
    return [f"whether it has {_listed(needs)} {text}"]


def _notes(desired: Desired, rules: Iterable[Rule], zones: Sequence[Ranges]) -> Iterator[str]:
    everything = {rule.peer for rule in rules if rule.direction == EGRESS and rule.protocol == ALL}
    if closed := [peer for peer in _everywhere(desired) if peer not in everything]:
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
    if desired.config.wants_efs and not all(covers(nfs, peer, NFS) for peer in workers):
        yield (
            "mount targets of the file system must also be in this security group, or let tcp "
            f"2049 in from {', '.join(workers)}"
        )


def _listed(needs: Iterable[_Need]) -> str:
    return ", ".join(map(str, needs))
