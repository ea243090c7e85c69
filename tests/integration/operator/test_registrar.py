"""Controllers start and stop with a Garden and its virtual cluster (spec 21 §5)."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any, Final

import pytest

from pergola.api.kinds import NAMESPACE, NETWORK_POLICY, SECRET
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_config import API_VERSION, KIND, configuration_from
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.kube.client import Client
from pergola.operator.copies import Copies
from pergola.operator.network_policies import NamespacePolicies, SeenNamespace
from pergola.operator.registered import for_garden
from pergola.operator.registrar import ForGarden, ForVirtualCluster, Registrar
from pergola.operator.virtual_access import virtual_cluster_access
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.caching.view import View
from pergola.runtime.controlling.controller import DONE
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE, running, until, until_gone
from tests.support.gardens import MINIMAL
from tests.support.virtual_site import VirtualSite, virtual_sandbox, virtual_site

__all__ = ["virtual_sandbox", "virtual_site"]


MINE: Final = Key("", "minimal")


class Lives:
    """The starts and stops of controllers, in order."""

    def __init__(self) -> None:
        self.events: list[str] = []
        self.clients: list[Client] = []
        self._changed = asyncio.Event()

    def unit(self, name: str) -> Unit:
        """Return a controller that only records that it runs."""

        async def live() -> None:
            self.note(f"{name} starts")
            try:
                await asyncio.Event().wait()
            finally:
                self.note(f"{name} stops")

        return Unit(name, tasks=[live])

    def note(self, event: str) -> None:
        self.events.append(event)
        self._changed.set()

    async def reached(self, *expected: str) -> None:
        """Wait until exactly these events have happened since the last call, in any order."""
        try:
            async with asyncio.timeout(PATIENCE):
                while len(self.events) < len(expected):
                    self._changed.clear()
                    await self._changed.wait()
        finally:
            found, self.events = self.events, []
        assert sorted(found) == sorted(expected)


class Process:
    """The parts of an operator's process that start and stop controllers."""

    def __init__(
        self,
        site: VirtualSite,
        gardens: tuple[ForGarden, ...],
        virtual_clusters: tuple[ForVirtualCluster, ...],
    ) -> None:
        self.copies = Copies(site.runtime)
        self.virtual = VirtualCluster(self.copies.client)
        self.registrar = Registrar(self.copies, self.virtual, gardens, virtual_clusters)

    def access(self) -> Unit:
        return virtual_cluster_access(self.copies, self.virtual, metrics=Metrics())

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        unit = Unit("registrar", tasks=[self.registrar.run])
        async with self.virtual, running(self.copies.unit, unit):
            yield


@pytest.fixture
async def lives() -> Lives:
    return Lives()


@pytest.fixture
async def process(virtual_site: VirtualSite, lives: Lives) -> AsyncIterator[Process]:
    """Yield a process with a controller for the Garden and one for the virtual cluster."""

    def with_client(client: Client) -> Unit:
        lives.clients.append(client)
        return lives.unit("virtual")

    def access() -> Unit:
        return found.access()

    found = Process(
        virtual_site,
        (ForGarden("runtime", lambda: lives.unit("runtime")), ForGarden("access", access)),
        (ForVirtualCluster("virtual", with_client),),
    )
    async with found.running():
        yield found
    await delete_garden(virtual_site.runtime)


async def create_garden(client: Client) -> None:
    await client.create(MINIMAL)


async def delete_garden(client: Client) -> None:
    if await client.find(GARDEN, MINE):
        await client.delete(GARDEN, MINE)
    await until_gone(client, GARDEN, MINE)


async def connect(site: VirtualSite) -> None:
    await site.publish(site.kubeconfig((await site.issue()).token))


async def test_nothing_runs_without_a_garden(
    virtual_site: VirtualSite, process: Process, lives: Lives
) -> None:
    await connect(virtual_site)
    async with asyncio.timeout(PATIENCE):
        await process.copies.of(GARDEN).synced()
        await process.copies.of(SECRET, "garden").synced()
    assert lives.events == []
    assert process.registrar.running == []
    assert process.registrar.is_idle


async def test_controllers_start_once_their_dependencies_exist(
    virtual_site: VirtualSite, process: Process, lives: Lives
) -> None:
    await create_garden(virtual_site.runtime)
    await lives.reached("runtime starts")
    await virtual_site.publish(virtual_site.kubeconfig(""))
    await connect(virtual_site)
    await lives.reached("virtual starts")
    assert {part.name for part in process.registrar.running} == {
        "runtime",
        "virtual",
        "virtual-cluster-access",
    }


async def test_a_process_that_starts_needs_no_reconciliation_of_an_existing_garden(
    virtual_site: VirtualSite, lives: Lives
) -> None:
    """Even if a Garden cannot be reconciled, the controllers of its virtual cluster run."""
    await create_garden(virtual_site.runtime)
    await connect(virtual_site)

    def access() -> Unit:
        return found.access()

    found = Process(
        virtual_site,
        (ForGarden("access", access),),
        (ForVirtualCluster("virtual", lambda _: lives.unit("virtual")),),
    )
    async with found.running():
        await lives.reached("virtual starts")
    await lives.reached("virtual stops")
    await delete_garden(virtual_site.runtime)


async def test_controllers_stop_with_their_garden_and_start_with_the_next_one(
    virtual_site: VirtualSite, process: Process, lives: Lives
) -> None:
    before = subscribers(process.copies)
    for _ in range(2):
        await create_garden(virtual_site.runtime)
        await connect(virtual_site)
        await lives.reached("runtime starts", "virtual starts")
        client = lives.clients[-1]
        tasks = len(asyncio.all_tasks())
        await delete_garden(virtual_site.runtime)
        await lives.reached("runtime stops", "virtual stops")
        async with asyncio.timeout(PATIENCE):
            await process.virtual.replaced(client)
        assert process.registrar.running == []
        assert len(asyncio.all_tasks()) < tasks
        assert subscribers(process.copies) == before
        await virtual_site.withdraw()
    assert lives.clients[0] is not lives.clients[1]


async def test_disconnecting_the_virtual_cluster_stops_its_controllers(
    virtual_site: VirtualSite, process: Process, lives: Lives
) -> None:
    """The deletion of a Garden disconnects it before it deletes the API server."""
    await create_garden(virtual_site.runtime)
    await connect(virtual_site)
    await lives.reached("runtime starts", "virtual starts")
    await virtual_site.withdraw()
    await process.virtual.close()
    await lives.reached("virtual stops")
    await connect(virtual_site)
    await lives.reached("virtual starts")


async def test_a_renewed_token_does_not_restart_controllers(
    virtual_site: VirtualSite, process: Process, lives: Lives
) -> None:
    await create_garden(virtual_site.runtime)
    old = await virtual_site.issue()
    await virtual_site.publish(virtual_site.kubeconfig(old.token))
    await lives.reached("runtime starts", "virtual starts")
    await connect(virtual_site)
    await virtual_site.revoke(old)
    # The change of servers is noticed after the renewal, and restarts the controller once.
    config = virtual_site.kubeconfig((await virtual_site.issue()).token)
    server: str = config["clusters"][0]["cluster"]["server"]
    config["clusters"][0]["cluster"]["server"] = server.replace("127.0.0.1", "localhost")
    await virtual_site.publish(config)
    await lives.reached("virtual stops", "virtual starts")
    assert len(lives.clients) == 2


async def test_a_controller_that_has_ended_is_not_restarted(
    virtual_site: VirtualSite, lives: Lives
) -> None:
    def short(_: Client) -> Unit:
        lives.note("short starts")
        return Unit("short")

    def access() -> Unit:
        return found.access()

    found = Process(
        virtual_site, (ForGarden("access", access),), (ForVirtualCluster("short", short),)
    )
    await create_garden(virtual_site.runtime)
    async with found.running():
        await connect(virtual_site)
        await lives.reached("short starts")
        client = await found.virtual.connected()
        for _ in range(10):
            await client.get_raw("/healthz")
        assert lives.events == []
    await delete_garden(virtual_site.runtime)


async def test_only_a_controller_that_cannot_be_added_is_retried(
    virtual_site: VirtualSite, lives: Lives
) -> None:
    attempts: list[str] = []

    def fragile() -> Unit:
        attempts.append("fragile")
        View(found.copies.of(EXTENSION), lambda obj: obj)  # a subscription that has to be cancelled
        if len(attempts) == 1:
            raise ValueError("not yet")
        return lives.unit("fragile")

    found = Process(
        virtual_site,
        (ForGarden("fragile", fragile), ForGarden("runtime", lambda: lives.unit("runtime"))),
        (),
    )
    before = subscribers(found.copies)
    async with found.running():
        await create_garden(virtual_site.runtime)
        await lives.reached("runtime starts", "fragile starts")
        assert len(attempts) == 2
        assert sorted(part.name for part in found.registrar.running) == ["fragile", "runtime"]
        assert subscribers(found.copies) == before + 1
    await delete_garden(virtual_site.runtime)


async def test_watches_of_the_virtual_cluster_do_not_affect_the_health_of_the_process(
    virtual_site: VirtualSite, lives: Lives
) -> None:
    def away(client: Client) -> Unit:
        lives.note("away starts")
        copies = Copies(client)  # an API server that does not serve most of these kinds
        return Unit("away", beside=[copies.of(GARDEN)])

    def access() -> Unit:
        return found.access()

    found = Process(
        virtual_site, (ForGarden("access", access),), (ForVirtualCluster("away", away),)
    )
    await create_garden(virtual_site.runtime)
    async with found.running():
        await connect(virtual_site)
        await lives.reached("away starts")
        assert found.registrar.unsynced == []
    await delete_garden(virtual_site.runtime)


# The operator's own controllers


async def test_network_policies_follow_changes_of_the_garden(virtual_site: VirtualSite) -> None:
    """A change of the Garden needs no restart, and IPv6 ranges are included."""
    client = virtual_site.runtime
    config = configuration_from({"apiVersion": API_VERSION, "kind": KIND}).config
    copies = Copies(client)
    virtual = VirtualCluster(copies.client)
    server = virtual_site.config.server
    registrar = Registrar(copies, virtual, for_garden(config, copies, virtual, server, Metrics()))
    blocked = Key("garden", "allow-to-blocked-cidrs")
    async with virtual, running(copies.unit, Unit("registrar", tasks=[registrar.run])):
        await create_garden(client)
        await until(client, NETWORK_POLICY, Key("garden", "deny-all"), lambda _: True)
        ranges = ["192.0.2.0/24", "2001:db8::/32"]
        await client.patch(GARDEN, MINE, networking(ranges))
        await until(client, NETWORK_POLICY, blocked, lambda obj: blocks(obj) == ranges)
        await client.patch(GARDEN, MINE, networking(ranges[:1]))
        await until(client, NETWORK_POLICY, blocked, lambda obj: blocks(obj) == ranges[:1])
        await delete_garden(client)
    for policy in await client.list(NETWORK_POLICY, "garden"):
        await client.delete(NETWORK_POLICY, Key.of(policy))


def networking(blocked: list[str]) -> JsonObject:
    return {"spec": {"runtimeCluster": {"networking": {"blockCIDRs": blocked}}}}


def blocks(policy: JsonObject) -> list[str]:
    rules = policy["spec"].get("egress") or [{}]
    return [peer["ipBlock"]["cidr"] for peer in rules[0].get("to", [])]


def subscribers(copies: Copies) -> int:
    return sum(len(cache.subscribers) for cache in caches_of(copies))


def caches_of(copies: Copies) -> list[Any]:
    return list(copies.unit.caches)


async def test_a_namespace_deleted_in_between_is_not_an_error(virtual_site: VirtualSite) -> None:
    """Nothing can be created in a namespace under deletion, which also deletes its policies."""
    client = virtual_site.runtime
    name = "going"
    labels = {"gardener.cloud/role": "extension"}
    metadata: JsonObject = {"name": name, "labels": labels}
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    await client.delete(NAMESPACE, Key("", name))
    copies = Copies(client)
    policies = NamespacePolicies(copies, (), virtual_site.config.server)
    resolved = asyncio.Event()
    policies.resolved.subscribe(lambda _: resolved.set())
    await create_garden(client)
    caches = (policies.policies, policies.endpoints)
    async with running(copies.unit, Unit("policies", caches=caches, tasks=[policies.resolve])):
        with pytest.MonkeyPatch.context() as patch:
            # The controller saw this before the deletion.
            seen = SeenNamespace(tuple(labels.items()), is_active=True)
            patch.setattr(policies.namespaces, "get", lambda _: seen)
            async with asyncio.timeout(PATIENCE):
                await copies.of(GARDEN).synced()
                await resolved.wait()
            assert await policies.reconcile(name) == DONE
            assert await policies.reconcile("gone-before") == DONE
    assert await client.list(NETWORK_POLICY, name) == []
    going = await client.get(NAMESPACE, Key("", name))
    await client.update({**going, "spec": {"finalizers": []}}, subresource="finalize")
    await delete_garden(client)
