"""The options that every process has: its endpoints and leader election."""

import socket
import uuid
from dataclasses import dataclass
from typing import Final, NamedTuple

NOT_SERVED: Final = "0"
_LAST_PORT: Final = 65535


class StartError(Exception):
    """The process cannot start, or cannot go on; the text says why and what to do."""


class Address(NamedTuple):
    """An address to serve.

    Attributes:
        host: empty for all addresses.
        port: 0 for any free port.
        option: the setting that names it, for errors; empty if there is none.
    """

    host: str
    port: int
    option: str = ""


_HEALTH: Final = Address("", 8081)
_METRICS: Final = Address("", 8080)


@dataclass(frozen=True, slots=True, kw_only=True)
class LeaseTimes:
    """The times of a Lease, in seconds.

    Attributes:
        lease_duration: after which others may take a Lease that is not renewed.
        renew_deadline: after which a holder that could not renew gives up; shorter.
        retry_period: between two renewals, and between two attempts of other candidates.
    """

    lease_duration: float = 15.0
    renew_deadline: float = 10.0
    retry_period: float = 2.0


USUAL_TIMES: Final = LeaseTimes()


@dataclass(frozen=True, slots=True, kw_only=True)
class Election:
    """The Lease of a leader election."""

    namespace: str
    name: str
    times: LeaseTimes = USUAL_TIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class ShardLease:
    """The ring that a process is a shard of, and the Lease of the shard."""

    ring: str
    namespace: str
    times: LeaseTimes = USUAL_TIMES


@dataclass(frozen=True, slots=True, kw_only=True)
class ProcessOptions:
    """Options that every process has.

    Attributes:
        health: where `/healthz` and `/readyz` are served; None for nowhere.
        metrics: where `/metrics` is served; None for nowhere.
        profiling: whether `/debug` is served together with the metrics.
        election: how replicas elect a leader; None if there is only one replica.
        sharding: how replicas share objects; None if the leader works on all of them.
    """

    health: Address | None = _HEALTH
    metrics: Address | None = _METRICS
    profiling: bool = False
    election: Election | None = None
    sharding: ShardLease | None = None


def parse_address(text: str, option: str) -> Address | None:
    """Parse an address such as `host:port`, `:port` or `[::1]:port`; return None for `0`.

    Args:
        option: the name of the option, for the error.

    Raises:
        StartError: it is none of these.
    """
    if text == NOT_SERVED:
        return None
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdecimal() or int(port) > _LAST_PORT:
        raise StartError(f'{option} is "{text}"; write host:port, :port, or 0 for no endpoint')
    return Address(host.removeprefix("[").removesuffix("]"), int(port), option)


def replica_identity() -> str:
    """Return a name for this process that no other replica has."""
    return f"{socket.gethostname()}_{uuid.uuid4()}"
