"""A Node, its Machine, and users that request certificates, for tests of the CSR approver.

    async with certificate_site(load(kubeconfig), cluster_client, namespace) as site:
        async with running(site.unit()):
            key = await site.ask(dns_names=[site.name])
            assert "could not find node" in await site.denial(key)

CertificateSigningRequests are cluster-scoped, so each site has an approver that sees only its own.
"""

import asyncio
import secrets
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Sequence
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager, suppress
from dataclasses import dataclass, replace
from datetime import timedelta
from typing import Any, Final

from pergola.api.kinds import CLUSTER_ROLE, CSR, EVENT, MACHINE, NODE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.kube.client import PAGE, Client, ObjectList
from pergola.kube.credentials import Combined, Constant
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import ClusterConfig
from pergola.resource_manager.controllers.csr_approver import Settings, csr_approver, rules
from pergola.resource_manager.controllers.csr_approver.judge import KUBELET_SERVING
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE, until
from pergola.testing.world import RecordingClient
from tests.support.certificate_requests import new_key, request_pem, signing_request
from tests.support.machine_controllers import serve_machines
from tests.support.service_accounts import until_allowed

CLUSTER_ROLE_BINDING: Final = CLUSTER_ROLE._replace(kind="ClusterRoleBinding")
KEY: Final = new_key()


class OwnRequests(RecordingClient):
    """A client that only sees the CertificateSigningRequests of one test, which are cluster-scoped.

    Attributes:
        reads: the number of reads, of single objects and of lists.
    """

    label = ""
    reads = 0

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        """Count the read."""
        self._read(gvk)
        return await super().get(gvk, key, metadata_only=metadata_only)

    async def list(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
    ) -> list[JsonObject]:
        """Count the read."""
        self._read(gvk)
        return await super().list(
            gvk, namespace, labels=labels, fields=fields, metadata_only=metadata_only
        )

    def pages(
        self,
        gvk: GroupVersionKind,
        namespace: str | None = None,
        *,
        labels: str | None = None,
        fields: str | None = None,
        metadata_only: bool = False,
        page_size: int | Callable[[], int] = PAGE,
    ) -> AsyncGenerator[ObjectList]:
        """Add the label of the test."""
        labels = (self.label or labels) if gvk in (CSR, NODE) else labels
        return super().pages(
            gvk,
            namespace,
            labels=labels,
            fields=fields,
            metadata_only=metadata_only,
            page_size=page_size,
        )

    def _read(self, gvk: GroupVersionKind) -> None:
        """Count a read."""
        self.reads += 1

    def stream(
        self, path: str, query: dict[str, str], *, accept: str, silence: float
    ) -> AbstractAsyncContextManager[AsyncIterator[bytes]]:
        """Restrict the watch to the label of the test."""
        if path.endswith(("/certificatesigningrequests", "/nodes")):
            query = query | {"labelSelector": self.label}
        return super().stream(path, query, accept=accept, silence=silence)


@dataclass
class Site:
    """A Node, its Machine's namespace, and the users who request certificates.

    Attributes:
        recorder: the identity of the approver.
    """

    client: Client
    recorder: OwnRequests
    config: ClusterConfig
    namespace: str
    name: str

    @property
    def user(self) -> str:
        """The Node's kubelet."""
        return f"system:node:{self.name}"

    @property
    def agent(self) -> str:
        """The machine's gardener-node-agent."""
        return f"{rules.NODE_AGENT}{self.name}"

    @property
    def bootstrap(self) -> str:
        """A bootstrap token."""
        return f"system:bootstrap:{self.name}"

    def unit(self, clock: Clock | None = None, **settings: Any) -> Unit:
        """Return an approver for this site that denies at once; `settings` overrides Settings."""
        chosen = Settings(machine_namespace=self.namespace, patience=timedelta(0))
        return csr_approver(
            self.recorder,
            self.recorder,
            replace(chosen, **settings),
            metrics=Metrics(),
            clock=clock,
        )

    async def add_node(self, *addresses: tuple[str, str], name: str = "") -> JsonObject:
        """Create a ready Node that gets no pods, and that the approver sees."""
        return await self.client.create(self.labelled(node(name or self.name, addresses)))

    async def add_machine(
        self, name: str = "", node: str | None = None, *addresses: str
    ) -> JsonObject:
        """Create a Machine, of the Node by default."""
        labels = {"node": self.name if node is None else node}
        metadata = {"name": name or self.name, "namespace": self.namespace, "labels": labels}
        machine = {"apiVersion": MACHINE.api_version, "kind": MACHINE.kind, "metadata": metadata}
        created = await self.client.create(machine)
        if not addresses:
            return created
        reported = [{"type": "InternalIP", "address": address} for address in addresses]
        created["status"] = {"addresses": reported}
        return await self.client.update(created, subresource="status")

    async def ask(
        self,
        signer: str = KUBELET_SERVING,
        *,
        user: str = "",
        common_name: str = "",
        organizations: Sequence[str] = ("system:nodes",),
        dns_names: Sequence[str] = (),
        ip_addresses: Sequence[str] = (),
        pem: bytes = b"",
    ) -> Key:
        """Return a CertificateSigningRequest by a user, by default by the Node's kubelet."""
        pem = pem or request_pem(
            KEY, common_name or self.user, organizations, dns_names, ip_addresses
        )
        async with Client.connect(as_user(self.config, user or self.user)) as client:
            return await self.send(client, signer, pem)

    async def send(self, client: Client, signer: str, pem: bytes) -> Key:
        """Create a CertificateSigningRequest that the approver sees."""
        name = f"{self.name}-{secrets.token_hex(3)}"
        created = await client.create(self.labelled(signing_request(name, signer, pem)))
        return Key.of(created)

    def labelled(self, obj: JsonObject) -> JsonObject:
        """Return the same CertificateSigningRequest or Node, so that the approver sees it."""
        return {**obj, "metadata": {**obj["metadata"], "labels": {"site": self.name}}}

    async def decision(self, key: Key) -> tuple[str, str, str]:
        """Wait for the first condition of a request; return its type, reason and message."""
        csr = await until(self.client, CSR, key, lambda csr: bool(conditions(csr)))
        first = conditions(csr)[0]
        assert first["status"] == "True"
        return first["type"], first["reason"], first["message"]

    async def denial(self, key: Key) -> str:
        """Return the message with which a request is denied."""
        kind, reason, message = await self.decision(key)
        assert (kind, reason) == ("Denied", "RequestDenied")
        return message

    async def is_untouched(self, key: Key) -> bool:
        """Return whether a request is undecided."""
        csr = await self.client.get(CSR, key)
        return not conditions(csr)

    async def event(
        self, about: str, reason: str = "CertificateSigningRequestDenied"
    ) -> JsonObject:
        """Wait for the first Event of a reason about an object of this name."""
        async with asyncio.timeout(PATIENCE):
            while True:
                fields = f"regarding.name={about},reason={reason}"
                if found := await self.client.list(EVENT, "default", fields=fields):
                    return found[0]


def node(name: str, addresses: Sequence[tuple[str, str]]) -> JsonObject:
    """Return a Node that reports itself ready, so that kwok does not set its addresses."""
    return {
        "apiVersion": "v1",
        "kind": "Node",
        "metadata": {"name": name},
        "spec": {"taints": [{"key": "only-for-certificates", "effect": "NoSchedule"}]},
        "status": {
            "conditions": [{"type": "Ready", "status": "True"}],
            "addresses": [{"type": kind, "address": address} for kind, address in addresses],
        },
    }


def conditions(csr: JsonObject) -> list[JsonObject]:
    """Return the conditions `Approved`, `Denied` and `Failed`."""
    return maps_at(csr, "status", "conditions")


def as_user(config: ClusterConfig, user: str) -> ClusterConfig:
    """Return a config for the same cluster as another user in the group of nodes."""
    headers = {"Impersonate-User": user, "Impersonate-Group": "system:nodes"}
    return replace(config, credentials=Combined([Constant(headers), config.credentials]))


@asynccontextmanager
async def certificate_site(
    config: ClusterConfig, client: Client, namespace: str
) -> AsyncGenerator[Site]:
    """Yield a site without Node and Machine, whose users may request certificates."""
    name = f"n-{secrets.token_hex(4)}"
    async with AsyncExitStack() as stack:
        recorder = await stack.enter_async_context(OwnRequests.connect(config))
        recorder.label = f"site={name}"
        site = Site(client, recorder, config, namespace, name)
        stack.push_async_callback(_leave, client, name)
        await serve_machines(client)
        await _let_ask(site)
        yield site


async def _let_ask(site: Site) -> None:
    """Grant the users of a site the rights of nodes and bootstrap tokens."""
    users = [site.user, site.agent, site.bootstrap, "somebody", f"{site.agent}-2"]
    group = CLUSTER_ROLE.group
    await site.client.create(
        {
            "apiVersion": CLUSTER_ROLE.api_version,
            "kind": "ClusterRoleBinding",
            "metadata": {"name": site.name},
            "roleRef": {
                "apiGroup": group,
                "kind": "ClusterRole",
                "name": "system:node-bootstrapper",
            },
            "subjects": [{"apiGroup": group, "kind": "User", "name": user} for user in users],
        }
    )
    for user in users:
        async with Client.connect(as_user(site.config, user)) as asking:
            await until_allowed(asking, CSR)


async def _leave(client: Client, name: str) -> None:
    """Delete the cluster-scoped objects of a site."""
    with suppress(NotFound):
        await client.delete(CLUSTER_ROLE_BINDING, Key("", name))
    for obj in await client.list(NODE, labels=f"site={name}"):
        await client.delete(NODE, Key.of(obj))
    for csr in await client.list(CSR, labels=f"site={name}"):
        await client.delete(CSR, Key.of(csr))
