"""Several instances, clusters and identities: spec 10 §14 and B8."""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager

import pytest

from pergola.api import marks
from pergola.api.kinds import CLUSTER_ROLE_BINDING, CONFIG_MAP, DEPLOYMENT, SERVICE_ACCOUNT
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    finalizers_of,
    labels_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.sandbox import Sandbox
from pergola.testing.namespaces import clear_namespace, create_namespace
from pergola.testing.world import (
    RecordingClient,
    World,
    condition,
    config_map,
    has,
    instance_options,
    message,
)
from tests.support.service_accounts import (
    cluster_admin,
    service_account_config,
    until_allowed,
    until_rejected,
)

_SYNC_SECONDS = 2.0


@asynccontextmanager
async def running(
    world: World, source: Client, target: Client, options: Options
) -> AsyncGenerator[ResourceManager]:
    """Run an instance until the block ends."""
    manager = world.manager = ResourceManager(source, target, options)
    task = asyncio.create_task(manager.run())
    try:
        await manager.source.synced()
        yield manager
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


@pytest.fixture
async def elsewhere(cluster_client: Client) -> AsyncIterator[str]:
    """Yield another namespace of the same cluster."""
    name = await create_namespace(cluster_client, "elsewhere")
    yield name
    await clear_namespace(cluster_client, name)


# A Seed's instance and a Shoot's instance


async def test_exactly_one_of_two_instances_handles_each_resource(
    world: World, sandbox: Sandbox, elsewhere: str
) -> None:
    shoot, garden = world, World(world.client, world.recorder, elsewhere)
    both = (shoot.namespace, garden.namespace)
    config = load(sandbox.kubeconfig)
    async with (
        RecordingClient.connect(config) as seeds,
        RecordingClient.connect(config) as shoots,
        running(garden, seeds, seeds, Options(resource_class="seed", source_namespaces=both)),
        running(shoot, shoots, shoots, Options(source_namespaces=(shoot.namespace,))),
    ):
        nobodys = await garden.create("default", garden.config_map("default"))
        await garden.create("seed", garden.config_map("seed"), **{"class": "seed"})
        await shoot.create("default", shoot.config_map("default"))
        await shoot.create("seed", shoot.config_map("seed"), **{"class": "seed"})
        of_seed = [await garden.healthy("seed"), await shoot.healthy("seed")]
        of_shoot = await shoot.healthy("default")
        await garden.settled()
        await shoot.settled()

        assert await garden.resource("default") == nobodys
        assert not await garden.exists(CONFIG_MAP, "default")
        assert [finalizers_of(r) for r in of_seed] == [[f"{marks.FINALIZER}-seed"]] * 2
        assert finalizers_of(of_shoot) == [marks.FINALIZER]
        assert written(seeds) == {garden.key("seed"), shoot.key("seed")}
        assert written(shoots) == {shoot.key("default")}

        await shoot.delete("default")
        await shoot.delete("seed")
        await shoot.until_gone(MANAGED_RESOURCE, shoot.key("default"))
        await shoot.until_gone(MANAGED_RESOURCE, shoot.key("seed"))
        assert written(seeds) == {shoot.key("seed")}
        assert written(shoots) == {shoot.key("default")}
        assert await garden.exists(CONFIG_MAP, "seed")


def written(client: RecordingClient) -> set[Key]:
    """Return the keys that an instance wrote since the last call."""
    keys = (write.rpartition(" ")[2].partition("/") for write in client.taken())
    return {Key(namespace, name) for namespace, _, name in keys}


# A target that rejects our token


@pytest.fixture
async def target_account(sandbox: Sandbox, world: World) -> AsyncIterator[ClusterConfig]:
    """Yield a config of the sandbox for a ServiceAccount with all permissions."""
    key = world.key("target")
    account = {"name": key.name, "namespace": key.namespace}
    binding = Key("", world.namespace)
    await world.client.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": account})
    await world.client.create(cluster_admin(binding.name, key))
    config = await service_account_config(load(sandbox.kubeconfig), key.namespace, key.name)
    async with Client.connect(config) as client:
        await until_allowed(client, CONFIG_MAP)
    yield config
    await world.client.delete(CLUSTER_ROLE_BINDING, binding)


async def test_a_revoked_target_token_is_reported_and_nothing_is_lost(
    world: World, target_account: ClusterConfig
) -> None:
    # As for a Shoot: unchanged objects are sent once per sync period, too.
    options = instance_options(
        source_namespaces=(world.namespace,), always_update=True, sync_period=_SYNC_SECONDS
    )
    greeting = world.key("greeting")
    async with (
        Client.connect(target_account) as target,
        running(world, world.recorder, target, options),
    ):
        await world.create("demo", world.config_map("greeting", text="hello"))
        before = await world.healthy("demo")
        await world.client.delete(SERVICE_ACCOUNT, world.key("target"))
        await until_rejected(target_account)

        failed = await world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
        assert ": Unauthorized" in message(failed, "ResourcesApplied")
        assert finalizers_of(failed) == finalizers_of(before)
        assert failed["status"]["resources"] == before["status"]["resources"]
        live = await world.client.get(CONFIG_MAP, greeting)
        assert live["data"] == {"text": "hello"}

    async with running(world, world.recorder, world.recorder, options):
        await world.until("demo", has("ResourcesApplied", "True", "ApplySucceeded"))
        assert await world.client.get(CONFIG_MAP, greeting) == live


async def test_a_change_with_a_revoked_target_token_is_applied_with_a_new_token(
    world: World, target_account: ClusterConfig
) -> None:
    options = instance_options(source_namespaces=(world.namespace,), sync_period=3600.0)
    async with (
        Client.connect(target_account) as target,
        running(world, world.recorder, target, options),
    ):
        await world.create("demo", world.config_map("greeting", text="hello"))
        await world.healthy("demo")
        await world.client.delete(SERVICE_ACCOUNT, world.key("target"))
        await until_rejected(target_account)

        both = world.config_map("greeting", text="changed"), world.config_map("other")
        await world.put_secret("demo", *both)
        failed = await world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
        assert ": Unauthorized" in message(failed, "ResourcesApplied")
        named = {reference["name"] for reference in failed["status"]["resources"]}
        assert named == {"greeting", "other"}
        live = await world.client.get(CONFIG_MAP, world.key("greeting"))
        assert live["data"] == {"text": "hello"}

    async with running(world, world.recorder, world.recorder, options):
        await world.healthy("demo")
        assert await world.exists(CONFIG_MAP, "other")
        live = await world.client.get(CONFIG_MAP, world.key("greeting"))
        assert live["data"] == {"text": "changed"}


# Two clusters


async def test_source_and_target_can_be_different_clusters(
    world: World, second_client: Client
) -> None:
    name = world.namespace  # no other test has objects of this name in the second cluster
    there = World(second_client, world.recorder, "default")
    key = there.key(name)
    namesake = await world.client.create(config_map(name, "default", text="source"))
    options = instance_options(source_namespaces=(world.namespace,))
    async with running(world, world.recorder, second_client, options):
        await world.create("demo", config_map(name, "default", text="hello"))
        await world.healthy("demo")
        live = await second_client.get(CONFIG_MAP, key)
        assert live["data"] == {"text": "hello"}
        assert annotations_of(live)[marks.ORIGIN] == f"{world.namespace}/demo"

        await second_client.patch(CONFIG_MAP, key, {"data": {"text": "edited"}})
        await there.until_object(CONFIG_MAP, key, lambda o: o["data"] == {"text": "hello"})
        await second_client.delete(CONFIG_MAP, key)
        await there.until_object(CONFIG_MAP, key, lambda o: o["metadata"]["uid"] != uid(live))

        await world.delete("demo")
        await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
        assert not await there.exists(CONFIG_MAP, name)
    assert await world.client.get(CONFIG_MAP, key) == namesake
    await world.client.delete(CONFIG_MAP, key)


def uid(obj: JsonObject) -> str:
    """Return the uid, which tells objects with the same name apart."""
    return str(obj["metadata"]["uid"])


# A target restricted to namespaces


def deployment(namespace: str) -> JsonObject:
    """Return a Deployment whose pods the sandbox runs."""
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "web", "namespace": namespace},
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "registry.example/c:1"}]},
            },
        },
    }


async def test_objects_outside_the_target_namespaces_are_managed_too(
    world: World, elsewhere: str
) -> None:
    outside = World(world.client, world.recorder, elsewhere)
    await world.start(target_namespaces=(world.namespace,))
    await world.create(
        "demo",
        world.config_map("inside"),
        outside.config_map("outside", text="hello"),
        deployment(elsewhere),
    )
    done = await world.until("demo", has("ResourcesHealthy", "True", "ResourcesHealthy"))
    assert condition(done, "ResourcesApplied") == ("True", "ApplySucceeded")
    assert len(done["status"]["resources"]) == 3
    live = await world.client.get(CONFIG_MAP, outside.key("outside"))
    assert labels_of(live)[marks.MANAGED_BY] == "gardener"
    assert await outside.exists(DEPLOYMENT, "web")

    changed = outside.config_map("outside", text="changed")
    await world.put_secret("demo", world.config_map("inside"), changed)
    await world.until_object(
        CONFIG_MAP, outside.key("outside"), lambda o: o["data"] == {"text": "changed"}
    )
    await world.until_gone(DEPLOYMENT, outside.key("web"))
    await world.healthy("demo")

    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    assert not await outside.exists(CONFIG_MAP, "outside")
    assert not await world.exists(CONFIG_MAP, "inside")


async def test_an_edit_outside_the_target_namespaces_is_reverted_in_the_next_run(
    world: World, elsewhere: str
) -> None:
    outside = World(world.client, world.recorder, elsewhere)
    key = outside.key("outside")
    await world.start(target_namespaces=(world.namespace,))
    await world.create("demo", outside.config_map("outside", text="hello"))
    await world.healthy("demo")
    await world.client.patch(CONFIG_MAP, key, {"data": {"text": "edited"}})
    await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
    await world.until_object(CONFIG_MAP, key, lambda o: o["data"] == {"text": "hello"})


async def test_failures_outside_the_target_namespaces_make_the_resource_unhealthy(
    world: World, elsewhere: str
) -> None:
    broken = deployment(elsewhere)
    broken["spec"]["template"]["spec"]["schedulerName"] = "nobody"
    await world.start(target_namespaces=(world.namespace,))
    await world.create("demo", broken)
    await world.until("demo", has("ResourcesHealthy", "False", "DeploymentUnhealthy"))


async def test_a_requested_reconciliation_calls_the_server_and_notices_a_revoked_token(
    world: World, target_account: ClusterConfig
) -> None:
    options = instance_options(source_namespaces=(world.namespace,), sync_period=3600.0)
    async with (
        Client.connect(target_account) as target,
        running(world, world.recorder, target, options),
    ):
        await world.create("demo", world.config_map("greeting", text="hello"))
        await world.healthy("demo")
        await world.client.delete(SERVICE_ACCOUNT, world.key("target"))
        await until_rejected(target_account)
        await world.edit("demo", {"metadata": {"annotations": {marks.OPERATION: "reconcile"}}})
        failed = await world.until("demo", has("ResourcesApplied", "False", "ApplyFailed"))
        assert ": Unauthorized" in message(failed, "ResourcesApplied")


async def test_workloads_outside_the_target_namespaces_roll_out_and_keep_their_scale(
    world: World,
) -> None:
    def web(**spec: object) -> JsonObject:
        obj = deployment(world.namespace)
        return {**obj, "spec": {**obj["spec"], "replicas": 1, **spec}}

    autoscaler = {
        "apiVersion": "autoscaling/v2",
        "kind": "HorizontalPodAutoscaler",
        "metadata": {"name": "web", "namespace": world.namespace},
        "spec": {
            "scaleTargetRef": {"apiVersion": "apps/v1", "kind": "Deployment", "name": "web"},
            "minReplicas": 1,
            "maxReplicas": 5,
        },
    }
    kind = DEPLOYMENT
    options = instance_options(
        source_namespaces=(world.namespace,),
        target_namespaces=("kube-system",),
        health_sync_period=0.5,
    )
    async with running(world, world.recorder, world.recorder, options):
        await world.create("demo", web(), autoscaler)
        await world.healthy("demo")
        await world.client.patch(kind, world.key("web"), {"spec": {"replicas": 3}})
        await world.put_secret("demo", web(minReadySeconds=1), autoscaler)
        live = await world.until_object(
            kind, world.key("web"), lambda o: o["spec"].get("minReadySeconds") == 1
        )
        assert live["spec"]["replicas"] == 3
