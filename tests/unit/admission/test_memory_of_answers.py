"""The memory for answers that peers do not read is reserved and released exactly once."""

import asyncio

from pergola.admission.connections import IDLE_BYTES, Connections, Limits
from pergola.admission.http import Connection, Shared

UNSENT = 100_000


class Blocked(asyncio.Transport):
    """A transport whose peer does not read."""

    was_aborted = False

    def get_write_buffer_size(self) -> int:
        return UNSENT

    def pause_reading(self) -> None:
        pass

    def resume_reading(self) -> None:
        pass

    def abort(self) -> None:
        self.was_aborted = True


def blocked(bodies: int) -> tuple[Connections, Connection, Blocked]:
    """Return the connections of a server, and one with an unsent answer."""
    connections = Connections(Limits(bodies=bodies), lambda: 0.0)
    connection = Connection(Shared({}, connections, asyncio.ensure_future))
    assert connections.admit(connection)
    transport = Blocked()
    connection.connection_made(transport)
    connection.pause_writing()
    return connections, connection, transport


def test_an_unsent_answer_uses_memory_until_it_is_sent() -> None:
    connections, connection, transport = blocked(IDLE_BYTES + UNSENT)
    assert connections.held == IDLE_BYTES + UNSENT
    connection.resume_writing()
    assert connections.held == IDLE_BYTES
    assert not transport.was_aborted


def test_a_connection_ends_if_there_is_no_memory_for_its_unsent_answer() -> None:
    connections, connection, transport = blocked(IDLE_BYTES + UNSENT - 1)
    assert transport.was_aborted
    connection.connection_lost(None)
    assert connections.held == 0
