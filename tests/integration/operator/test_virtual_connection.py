"""The connection to the virtual cluster survives new tokens and authorities (spec 21 §5)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime
from typing import Final

import pytest

from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import JsonObject, Key
from pergola.garden.components.gardener_access import EXTERNAL
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.errors import KubeError, Unreachable
from pergola.operator.copies import Copies
from pergola.operator.virtual_access import virtual_cluster_access
from pergola.operator.virtual_cluster import NotConnected, VirtualCluster
from pergola.pki import Authority
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox.files import LIFETIME
from pergola.testing.waiting import PATIENCE, running, settled
from tests.support.service_accounts import until_rejected
from tests.support.virtual_site import VirtualSite, virtual_sandbox, virtual_site

__all__ = ["virtual_sandbox", "virtual_site"]


UNUSABLE: Final[dict[str, JsonObject | bytes]] = {
    "empty": b"",
    "broken": b"{",
    "text": b"no kubeconfig",
}


class Operator:
    """The connection of an operator, and the controller that maintains it."""

    def __init__(self, site: VirtualSite) -> None:
        self._site = site
        self.copies = Copies(site.runtime)
        self.virtual = VirtualCluster(self.copies.client)
        self._unit = virtual_cluster_access(self.copies, self.virtual, metrics=Metrics())
        self._secrets = Unit("secrets", caches=[self.copies.of(SECRET, "garden")])

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with self.virtual, running(self._secrets, self._unit):
            yield

    async def noticed(self) -> None:
        """Wait until all changes of the Secrets are noticed and used."""
        await settled(self._unit, self._site.runtime)

    async def connected(self) -> Client:
        async with asyncio.timeout(PATIENCE):
            return await self.virtual.connected()

    async def is_connected(self) -> bool:
        """Wait until all changes are noticed, and return whether there is a client."""
        await self.noticed()
        connecting = asyncio.ensure_future(self.virtual.connected())
        await asyncio.wait({connecting}, timeout=0)
        is_done = connecting.done()
        connecting.cancel()
        return is_done


@pytest.fixture
async def operator(virtual_site: VirtualSite) -> AsyncIterator[Operator]:
    found = Operator(virtual_site)
    async with found.running():
        yield found


@asynccontextmanager
async def watching(client: Client) -> AsyncIterator[Cache[str]]:
    """Watch the ConfigMaps of the virtual cluster, as a controller does."""
    cache = Cache(client, CONFIG_MAP, lambda obj: str(obj["metadata"]["uid"]), namespace="default")
    async with running(Unit("watch", caches=[cache])):
        yield cache


async def arrives(site: VirtualSite, cache: Cache[str], name: str) -> None:
    """Create a ConfigMap, and wait until a watch delivers it."""
    key = Key("default", name)
    arrived = asyncio.Event()
    cache.subscribe(lambda change: arrived.set() if change.key == key else None)
    metadata = {"namespace": key.namespace, "name": key.name}
    await site.client.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata})
    async with asyncio.timeout(PATIENCE):
        await arrived.wait()
    await site.client.delete(CONFIG_MAP, key)


async def test_the_connection_waits_for_a_token(
    virtual_site: VirtualSite, operator: Operator
) -> None:
    await virtual_site.publish(virtual_site.kubeconfig(""))
    assert not await operator.is_connected()
    with pytest.raises(NotConnected, match="token for virtual garden kubeconfig was not populated"):
        await operator.virtual.client()

    await virtual_site.publish(virtual_site.kubeconfig((await virtual_site.issue()).token))
    client = await operator.connected()
    assert await client.get_raw("/healthz") == b"ok"


@pytest.mark.parametrize("content", UNUSABLE.values(), ids=UNUSABLE)
async def test_an_unusable_kubeconfig_does_not_end_the_connection(
    virtual_site: VirtualSite, operator: Operator, content: JsonObject | bytes
) -> None:
    await virtual_site.publish(virtual_site.kubeconfig((await virtual_site.issue()).token))
    client = await operator.connected()
    await virtual_site.publish(content)
    await operator.noticed()
    with pytest.raises((NotConnected, KubeError)):
        await operator.virtual.client()
    assert await client.get_raw("/healthz") == b"ok"
    assert await operator.connected() is client


async def test_a_running_client_uses_the_renewed_token(
    virtual_site: VirtualSite, operator: Operator
) -> None:
    old = await virtual_site.issue()
    await virtual_site.publish(virtual_site.kubeconfig(old.token))
    client = await operator.connected()
    async with watching(client) as cache:
        await arrives(virtual_site, cache, "before")
        await virtual_site.publish(virtual_site.kubeconfig((await virtual_site.issue()).token))
        await operator.noticed()
        await virtual_site.revoke(old)
        await until_rejected(replace(virtual_site.config, credentials=StaticToken(old.token)))

        assert await client.get_raw("/healthz") == b"ok"
        await arrives(virtual_site, cache, "after")
    assert await operator.connected() is client


async def test_a_rejected_token_is_reloaded_even_before_its_change_is_noticed(
    virtual_site: VirtualSite,
) -> None:
    old = await virtual_site.issue()
    await virtual_site.publish(virtual_site.kubeconfig(old.token))
    async with VirtualCluster(virtual_site.runtime) as virtual:
        client = await virtual.client()
        await virtual_site.publish(virtual_site.kubeconfig((await virtual_site.issue()).token))
        await virtual_site.revoke(old)
        await until_rejected(replace(virtual_site.config, credentials=StaticToken(old.token)))
        assert await client.get_raw("/healthz") == b"ok"


async def test_a_running_client_survives_a_rotation_of_the_authority(
    virtual_site: VirtualSite, operator: Operator
) -> None:
    """First both authorities are trusted, then the server changes, then the old one is removed."""
    token = (await virtual_site.issue()).token
    await virtual_site.publish(virtual_site.kubeconfig(token))
    client = await operator.connected()
    untouched = Client.connect(replace(virtual_site.config, credentials=StaticToken(token)))
    new = Authority.create("rotated", datetime.now(UTC), LIFETIME)
    async with watching(client) as cache, untouched:
        virtual_site.trusted += new.pair.public
        await virtual_site.publish(virtual_site.kubeconfig(token))
        await operator.noticed()
        await virtual_site.serve_with(new)
        assert await client.get_raw("/healthz") == b"ok"
        await arrives(virtual_site, cache, "prepared")

        virtual_site.trusted = new.pair.public
        await virtual_site.publish(virtual_site.kubeconfig(token))
        await operator.noticed()
        assert await client.get_raw("/healthz") == b"ok"
        await arrives(virtual_site, cache, "completed")
        # A client that keeps its authorities cannot connect.
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await untouched.get_raw("/healthz")
    assert await operator.connected() is client


async def test_a_server_whose_authority_changed_without_overlap_is_reached_again(
    virtual_site: VirtualSite, operator: Operator
) -> None:
    token = (await virtual_site.issue()).token
    await virtual_site.publish(virtual_site.kubeconfig(token))
    client = await operator.connected()
    new = Authority.create("another", datetime.now(UTC), LIFETIME)
    async with watching(client) as cache:
        await virtual_site.serve_with(new)
        with pytest.raises(Unreachable, match="certificate verify failed"):
            await client.get_raw("/healthz")
        virtual_site.trusted = new.pair.public
        await virtual_site.publish(virtual_site.kubeconfig(token))
        await operator.noticed()
        assert await client.get_raw("/healthz") == b"ok"
        await arrives(virtual_site, cache, "again")


async def test_another_server_address_replaces_the_client(
    virtual_site: VirtualSite, operator: Operator
) -> None:
    config = virtual_site.kubeconfig((await virtual_site.issue()).token)
    await virtual_site.publish(config)
    client = await operator.connected()
    config["clusters"][0]["cluster"]["server"] = virtual_site.config.server.replace(
        "127.0.0.1", "localhost"
    )
    await virtual_site.publish(config)
    async with asyncio.timeout(PATIENCE):
        await operator.virtual.replaced(client)
    other = await operator.connected()
    assert await other.get_raw("/healthz") == b"ok"
    with pytest.raises(Unreachable, match="the client is closed"):
        await client.get_raw("/healthz")


async def test_the_public_name_is_used_where_service_names_do_not_resolve(
    virtual_site: VirtualSite, operator: Operator
) -> None:
    """The kubeconfig for it has a separate token, which is renewed at other times."""
    old = await virtual_site.issue()
    internal = virtual_site.kubeconfig(old.token)
    internal["clusters"][0]["cluster"]["server"] = "https://virtual.garden.svc.invalid"
    await virtual_site.publish(virtual_site.kubeconfig(old.token), EXTERNAL)
    await virtual_site.publish(internal)
    client = await operator.connected()
    assert await client.get_raw("/healthz") == b"ok"

    new = virtual_site.kubeconfig((await virtual_site.issue()).token)
    await virtual_site.publish(new, EXTERNAL)
    await operator.noticed()
    await virtual_site.revoke(old)
    await until_rejected(replace(virtual_site.config, credentials=StaticToken(old.token)))
    assert await client.get_raw("/healthz") == b"ok"
    assert await operator.connected() is client


async def test_a_name_is_looked_up_again_after_no_resolver_answered(
    virtual_site: VirtualSite,
) -> None:
    """The Service's address stays when the next look-up fails."""
    answers = [None, None, True, None]

    async def resolve(host: str) -> bool | None:
        assert host == "localhost"
        return answers.pop(0)

    internal = virtual_site.kubeconfig((await virtual_site.issue()).token)
    external = virtual_site.kubeconfig((await virtual_site.issue()).token)
    server = virtual_site.config.server.replace("127.0.0.1", "localhost")
    internal["clusters"][0]["cluster"]["server"] = server
    await virtual_site.publish(external, EXTERNAL)
    await virtual_site.publish(internal)
    async with VirtualCluster(virtual_site.runtime, resolve=resolve, patience=0) as virtual:
        public = await virtual.client()
        assert await virtual.client() is public
        service = await virtual.client()
        assert service is not public
        await virtual_site.publish(
            virtual_site.kubeconfig((await virtual_site.issue()).token), EXTERNAL
        )
        assert await virtual.client() is service
        assert await virtual.client() is service
    assert not answers


async def test_an_unrelated_secret_gives_no_access(
    virtual_site: VirtualSite, operator: Operator
) -> None:
    config = virtual_site.kubeconfig((await virtual_site.issue()).token)
    await virtual_site.publish(config, "unrelated")
    assert not await operator.is_connected()
    await virtual_site.runtime.delete(SECRET, Key("garden", "unrelated"))


async def test_finished_work_starts_again_only_with_another_client(
    virtual_site: VirtualSite, operator: Operator
) -> None:
    begun: asyncio.Queue[Client] = asyncio.Queue()

    async def work(client: Client) -> None:
        begun.put_nowait(client)

    config = virtual_site.kubeconfig((await virtual_site.issue()).token)
    await virtual_site.publish(config)
    repeating = asyncio.create_task(operator.virtual.while_connected(work))
    async with asyncio.timeout(PATIENCE):
        first = await begun.get()
    for _ in range(10):
        await first.get_raw("/healthz")
    assert begun.empty()

    server: str = config["clusters"][0]["cluster"]["server"]
    config["clusters"][0]["cluster"]["server"] = server.replace("127.0.0.1", "localhost")
    await virtual_site.publish(config)
    async with asyncio.timeout(PATIENCE):
        assert await begun.get() is not first
    repeating.cancel()
    await asyncio.wait([repeating])
