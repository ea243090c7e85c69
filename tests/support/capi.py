"""Cluster API's real core controller manager, for tests.

    async with core_manager(kubeconfig, directory) as core:
        ...
        await core.restart()

It is built from its Go module like the sandbox's programs (`pergola sandbox build --all`). It needs
a cluster of its own: it installs CRDs and webhooks for Cluster API's kinds, and reconciles all
objects of them. `docs/how-to/cluster-api-core-manager.md` explains flags and patches.
"""

import asyncio
import os
import signal
import subprocess
from base64 import b64encode
from collections.abc import AsyncGenerator, Iterator, Sequence
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Final, NamedTuple

import aiohttp

from pergola.api.kinds import CRD
from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.pki import Authority
from pergola.sandbox import binaries
from pergola.sandbox.module import CLUSTER_API_CONFIG, CLUSTER_API_MANAGER
from pergola.sandbox.processes import ProcessId, die_with
from pergola.sandbox.progress import Progress, silent
from pergola.testing.crds import is_established
from pergola.testing.waiting import until
from tests.support.ports import held_port

_HOST: Final = "127.0.0.1"
_FIELD_MANAGER: Final = "pergola-testing"
_READY_SECONDS: Final = 180.0
_LOG_SECONDS: Final = 180.0
_GRACE_SECONDS: Final = 15.0
_INTERVAL: Final = 0.1
_DAY: Final = timedelta(days=1)
_LOG_CHARACTERS: Final = 6000


class CoreManagerError(Exception):
    """The core manager cannot run; the text has the end of its log."""


class _Ports(NamedTuple):
    webhooks: int
    health: int


class CoreManager:
    """The core manager as a process, which can be stopped and restarted.

    Independent of event loops. It ends with the thread that started it.

    Args:
        program: the manager.
        kubeconfig: an administrator's kubeconfig.
        directory: the directory of its webhooks' `tls.crt` and `tls.key`, and of its log.
        extra: extra flags besides the required ones.
    """

    def __init__(
        self,
        program: Path,
        kubeconfig: Path,
        directory: Path,
        ports: _Ports,
        extra: Sequence[str] = (),
    ) -> None:
        self._line = [str(program), *_flags(kubeconfig, directory, ports), *extra]
        self._directory = directory
        self._health = f"http://{_HOST}:{ports.health}/readyz"
        self._process: subprocess.Popen[bytes] | None = None

    @property
    def log(self) -> Path:
        """The log, over all restarts."""
        return self._directory / "core-manager.log"

    def last_words(self) -> str:
        """Return the end of the log."""
        text = self.log.read_text(errors="replace") if self.log.exists() else ""
        return text[-_LOG_CHARACTERS:]

    async def until_logged(self, *texts: str) -> None:
        """Wait for a line with all of these texts; the log escapes double quotes."""
        desired = [text.replace('"', '\\"') for text in texts]
        async with asyncio.timeout(_LOG_SECONDS):
            while not self._has_line(desired):  # noqa: ASYNC110 - another process writes it
                await asyncio.sleep(_INTERVAL)

    async def start(self) -> None:
        """Start it, and return when its webhooks are served.

        Raises:
            CoreManagerError: the manager ends, or takes too long.
        """
        parent = os.getpid()
        with self.log.open("ab") as log:
            self._process = subprocess.Popen(  # noqa: ASYNC220 - it outlives event loops
                self._line,
                cwd=self._directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
                start_new_session=True,
                preexec_fn=lambda: die_with(parent),  # noqa: PLW1509 - calls one system call
            )
        await self._ready(self._process)

    async def stop(self) -> None:
        """Terminate it as a rollout would, and kill it if necessary."""
        process, self._process = self._process, None
        if process is None or process.poll() is not None:
            return
        process.send_signal(signal.SIGTERM)
        known = ProcessId.of(process.pid)
        if known is not None:
            try:
                async with asyncio.timeout(_GRACE_SECONDS):
                    await known.ended()
            except TimeoutError:
                process.kill()
        process.wait()

    async def restart(self) -> None:
        """Stop it and start it again."""
        await self.stop()
        await self.start()

    def _has_line(self, texts: Sequence[str]) -> bool:
        lines = self.log.read_text(errors="replace").splitlines()
        return any(all(text in line for text in texts) for line in lines)

    async def _ready(self, process: subprocess.Popen[bytes]) -> None:
        try:
            async with asyncio.timeout(_READY_SECONDS), aiohttp.ClientSession() as session:
                while not await self._says_ready(session):
                    if process.poll() is not None:
                        raise CoreManagerError(f"the core manager ended:\n{self.last_words()}")
                    await asyncio.sleep(_INTERVAL)
        except TimeoutError:
            raise CoreManagerError(
                f"the core manager is not ready after {_READY_SECONDS:.0f} s:\n{self.last_words()}"
            ) from None

    async def _says_ready(self, session: aiohttp.ClientSession) -> bool:
        try:
            async with session.get(self._health) as answer:
                return answer.status == 200
        except aiohttp.ClientConnectionError:
            return False


@asynccontextmanager
async def core_manager(
    kubeconfig: Path, directory: Path, *, flags: Sequence[str] = (), progress: Progress = silent
) -> AsyncGenerator[CoreManager]:
    """Run the core manager with its CRDs and webhooks until the block ends.

    The installed objects stay in the cluster.

    Args:
        directory: an empty directory for certificates and the log.
        flags: extra flags, such as `--feature-gates=...`.
        progress: reports that the program is being built.

    Raises:
        SandboxError: the program cannot be built.
        CoreManagerError: the manager does not start.
    """
    parts = await asyncio.to_thread(
        binaries.find, (CLUSTER_API_MANAGER, CLUSTER_API_CONFIG), progress
    )
    authority = _certify(directory)
    with held_port(_HOST) as health, held_port(_HOST) as webhooks:
        async with Client.connect(load(kubeconfig)) as client:
            await _install(client, parts[CLUSTER_API_CONFIG], webhooks, authority)
        ports = _Ports(webhooks=webhooks, health=health)
        core = CoreManager(parts[CLUSTER_API_MANAGER], kubeconfig, directory, ports, flags)
        try:
            await core.start()
            yield core
        finally:
            await core.stop()


def _flags(kubeconfig: Path, directory: Path, ports: _Ports) -> Iterator[str]:
    yield f"--kubeconfig={kubeconfig}"
    yield "--leader-elect=false"
    yield f"--health-addr={_HOST}:{ports.health}"
    yield f"--diagnostics-address={_HOST}:0"
    yield "--insecure-diagnostics"
    # There is no flag for the address of the webhooks: they are served on all addresses.
    yield f"--webhook-port={ports.webhooks}"
    yield f"--webhook-cert-dir={directory}"


def _certify(directory: Path) -> bytes:
    """Write a serving certificate; return the authority to trust, PEM."""
    now = datetime.now(UTC)
    authority = Authority.create("core-manager", now, _DAY)
    pair = authority.issue_server("core-manager", [_HOST], now, _DAY)
    (directory / "tls.crt").write_bytes(pair.public)
    key = directory / "tls.key"
    key.touch(mode=0o600)
    key.write_bytes(pair.private)
    return authority.pair.public


async def _install(client: Client, config: Path, port: int, authority: bytes) -> None:
    """Install CRDs and registrations like the release's manifests, for our own server."""
    crds = [convertible(crd, port, authority) for crd in _objects(config / "crd" / "bases")]
    for crd in crds:
        await client.apply(crd, manager=_FIELD_MANAGER, force=True)
    for crd in crds:
        await until(client, CRD, Key("", name_of(crd)), is_established)
    for registration in _objects(config / "webhook"):
        if registration["kind"].endswith("WebhookConfiguration"):
            served = registered(registration, port, authority)
            await client.apply(served, manager=_FIELD_MANAGER, force=True)


def convertible(crd: JsonObject, port: int, authority: bytes) -> JsonObject:
    """Return a CRD of core whose versions are converted by a manager on this machine."""
    webhook = {
        "conversionReviewVersions": ["v1"],
        "clientConfig": _client_config("/convert", port, authority),
    }
    conversion = {"strategy": "Webhook", "webhook": webhook}
    return {**crd, "spec": {**crd["spec"], "conversion": conversion}}


def registered(configuration: JsonObject, port: int, authority: bytes) -> JsonObject:
    """Return a webhook configuration of core whose entries are served on this machine."""
    entries = [
        {
            **entry,
            "clientConfig": _client_config(
                str(map_at(entry, "clientConfig", "service")["path"]), port, authority
            ),
        }
        for entry in maps_at(configuration, "webhooks")
    ]
    metadata = {"name": f"capi-{name_of(configuration)}"}
    return {**configuration, "metadata": metadata, "webhooks": entries}


def _client_config(path: str, port: int, authority: bytes) -> JsonObject:
    return {
        "url": f"https://{_HOST}:{port}{path}",
        "caBundle": b64encode(authority).decode(),
    }


def _objects(folder: Path) -> Iterator[JsonObject]:
    """Return the Kubernetes objects in a folder's manifests."""
    for file in sorted(folder.glob("*.yaml")):
        for document in parse_documents(file.read_bytes()):
            if isinstance(document.value, dict) and "apiVersion" in document.value:
                yield document.value
