"""A real OCI registry on loopback, and charts that the real Helm pushes to it.

```python
async with registry(tmp_path) as found:
    reference = await found.push(CHARTS / "greeter")
    chart = await Puller().pull(reference)
```
"""

import asyncio
import os
import re
import shutil
import signal
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from datetime import timedelta
from pathlib import Path
from typing import Final

import bcrypt

from pergola.api.objects import JsonObject
from pergola.charts import ChartReference
from pergola.kube.child_process import send
from pergola.kube.yaml import dump
from pergola.pki import Authority
from pergola.runtime.clock import SystemClock
from pergola.sandbox import binaries
from pergola.sandbox.errors import SandboxError
from pergola.sandbox.helm import HelmError, helm, push
from pergola.sandbox.node.forwarder import MACHINE
from pergola.sandbox.on_demand import REGISTRY
from pergola.sandbox.processes import die_with

USER: Final = "puller"
PASSWORD: Final = "correct horse"  # noqa: S105 - of a registry that lives for minutes
_LISTENS: Final = re.compile(rb"listening on (127\.0\.0\.1:\d+)")
_DIGEST: Final = re.compile(r"^Digest: (sha256:[0-9a-f]{64})$", re.MULTILINE)
_PUSHED: Final = re.compile(r"^Pushed: (\S+)$", re.MULTILINE)
_SECONDS: Final = 180.0

Started = asyncio.Future[str]


@dataclass
class Registry:
    """A running registry.

    Attributes:
        host: Its address with its port.
        directory: Where its content and the packages of charts are.
        ca_bundle: The authority of its certificate, as PEM; empty without TLS.
        requires_password: Whether only `USER` may pull.
    """

    host: str
    directory: Path
    ca_bundle: str = ""
    requires_password: bool = False
    _lines: list[bytes] = field(default_factory=list)
    _printed: asyncio.Event = field(default_factory=asyncio.Event)

    async def push(self, chart: Path, version: str = "") -> ChartReference:
        """Package a folder as a chart and push it; return its reference with tag and digest.

        Args:
            version: Instead of that in its `Chart.yaml`.
        """
        return await asyncio.to_thread(self._push, chart, version)

    def requests(self, part: str) -> int:
        """Return how many requests whose line contains a text the registry has logged so far."""
        return sum(part.encode() in line for line in self._lines)

    async def logged(self, part: str, count: int) -> None:
        """Wait until that many requests are logged, which is soon after they are answered."""
        async with asyncio.timeout(_SECONDS):
            while self.requests(part) < count:
                self._printed.clear()
                await self._printed.wait()

    async def follow(self, output: asyncio.StreamReader, started: Started) -> None:
        """Read what the process prints until it ends."""
        async for line in output:
            self._lines.append(line)
            self._printed.set()
            if not started.done() and (found := _LISTENS.search(line)):
                started.set_result(found[1].decode())
        if not started.done():
            text = b"".join(self._lines).decode(errors="replace")
            started.set_exception(SandboxError(f"the registry ended: {text}"))

    def _push(self, chart: Path, version: str) -> ChartReference:
        packages = self.directory / "packages"
        chosen = ["--version", version] if version else []
        printed = helm("package", str(chart), "--destination", str(packages), *chosen)
        package = Path(printed.strip().rpartition(": ")[2])
        options = ["--plain-http"] if not self.ca_bundle else ["--ca-file", self._ca_file()]
        if self.requires_password:
            options += ["--username", USER, "--password", PASSWORD]
        printed = push(package, f"oci://{self.host}/charts", *options)
        pushed, digest = _PUSHED.search(printed), _DIGEST.search(printed)
        if not pushed or not digest:
            raise HelmError(printed)
        return ChartReference.parse(f"{pushed[1]}@{digest[1]}")

    def _ca_file(self) -> str:
        path = self.directory / "ca.crt"
        path.write_text(self.ca_bundle)
        return str(path)


@asynccontextmanager
async def registry(
    directory: Path, *, tls: bool = False, requires_password: bool = False
) -> AsyncGenerator[Registry]:
    """Run a registry while the block lasts.

    Args:
        directory: An empty directory for its content.
        tls: Whether it has a certificate, by an authority of its own; also for pods of a node.
        requires_password: Whether only `USER` with `PASSWORD` may pull and push.
    """
    program, parent = await asyncio.to_thread(_program), os.getpid()
    settings, ca_bundle = _settings(directory, tls=tls, requires_password=requires_password)
    path = directory / "registry.yaml"
    path.write_text(dump(settings))
    process = await asyncio.create_subprocess_exec(
        program,
        "serve",
        str(path),
        stdin=asyncio.subprocess.DEVNULL,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={"PATH": os.environ["PATH"], "OTEL_TRACES_EXPORTER": "none"},
        preexec_fn=lambda: die_with(parent),
    )
    if process.stdout is None:
        raise RuntimeError("the registry has no output")
    found = Registry("", directory, ca_bundle, requires_password)
    started: Started = asyncio.get_running_loop().create_future()
    follower = asyncio.create_task(found.follow(process.stdout, started))
    try:
        async with asyncio.timeout(_SECONDS):
            found.host = await started
        yield found
    finally:
        if process.returncode is None:
            send(process, signal.SIGKILL)
        await process.wait()
        await follower
        shutil.rmtree(directory / "content", ignore_errors=True)


def _program() -> Path:
    return binaries.find((REGISTRY,))[REGISTRY]


def _settings(directory: Path, *, tls: bool, requires_password: bool) -> tuple[JsonObject, str]:
    http: JsonObject = {"addr": "127.0.0.1:0", "secret": "only for tests"}
    settings: JsonObject = {
        "version": "0.1",
        "log": {"level": "info", "accesslog": {"disabled": False}},
        "storage": {"filesystem": {"rootdirectory": str(directory / "content")}},
        "http": http,
    }
    ca_bundle = ""
    if tls:
        now = SystemClock().now()
        authority = Authority.create("registry", now, timedelta(days=1))
        pair = authority.issue_server("registry", ["127.0.0.1", MACHINE], now, timedelta(days=1))
        files = {"certificate": pair.public, "key": pair.private}
        for name, content in files.items():
            (directory / name).write_bytes(content)
        http["tls"] = {name: str(directory / name) for name in files}
        ca_bundle = authority.pair.public.decode()
    if requires_password:
        hashed = bcrypt.hashpw(PASSWORD.encode(), bcrypt.gensalt(4)).decode()
        (directory / "users").write_text(f"{USER}:{hashed}\n")
        settings["auth"] = {"htpasswd": {"realm": "test", "path": str(directory / "users")}}
    return settings, ca_bundle
