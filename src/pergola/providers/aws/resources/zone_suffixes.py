"""The `zN` of a zone, which the names of its subnets and gateways contain (spec 30 §3.2)."""

from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources.step import Work


def keep_suffixes(desired: Desired, state: State) -> None:
    """Assign all zones their `zN`, in the order of the config."""
    for zone in desired.config.networks.zones:
        keys.suffix_of(state, zone.name)


def zone_suffix(work: Work, zone: str) -> str:
    """Return the `zN` that a zone has or would get, without changing the state."""
    state = State(work.state.snapshot())
    keep_suffixes(work.desired, state)
    return keys.suffix_of(state, zone)
