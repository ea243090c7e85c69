"""The connections of one server: admission, eviction, and the memory they share.

Peers are not authenticated unless a client CA is configured, so everything they can consume is
bounded: connections in total and per peer, time without a request, and memory for requests, decoded
requests, unsent answers and TLS buffers (docs/decisions/0040).
"""

from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, Protocol

from pergola.runtime.memory import release_free_memory

LARGE: Final = 32 * 1024
"""A body that makes TLS buffers grow."""
IDLE_BYTES: Final = 40 * 1024
"""Memory of TLS and the parser for a connection without a request."""
GROWN_BYTES: Final = 512 * 1024
"""Size of the TLS buffers after a connection carried a large body; they never shrink."""
_BUFFER_BYTES: Final = 256 * 1024
_VALUE_BYTES: Final = 72
_DENSEST: Final = 24  # `{},{},…`: a value for every three bytes
_RELEASE_ABOVE: Final = 8 * 1024 * 1024
_SWEEPS_UNTIL_RELEASE: Final = 5  # closed connections are freed some seconds later


@dataclass(frozen=True, slots=True)
class Limits:
    """The limits of what peers may use.

    Attributes:
        body: bytes of one body.
        values: JSON values in one body; each takes about 70 bytes once decoded.
        bodies: bytes that all connections hold together.
        connections: including those in their TLS handshake.
        connections_per_peer: the same for one address.
        first_request_seconds: from the connection to the first byte of a request.
        receive_seconds: for one request, from its first byte to its last.
        idle_seconds: between two requests; longer than API servers keep connections.
    """

    body: int = 7 * 1024 * 1024
    values: int = 800_000
    bodies: int = 128 * 1024 * 1024
    connections: int = 2000
    connections_per_peer: int = 1000
    first_request_seconds: float = 10.0
    receive_seconds: float = 10.0
    idle_seconds: float = 180.0


class Member(Protocol):
    """A connection as the server sees it.

    Attributes:
        peer: the address; empty if unknown.
        deadline: when the server stops waiting for the peer, on the event loop's clock.
        since: when it was accepted, became idle, or began a request other than its first.
        was_used: whether it has sent a whole request.
    """

    peer: str
    deadline: float
    since: float
    was_used: bool

    @property
    def is_busy(self) -> bool:
        """Whether a request is being received or answered."""
        ...

    @property
    def is_answering(self) -> bool:
        """Whether a whole request was received and is being answered."""
        ...

    def expire(self) -> None:
        """Abort the connection because its deadline has passed."""
        ...

    def abort(self) -> None:
        """Abort the connection."""
        ...


class Connections:
    """The open connections of a server.

    Attributes:
        held: bytes that the connections hold.
        buffer: into which all of them receive.
    """

    def __init__(self, limits: Limits, now: Callable[[], float]) -> None:
        self.limits = limits
        self.now = now
        self.held = 0
        self.buffer = memoryview(bytearray(_BUFFER_BYTES))
        self._members: set[Member] = set()
        self._peers: Counter[str] = Counter()
        self._peak = 0
        self._sweeps = 0

    def admit(self, member: Member) -> bool:
        """Add a connection; if too many are open, end another.

        Return False if requests on all of them are being answered.
        """
        limits = self.limits
        if self._peers[member.peer] >= limits.connections_per_peer:
            if not self.evict(member.peer):
                return False
        elif len(self._members) >= limits.connections and not self.evict():
            return False
        if self.held + IDLE_BYTES > limits.bodies and not self.evict():
            return False
        self._members.add(member)
        self._peers[member.peer] += 1
        self.held += IDLE_BYTES
        self._peak = max(self._peak, self.held)
        return True

    def evict(self, peer: str | None = None) -> bool:
        """End a connection, of one peer or of all. Return False if all are answering.

        Those that never sent a whole request are ended first, then idle ones, then those that are
        receiving one; of each group, the oldest. So begun requests do not keep callers out.
        """
        found = [m for m in self._members if not m.is_answering and peer in (None, m.peer)]
        if not found:
            return False
        longest = min(found, key=lambda it: (it.was_used, it.was_used and it.is_busy, it.since))
        self.leave(longest)
        longest.abort()
        return True

    def leave(self, member: Member) -> None:
        """Remove a connection; removing it again has no effect."""
        if member not in self._members:
            return
        self._members.discard(member)
        self.held -= IDLE_BYTES
        self._peers[member.peer] -= 1
        if not self._peers[member.peer]:
            del self._peers[member.peer]

    def hold(self, size: int) -> bool:
        """Reserve memory, or release it if negative. Return False if it is too much."""
        if size > 0 and self.held + size > self.limits.bodies:
            return False
        self.held += size
        self._peak = max(self._peak, self.held)
        return True

    def sweep(self) -> None:
        """End connections whose deadline has passed; call this about every second."""
        now = self.now()
        for member in [m for m in self._members if m.deadline < now]:
            member.expire()
        if self._peak > _RELEASE_ABOVE and self.held < self._peak // 2:
            self._peak = self.held
            self._sweeps = _SWEEPS_UNTIL_RELEASE
            release_free_memory()
        elif self._sweeps:
            self._sweeps -= 1
            if not self._sweeps:
                release_free_memory()

    def busy(self) -> list[Member]:
        """Return the connections with a request."""
        return [member for member in self._members if member.is_busy]

    def idle(self) -> list[Member]:
        """Return the connections without a request."""
        return [member for member in self._members if not member.is_busy]


def weight(body: bytes) -> tuple[int, int]:
    """Return the maximum number of JSON values in a body, and the bytes they take decoded.

    Short bodies are not counted, since counting takes time: they are sized as the densest possible
    body.
    """
    if len(body) <= LARGE:
        return 0, _DENSEST * len(body)
    values = body.count(b",") + body.count(b"[") + body.count(b"{")
    return values, len(body) + values * _VALUE_BYTES
