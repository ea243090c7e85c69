"""A local AWS: moto's server, behind a proxy that records calls and injects failures.

    with moto() as server:
        async with AwsDouble(server) as aws:
            aws.fail("DescribeSubnets", "RequestLimitExceeded", status=503, times=2)
            async with aws.client("eu-west-1") as client:
                ...
            assert aws.taken() == ["ec2 DescribeSubnets", ...]

moto runs in a process of its own: its data is global, and importing it takes seconds. It is in
the extra `testing`.
"""

import os
import subprocess
import sys
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from types import TracebackType
from typing import Final, NamedTuple, Self
from urllib.parse import parse_qs

import aiohttp
from aiohttp import web

from pergola.cloud.aws import AwsClient, Credentials, Retry
from pergola.sandbox.aws.answers import signed_for
from pergola.sandbox.errors import SandboxError

ACCOUNT: Final = "123456789012"
"""The account to which everything belongs."""
_LOCALHOST: Final = "127.0.0.1"
_LARGEST: Final = 64 << 20  # bytes of a part of a backup
_HOP_BY_HOP: Final = frozenset({"connection", "content-length", "transfer-encoding", "date"})


class _Fault(NamedTuple):
    """An error that replaces moto's answer."""

    operation: str
    code: str
    status: int
    message: str


@contextmanager
def moto() -> Iterator[str]:
    """Run moto's server on a free port, and yield its URL; leaving the context ends it.

    Raises:
        SandboxError: it does not start.
    """
    with subprocess.Popen(
        [sys.executable, "-m", "pergola.sandbox.aws.server"],
        env=os.environ | {"MOTO_EC2_LOAD_DEFAULT_AMIS": "false"},  # thousands, at each reset
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        text=True,
    ) as process:
        port = process.stdout.readline().strip() if process.stdout else ""
        if not port:
            raise SandboxError("moto does not start: install pergola with the extra `testing`")
        try:
            yield f"http://{_LOCALHOST}:{port}"
        finally:
            process.kill()


class AwsDouble:
    """AWS's APIs for EC2, ELB, STS, IAM and more, at one address on 127.0.0.1.

    Args:
        server: the URL of moto's server, which is reset.

    Attributes:
        url: the endpoint of all services; set when the context is entered.
    """

    url: str

    def __init__(self, server: str) -> None:
        self._moto = server
        self._calls: list[str] = []
        self._faults: deque[_Fault] = deque()

    async def __aenter__(self) -> Self:
        self._http = aiohttp.ClientSession(auto_decompress=False)
        app = web.Application(client_max_size=_LARGEST)
        app.router.add_route("*", "/{path:.*}", self._pass)
        self._runner = web.AppRunner(app)
        await self._runner.setup()
        site = web.TCPSite(self._runner, _LOCALHOST, 0)
        await site.start()
        self.url = f"http://{_LOCALHOST}:{self._runner.addresses[0][1]}"
        await self.authenticate(after=None)
        await self._post("reset")
        return self

    async def __aexit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        traceback: TracebackType | None,
    ) -> None:
        await self._runner.cleanup()
        await self._http.close()

    def client(
        self, region: str, credentials: Credentials | None = None, *, retry: Retry | None = None
    ) -> AwsClient:
        """Return a client of this AWS; it accepts any keys, unless `authenticate` was called."""
        keys = credentials or Credentials("test", "test")
        return AwsClient(region, credentials=keys, endpoint_url=self.url, retry=retry)

    async def authenticate(self, *, after: int | None = 0) -> None:
        """Check identities and their IAM policies from now on.

        Args:
            after: how many requests still go unchecked; None for all.
        """
        await self._post("reset-auth", "inf" if after is None else str(after))

    def fail(
        self, operation: str, code: str, *, status: int = 400, message: str = "", times: int = 1
    ) -> None:
        """Let the next calls of an operation fail before they reach moto."""
        self._faults.extend([_Fault(operation, code, status, message)] * times)

    def heal(self) -> None:
        """End all injected failures."""
        self._faults.clear()

    def taken(self) -> list[str]:
        """Return and forget the recorded calls, such as `ec2 DescribeVpcs`, even failed ones."""
        taken, self._calls = self._calls, []
        return taken

    async def _post(self, what: str, data: str = "") -> None:
        async with self._http.post(f"{self._moto}/moto-api/{what}", data=data) as answer:
            answer.raise_for_status()

    async def _pass(self, request: web.Request) -> web.Response:
        body = await request.read()
        service = service_of(request)
        operation = parse_qs(body.decode()).get("Action", [request.path])[0]
        self._calls.append(f"{service} {operation}")
        for fault in self._faults:
            if fault.operation == operation:
                self._faults.remove(fault)
                return _refusal(fault, service)
        return await self._forward(request, body)

    async def _forward(self, request: web.Request, body: bytes) -> web.Response:
        # The Host header stays: it is part of what the signature covers.
        async with self._http.request(
            request.method, f"{self._moto}{request.path_qs}", data=body, headers=request.headers
        ) as answer:
            headers = {k: v for k, v in answer.headers.items() if k.lower() not in _HOP_BY_HOP}
            return web.Response(status=answer.status, headers=headers, body=await answer.read())


def service_of(request: web.Request) -> str:
    """Return the service that a request is signed for; `?` if it is not signed."""
    return signed_for(request.headers.get("Authorization", "")) or "?"


def _refusal(fault: _Fault, service: str) -> web.Response:
    """Return an error response, in the format of the service."""
    said = f"<Code>{fault.code}</Code><Message>{fault.message or fault.code}</Message>"
    if service == "ec2":
        text = (
            f"<Response><Errors><Error>{said}</Error></Errors><RequestID>r</RequestID></Response>"
        )
    else:
        text = (
            f"<ErrorResponse><Error><Type>Sender</Type>{said}</Error>"
            "<RequestId>r</RequestId></ErrorResponse>"
        )
    return web.Response(status=fault.status, text=text, content_type="text/xml")
