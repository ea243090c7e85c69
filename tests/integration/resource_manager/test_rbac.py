"""The roles of charts/resource-manager are sufficient for the source and minimal: spec 10 §14."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator, Callable
from pathlib import Path
from typing import Any, NamedTuple

import orjson
import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, LEASE, SECRET
from pergola.api.objects import Key, annotations_of, finalizers_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.runtime.process.leader_election import LeaderElection
from pergola.runtime.process.lease_watch import follow
from pergola.runtime.process.options import LeaseTimes
from pergola.sandbox import Sandbox
from pergola.sandbox.helm import render
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import World, condition, has
from tests.support.charts import with_image
from tests.support.service_accounts import service_account_config, until_granted

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

NAME = "gardener-resource-manager"
CHART = Path(__file__).parents[3] / "charts" / "resource-manager"
MANY = 24


TWO_CLUSTERS = "apiVersion: v1\nkind: Config\n"
ROLE = "pergola:managed-resources:source"


def source_permissions(namespace: str) -> list[dict[str, Any]]:
    """Return the permissions that the chart grants in a source cluster for only this namespace.

    The role is renamed, because it belongs to no namespace.
    """
    config = {
        "sourceClientConnection": {"namespaces": [namespace]},
        "targetClientConnection": {"kubeconfig": TWO_CLUSTERS},
    }
    objects = render(CHART, with_image({"config": config}), namespace=namespace)
    kinds = {"ServiceAccount", "ClusterRole", "Role", "RoleBinding"}
    found = [obj for obj in objects if obj["kind"] in kinds]
    unique: list[dict[str, Any]] = orjson.loads(
        orjson.dumps(found).decode().replace(ROLE, f"{ROLE}:{namespace}")
    )
    return unique


def roles(file: str) -> list[dict[str, Any]]:
    """Return the objects of a file."""
    text = (CHART / "rbac" / file).read_text()
    return [obj for d in parse_documents(text) if isinstance(obj := d.value, dict)]


class Restricted(NamedTuple):
    """A client with the permissions for a source, and counts of the HTTP statuses it gets."""

    client: Client
    answers: Counter[str]


@pytest.fixture
async def restricted(sandbox: Sandbox, world: World) -> AsyncIterator[Restricted]:
    """Yield a client with the chart's permissions for a source, in the world's namespace."""
    for obj in await asyncio.to_thread(source_permissions, world.namespace):
        await world.client.create(obj)
    answers: Counter[str] = Counter()

    def observe(method: str, code: str, host: str, seconds: float) -> None:
        answers[code] += 1

    config = await service_account_config(load(sandbox.kubeconfig), world.namespace, NAME)
    async with Client.connect(config, observe=observe) as client:
        await until_granted(world.client, world.key(NAME))
        yield Restricted(client, answers)


@pytest.fixture
async def led(world: World, restricted: Restricted) -> AsyncIterator[asyncio.Task[None]]:
    """Yield a leader in the world's namespace with the restricted source client."""
    chosen = Options(source_namespaces=(world.namespace,), cluster_id="c1")
    manager = world.manager = ResourceManager(restricted.client, world.recorder, chosen)
    election = LeaderElection(restricted.client, world.namespace, NAME, "me")
    watching = asyncio.create_task(manager.source.unit.run())
    leading = asyncio.create_task(election.run(lambda: manager.control("c1")))
    await manager.source.synced()
    try:
        yield leading
    finally:
        leading.cancel()
        watching.cancel()
        await asyncio.gather(leading, watching, return_exceptions=True)


# The Role is sufficient


async def test_with_the_source_role_alone_every_function_works(
    world: World, restricted: Restricted, led: asyncio.Task[None]
) -> None:
    greeting = world.key("greeting")

    await world.create("demo", world.config_map("greeting", text="hello"))
    ready = await world.healthy("demo")
    assert finalizers_of(ready) == [marks.FINALIZER]
    live = await world.client.get(CONFIG_MAP, greeting)
    assert annotations_of(live)[marks.ORIGIN] == f"c1:{world.namespace}/demo"

    await world.client.patch(CONFIG_MAP, greeting, {"data": {"text": "edited"}})
    await world.until_object(CONFIG_MAP, greeting, lambda o: o["data"] == {"text": "hello"})

    await world.put_secret("demo", world.config_map("greeting", text="changed"))
    await world.until_object(CONFIG_MAP, greeting, lambda o: o["data"] == {"text": "changed"})
    await world.healthy("demo")

    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until("demo", lambda r: marks.OPERATION not in annotations_of(r))

    await world.edit("demo", {"metadata": {"annotations": {marks.IGNORE: "true"}}})
    ignored = await world.until("demo", has("ResourcesApplied", "True", "ManagedResourceIgnored"))
    assert condition(ignored, "ResourcesHealthy") == ("True", "ManagedResourceIgnored")

    await world.delete("demo")
    await world.until_gone(CONFIG_MAP, greeting)
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert restricted.answers["403"] == 0


async def test_with_the_source_role_alone_many_secrets_can_be_read_at_once(
    world: World, restricted: Restricted, led: asyncio.Task[None]
) -> None:
    names = [f"part-{number}" for number in range(MANY)]
    for name in names:
        await world.put_secret(name, world.config_map(name))
    await world.create_resource("demo", names)
    done = await world.healthy("demo")
    assert len(done["status"]["resources"]) == MANY
    assert restricted.answers["403"] == 0


async def test_with_the_source_role_alone_old_finalizers_are_removed_from_secrets(
    world: World, restricted: Restricted, led: asyncio.Task[None]
) -> None:
    metadata = {"name": "old", "namespace": world.namespace, "finalizers": [marks.FINALIZER]}
    await world.client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    await world.until_object(SECRET, world.key("old"), lambda o: not finalizers_of(o))
    assert restricted.answers["403"] == 0


async def test_with_the_source_role_alone_the_lease_is_acquired_and_released(
    world: World, restricted: Restricted, led: asyncio.Task[None]
) -> None:
    held = await world.until_object(
        LEASE, world.key(NAME), lambda o: o["spec"]["holderIdentity"] == "me"
    )
    taken = held["metadata"]["resourceVersion"]
    await world.until_object(
        LEASE, world.key(NAME), lambda o: o["metadata"]["resourceVersion"] != taken
    )
    led.cancel()
    await asyncio.gather(led, return_exceptions=True)
    released = await world.client.get(LEASE, world.key(NAME))
    assert released["spec"]["holderIdentity"] == ""
    assert restricted.answers["403"] == 0


async def test_with_the_source_role_alone_a_waiting_replica_follows_the_lease(
    world: World, restricted: Restricted
) -> None:
    leader = LeaderElection(world.client, world.namespace, NAME, "leader")
    await leader.acquire()
    stands_by = asyncio.Event()

    async def following(freed: Callable[[], None]) -> None:
        stands_by.set()
        await follow(restricted.client, world.key(NAME))(freed)

    standby = LeaderElection(
        restricted.client,
        world.namespace,
        NAME,
        "standby",
        times=LeaseTimes(lease_duration=3600, renew_deadline=1800, retry_period=900),
        follow=following,
    )

    async with asyncio.timeout(PATIENCE):
        waiting = asyncio.create_task(standby.acquire())
        await stands_by.wait()
        await leader.release()
        await waiting

    assert restricted.answers["403"] == 0


async def test_with_the_source_role_alone_the_process_can_check_the_health_of_the_server(
    restricted: Restricted,
) -> None:
    assert await restricted.client.get_raw("/healthz") == b"ok"


# The Role is minimal


async def test_the_source_role_grants_nothing_else(world: World, restricted: Restricted) -> None:
    client, key = restricted.client, world.key("greeting")
    await world.put_secret("secret", world.config_map("greeting"))
    lease = {"apiVersion": LEASE.api_version, "kind": LEASE.kind}
    other = {**lease, "metadata": {"name": "other", "namespace": world.namespace}}
    created = await client.create(other)
    for attempt in (
        client.get(CONFIG_MAP, key),
        client.get(SECRET, Key("kube-system", "any")),
        client.list(SECRET),
        client.create(world.config_map("greeting")),
        client.delete(SECRET, world.key("secret")),
        client.update(created),
    ):
        with pytest.raises(Forbidden):
            await attempt


# The files with roles


@pytest.mark.parametrize("file", sorted(path.name for path in (CHART / "rbac").iterdir()))
async def test_the_api_server_accepts_the_roles(world: World, file: str) -> None:
    objects = roles(file)
    assert objects
    for obj in objects:
        await world.client.create(obj, dry_run=True)


def test_no_role_is_in_the_chart_twice() -> None:
    files = [path.name for path in (CHART / "rbac").iterdir()]
    names = Counter(obj["metadata"]["name"] for file in files for obj in roles(file))
    assert [name for name, count in names.items() if count > 1] == []
