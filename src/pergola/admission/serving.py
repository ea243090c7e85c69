"""The webhook server of one process, with its certificates and its registration.

A process enters `served()`, runs `units` on every replica and `leading()` on the leader, and
reports `is_ready`.
"""

from collections.abc import AsyncGenerator, Callable, Mapping
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass, replace
from pathlib import Path
from tempfile import TemporaryDirectory

from pergola.admission.certificates import Certificates, ServingError
from pergola.admission.http import Endpoint
from pergola.admission.owner import Owner
from pergola.admission.self_signed import Render, SelfSigned
from pergola.admission.server import dials, serve
from pergola.admission.workers import WorkerPool
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.pki import Plan
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.runtime.process.listening import listen


@dataclass(frozen=True, slots=True, kw_only=True)
class Listening:
    """The address and the files of the server.

    Attributes:
        host: the address; empty for all.
        port: the port; 0 for any free one.
        directory: contains `tls.crt` and `tls.key`. A server with its own identity writes them
            there, or into a temporary directory if None.
        client_ca: only clients with a certificate of this authority may connect; None for all.
        shared: whether other processes of the same user listen on the port, too.
    """

    host: str
    port: int
    directory: Path | None = None
    client_ca: Path | None = None
    shared: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnIdentity:
    """Certificates that the server issues itself, and the registration that trusts them.

    Attributes:
        client: for the cluster whose API server calls the webhooks.
        secret: holds the certificates.
        name: of the webhook configurations.
        render: returns them.
        owner: the object whose deletion deletes them; None for none.
    """

    client: Client
    secret: Key
    plan: Plan
    name: str
    render: Render
    owner: Owner | None = None
    clock: Clock | None = None

    def prepare(self, directory: Path) -> SelfSigned:
        """Return the identity that writes its files into a directory."""
        return SelfSigned(
            self.client,
            self.secret,
            self.plan,
            name=self.name,
            render=self.render,
            directory=directory,
            owner=self.owner,
            clock=self.clock,
        )


@dataclass(frozen=True, slots=True)
class Workers:
    """The worker processes besides this one.

    Attributes:
        task: creates the task of a worker from the address and files.
    """

    pool: WorkerPool
    task: Callable[[Listening], JsonObject]


class WebhookServer:
    """A server on every replica; the leader also renews certificates and registers.

    Args:
        endpoints: by path; if empty, nothing is served.
        own: None if someone else issues the certificates and registers the webhooks.
        workers: other processes that also serve; None for none.

    Attributes:
        units: the units that every replica runs in addition to the server.
        port: 0 before the server has started.
    """

    def __init__(
        self,
        endpoints: Mapping[str, Endpoint],
        listening: Listening,
        metrics: Metrics,
        own: OwnIdentity | None = None,
        workers: Workers | None = None,
    ) -> None:
        self._endpoints = endpoints
        self._listening = listening
        self._metrics = metrics
        self._own = own
        self._workers = workers
        self._identity: SelfSigned | None = None
        self.is_needed = bool(endpoints)
        self.units: list[Unit] = []
        self.port = 0

    @asynccontextmanager
    async def served(self) -> AsyncGenerator[None]:
        """Serve until the end of the block.

        Raises:
            ServingError: The certificate cannot be used, or the owner of the registration does
                not exist.
            WorkerError: A worker cannot serve.
            ListenError: The port is in use, or not permitted.
            KubeError: The server's own certificate cannot be kept in its Secret.
        """
        if not self.is_needed:
            yield
            return
        async with AsyncExitStack() as stack:
            directory = self._directory(stack)
            if self._own is not None:
                self._identity = self._own.prepare(directory)
                await self._identity.prepare()
                self.units.append(self._identity.serving())
            await self._serve(stack, replace(self._listening, directory=directory))
            yield

    async def _serve(self, stack: AsyncExitStack, at: Listening) -> None:
        """Serve here, then on the workers; they end together with this server."""
        workers = self._workers
        if workers is not None:
            _check_free(at)
            at = replace(at, shared=True)
            stack.push_async_callback(workers.pool.join)
        certificates = Certificates(
            at.directory or Path(), self._metrics.certificates(), at.client_ca
        )
        server = serve(at.host, at.port, self._endpoints, certificates, shared=at.shared)
        self.port = await stack.enter_async_context(server)
        if workers is not None:
            stack.callback(workers.pool.dismiss)
            task = workers.task(replace(at, port=self.port))
            self.units.append(await workers.pool.start(task))

    def leading(self) -> list[Unit]:
        """Return the units that the leader runs: renewal and registration."""
        return [self._identity.leading(self._metrics)] if self._identity else []

    async def unregister(self) -> None:
        """Delete the registration, if it is the server's own."""
        if self._identity:
            await self._identity.unregister()

    async def is_ready(self) -> str | None:
        """Return why the server cannot be reached; None if it can, or is not needed."""
        if not self.is_needed:
            return None
        if not self.port:
            return "the webhook server has not started yet"
        if self._workers and (problem := self._workers.pool.problem):
            return problem
        return await dials(self._listening.host or "localhost", self.port)

    def _directory(self, stack: AsyncExitStack) -> Path:
        directory = self._listening.directory
        if self._own is None:
            if directory is None:
                raise ServingError(
                    "webhooks are enabled, but there is no certificate: set "
                    "server.webhooks.tls.serverCertDir, or server.webhooks.selfSigned.enabled"
                )
            return directory
        if directory is None:
            return Path(stack.enter_context(TemporaryDirectory(prefix="pergola-tls-")))
        directory.mkdir(mode=0o700, parents=True, exist_ok=True)
        return directory


def _check_free(at: Listening) -> None:
    """Check that no other program listens on the port: sharing it would hide that.

    Raises:
        ListenError: another program does.
    """
    if at.port:
        listen(at.host, at.port, "webhooks").close()
