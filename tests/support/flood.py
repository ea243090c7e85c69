"""A webhook server as a process, a mixed flood of strangers against it, and its memory.

    async with flooded_server(folder) as server:
        await flood(server, seconds=60)
        print(server.peak_mebibytes, server.mebibytes())

`python -m tests.support.flood FOLDER` is the server: it allows everything, with the certificate
of the folder and the usual limits, and prints its port.
"""

import asyncio
import ssl
import sys
from collections.abc import AsyncGenerator, Awaitable, Callable
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final

from pergola.admission.certificates import Certificates
from pergola.admission.protocol import Reviewer
from pergola.admission.review import Request, Verdict, allowed
from pergola.admission.server import serve
from pergola.runtime.logging import configure
from pergola.runtime.metrics import Metrics
from pergola.runtime.process import event_loop
from pergola.runtime.task_group import TaskGroup
from tests.support.admission_site import PATH, request, review, write_pair

MEBIBYTE: Final = 1024 * 1024
_SAMPLE_SECONDS: Final = 0.1
_LARGE: Final = 6 * MEBIBYTE
_ANNOUNCED: Final = 100 * MEBIBYTE
_PIECE: Final = b" " * (256 * 1024)
_HEAD: Final = b"POST %s HTTP/1.1\r\nHost: x\r\nContent-Type: application/json\r\n" % PATH.encode()
_TLS: Final = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
_TLS.check_hostname = False
_TLS.verify_mode = ssl.CERT_NONE

_Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class FloodedServer:
    """A running server and its memory.

    Attributes:
        peak_mebibytes: the highest sample of its resident memory so far.
    """

    def __init__(self, pid: int, port: int) -> None:
        self.port = port
        self.peak_mebibytes = 0.0
        self._statm = Path(f"/proc/{pid}/status")

    def mebibytes(self) -> float:
        """Return the resident memory."""
        line = next(li for li in self._statm.read_text().splitlines() if li.startswith("VmRSS"))
        return int(line.split()[1]) / 1024

    async def watch(self) -> None:
        """Sample the memory until cancelled."""
        while True:
            self.peak_mebibytes = max(self.peak_mebibytes, self.mebibytes())
            await asyncio.sleep(_SAMPLE_SECONDS)

    async def connect(self) -> _Streams:
        """Open a connection."""
        return await asyncio.open_connection("127.0.0.1", self.port, ssl=_TLS)

    async def is_served(self) -> bool:
        """Return whether a newcomer gets an answer."""
        with suppress(OSError, asyncio.IncompleteReadError):
            reader, writer = await self.connect()
            writer.write(request(review()))
            answer = await reader.readuntil(b"\r\n\r\n")
            writer.close()
            await writer.wait_closed()
            return answer.startswith(b"HTTP/1.1 200")
        return False


@asynccontextmanager
async def flooded_server(folder: Path) -> AsyncGenerator[FloodedServer]:
    """Run the server as a process."""
    write_pair(folder)
    process = await asyncio.create_subprocess_exec(
        sys.executable, "-m", "tests.support.flood", folder, stdout=asyncio.subprocess.PIPE
    )
    assert process.stdout is not None
    try:
        yield FloodedServer(process.pid, int(await process.stdout.readline()))
    finally:
        process.kill()
        await process.wait()


async def flood(server: FloodedServer, seconds: float) -> None:
    """Attack in all ways at once; newcomers and reviews as large as permitted are among them."""
    end = asyncio.get_running_loop().time() + seconds
    async with TaskGroup() as group:
        watch = group.create_task(server.watch())
        async with TaskGroup() as attackers:
            for attack, number in _ATTACKS.items():
                for _ in range(number):
                    attackers.create_task(_repeated(attack, server, end))
        watch.cancel()


async def _repeated(
    attack: Callable[[_Streams], Awaitable[None]], server: FloodedServer, end: float
) -> None:
    loop = asyncio.get_running_loop()
    while loop.time() < end:
        with suppress(OSError, asyncio.IncompleteReadError):
            # asyncio forgets to close a connection that is cancelled before its handshake begins.
            streams = await server.connect()
            try:
                async with asyncio.timeout_at(end):
                    await attack(streams)
            finally:
                streams[1].transport.abort()
        await asyncio.sleep(_SAMPLE_SECONDS)


async def _be_idle(streams: _Streams) -> None:
    await streams[0].read()


async def _begin(streams: _Streams) -> None:
    streams[1].write(b"P")
    await streams[0].read()


async def _announce_too_much(streams: _Streams) -> None:
    reader, writer = streams
    writer.write(_HEAD + b"Content-Length: %d\r\n\r\n" % _ANNOUNCED)
    for _ in range(_ANNOUNCED // len(_PIECE)):
        writer.write(_PIECE)
        await writer.drain()
    await reader.read()


async def _send_half(streams: _Streams) -> None:
    streams[1].write(_HEAD + b"Content-Length: %d\r\n\r\n%s" % (_LARGE, b" " * (_LARGE // 2)))
    await streams[0].read()


def _post(body: bytes) -> Callable[[_Streams], Awaitable[None]]:
    async def attack(streams: _Streams) -> None:
        reader, writer = streams
        writer.write(request(body))
        await reader.readuntil(b"\r\n\r\n")

    return attack


def _with(value: bytes) -> bytes:
    """Return a review whose object has another field."""
    return review()[:-3] + b',"x":' + value + b"}}}"


_ATTACKS: Final = {
    _be_idle: 900,
    _begin: 200,
    _announce_too_much: 10,
    _send_half: 10,
    _post(_with(b"[" * 100_000 + b"]" * 100_000)): 3,
    _post(_with(b"9" * 1_000_000)): 3,
    _post(_with(b'"' + b"x" * _LARGE + b'"')): 3,
    _post(_with(b"[" + b"{}," * 700_000 + b"{}]")): 3,
    _post(_with(b"{" + b'"a":1,' * 500_000 + b'"b":2}')): 3,
}


def _allow(_: Request) -> Verdict:
    return allowed()


async def _serve(folder: Path) -> None:
    configure("error")
    metrics = Metrics()
    endpoints = {PATH: Reviewer(PATH, _allow, metrics.webhook(PATH))}
    certificates = Certificates(folder, metrics.certificates())
    async with serve("127.0.0.1", 0, endpoints, certificates) as port:
        sys.stdout.write(f"{port}\n")
        sys.stdout.flush()
        await asyncio.Event().wait()


if __name__ == "__main__":
    event_loop.run(lambda: _serve(Path(sys.argv[1])))
