"""The manifests of charts/resource-manager, and that their source Role suffices: spec 10 §14."""

import asyncio
from collections import Counter
from collections.abc import AsyncIterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, LEASE, SECRET
from pergola.api.objects import Key, annotations_of, finalizers_of, namespace_of
from pergola.api.resource_manager_config import configuration_from
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse, parse_documents
from pergola.resource_manager.configuration import options
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.runtime.process.leader_election import LeaderElection
from pergola.sandbox import Sandbox
from pergola.testing.service_accounts import service_account_config, until_allowed
from pergola.testing.world import World, condition, has

NAME = "gardener-resource-manager"
CHART = Path(__file__).parents[3] / "charts" / "resource-manager"
MANY = 24


def manifests(file: str, namespace: str) -> list[dict[str, Any]]:
    """Return the objects of a file, adapted to another namespace."""
    text = (CHART / file).read_text().replace("namespace: garden", f"namespace: {namespace}")
    return [obj for d in parse_documents(text) if isinstance(obj := d.value, dict)]


class Restricted(NamedTuple):
    """A client with the source Role, and a count of its HTTP statuses."""

    client: Client
    answers: Counter[str]


@pytest.fixture
async def restricted(sandbox: Sandbox, world: World) -> AsyncIterator[Restricted]:
    """Yield a client with the permissions of rbac-source.yaml, in the world's namespace."""
    account = {"name": NAME, "namespace": world.namespace}
    await world.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    for obj in manifests("rbac-source.yaml", world.namespace):
        await world.client.create(obj)
    answers: Counter[str] = Counter()

    def observe(method: str, code: str, host: str, seconds: float) -> None:
        answers[code] += 1

    config = await service_account_config(load(sandbox.kubeconfig), world.namespace, NAME)
    async with Client.connect(config, observe=observe) as client:
        await until_allowed(client, SECRET, world.namespace)
        answers.clear()
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


# The Role is enough


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


async def test_with_the_source_role_alone_many_secrets_are_read_at_once(
    world: World, restricted: Restricted, led: asyncio.Task[None]
) -> None:
    names = [f"part-{number}" for number in range(MANY)]
    for name in names:
        await world.put_secret(name, world.config_map(name))
    await world.create_resource("demo", names)
    done = await world.healthy("demo")
    assert len(done["status"]["resources"]) == MANY
    assert restricted.answers["403"] == 0


async def test_with_the_source_role_alone_old_finalizers_are_taken_off_secrets(
    world: World, restricted: Restricted, led: asyncio.Task[None]
) -> None:
    metadata = {"name": "old", "namespace": world.namespace, "finalizers": [marks.FINALIZER]}
    await world.client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})
    await world.until_object(SECRET, world.key("old"), lambda o: not finalizers_of(o))
    assert restricted.answers["403"] == 0


async def test_with_the_source_role_alone_the_lease_is_taken_and_released(
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


async def test_with_the_source_role_alone_the_process_can_ask_how_the_server_is(
    restricted: Restricted,
) -> None:
    assert await restricted.client.get_raw("/healthz") == b"ok"


# The Role allows no more than that


async def test_the_source_role_gives_nothing_else(world: World, restricted: Restricted) -> None:
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


# The other manifests


@pytest.mark.parametrize(
    "file", sorted(str(path.relative_to(CHART)) for path in CHART.rglob("*.yaml"))
)
async def test_the_api_server_accepts_the_manifests(world: World, file: str) -> None:
    objects = manifests(file, world.namespace)
    assert objects
    for obj in objects:
        created = await world.client.create(obj, dry_run=True)
        assert namespace_of(created) in ("", world.namespace)


def test_no_object_is_in_the_chart_twice() -> None:
    files = [str(path.relative_to(CHART)) for path in CHART.rglob("*.yaml")]
    keys = Counter(
        (obj["kind"], Key.of(obj)) for file in files for obj in manifests(file, "garden")
    )
    assert [key for key, count in keys.items() if count > 1] == []


def test_the_deployed_configuration_is_valid_and_fits_role_and_ports() -> None:
    objects = {obj["kind"]: obj for obj in manifests("deployment.yaml", "garden")}
    value = parse(objects["ConfigMap"]["data"]["config.yaml"])
    config, warnings = configuration_from(value)
    assert warnings == []
    assert config.leader_election.resource_name == NAME
    assert config.leader_election.resource_namespace == "garden"
    assert options(config).garbage is not None
    (container,) = objects["Deployment"]["spec"]["template"]["spec"]["containers"]
    ports = {port["name"]: port["containerPort"] for port in container["ports"]}
    server = config.server
    served = {"metrics": server.metrics.port, "health": server.health_probes.port}
    assert ports == {"webhooks": server.webhooks.port, **served}
    offered = objects["Service"]["spec"]["ports"]
    assert {p["name"]: p["port"] for p in offered} == {"webhooks": 443, **served}
    assert {p["targetPort"] for p in offered} == set(ports)
    assert server.webhooks.self_signed.enabled
    assert Key(server.webhooks.self_signed.namespace, NAME) == Key.of(objects["Service"])


def test_the_policies_name_ports_of_the_deployment_and_select_its_pods() -> None:
    objects = {obj["kind"]: obj for obj in manifests("deployment.yaml", "garden")}
    template = objects["Deployment"]["spec"]["template"]
    (container,) = template["spec"]["containers"]
    names = {port["name"] for port in container["ports"]}
    policies = manifests("network-policies.yaml", "garden")
    for policy in policies:
        selected = policy["spec"]["podSelector"]["matchLabels"].items()
        assert selected <= template["metadata"]["labels"].items()
    ingress = [rule for policy in policies for rule in policy["spec"].get("ingress", [])]
    assert {port["port"] for rule in ingress for port in rule["ports"]} < names
