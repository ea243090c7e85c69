"""Connections that end with their servers."""

import asyncio

from pergola.sandbox.pumping import Connections, Stream


async def test_no_connection_outlives_the_end() -> None:
    connections = Connections()
    served = asyncio.Event()

    async def serve(connection: Stream) -> None:
        served.set()
        try:
            await connection.reader.read()
        finally:
            connection.writer.close()

    accept = connections.served_by(serve)
    async with await asyncio.start_server(accept, "127.0.0.1", 0) as server:
        address = server.sockets[0].getsockname()
        before, writer = await asyncio.open_connection(*address)
        await served.wait()
        tasks = asyncio.all_tasks()

        await connections.end()
        after, other = await asyncio.open_connection(*address)

        assert await before.read() == b""
        assert await after.read() == b""
        assert asyncio.all_tasks() < tasks
        writer.close()
        other.close()
