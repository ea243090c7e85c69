"""Sharding: several replicas that share the objects of a ring."""

from collections.abc import Iterator

from pergola.api.component_config.leader_election import LeaderElection
from pergola.api.core_v1_validation import is_dns_label
from pergola.api.schema.declare import Value
from pergola.api.schema.validate import Finding, child


class Sharding(Value):
    """Replicas that share the objects of a ring; not in the original."""

    controller_ring: str = ""
    """The ControllerRing that each replica joins as a shard; empty for no sharding. The Lease of a
    shard is in the namespace of the leader election, and uses its times."""


def check_sharding(sharding: Sharding, election: LeaderElection, path: str) -> Iterator[Finding]:
    """Yield findings about sharding."""
    if not sharding.controller_ring:
        return
    at = child(path, "controllerRing")
    if not is_dns_label(sharding.controller_ring):
        yield Finding(at, "must be the name of a ControllerRing, with at most 63 characters")
    if not election.leader_elect:
        yield Finding(at, "needs leaderElection.leaderElect, since a leader runs the rest")
