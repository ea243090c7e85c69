"""Leader election between replicas of a component."""

from collections.abc import Iterator
from typing import Annotated

from pergola.api.component_config.rules import positive
from pergola.api.component_config.zeros import ZERO_IS_UNSET
from pergola.api.schema.declare import Value
from pergola.api.schema.duration import Duration
from pergola.api.schema.validate import Finding, child


class LeaderElection(Value):
    """Leader election between replicas."""

    leader_elect: bool = True
    """Whether to elect a leader, which several replicas require."""
    lease_duration: Annotated[Duration, ZERO_IS_UNSET] = Duration(seconds=15)
    """The time after the last renewal until another replica may take over."""
    renew_deadline: Annotated[Duration, ZERO_IS_UNSET] = Duration(seconds=10)
    """The time for which a leader tries to renew before it gives up."""
    retry_period: Annotated[Duration, ZERO_IS_UNSET] = Duration(seconds=2)
    """The time between two attempts."""
    resource_lock: Annotated[str, ZERO_IS_UNSET] = "leases"
    """The kind of the lock."""
    resource_name: Annotated[str, ZERO_IS_UNSET] = ""
    """The name of the lock."""
    resource_namespace: Annotated[str, ZERO_IS_UNSET] = ""
    """The namespace of the lock."""


def check_leader_election(election: LeaderElection, path: str) -> Iterator[Finding]:
    """Yield findings about an enabled leader election."""
    if not election.leader_elect:
        return
    lease, renew, retry = election.lease_duration, election.renew_deadline, election.retry_period
    periods = {"leaseDuration": lease, "renewDeadline": renew, "retryPeriod": retry}
    for name, period in periods.items():
        yield from positive(period, child(path, name))
    if lease <= renew:
        yield Finding(child(path, "leaseDuration"), "must be greater than renewDeadline")
    if renew <= 1.2 * retry:
        yield Finding(child(path, "renewDeadline"), "must be greater than 1.2 times retryPeriod")
    if election.resource_lock != "leases":
        yield Finding(child(path, "resourceLock"), 'must be "leases"')
    names = {
        "resourceName": election.resource_name,
        "resourceNamespace": election.resource_namespace,
    }
    for name, value in names.items():
        if not value:
            yield Finding(child(path, name), "is required while leaderElect is true")
