"""The garbage collector on a real API server: spec 10 §10 and B11."""

from collections.abc import AsyncGenerator
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.bundle.references import Reference, reference_key
from pergola.kube.client import Client, ObjectList
from pergola.kube.errors import ApiError, KubeError
from pergola.resource_manager.controllers.garbage_collector import GarbageCollector
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.controller import Again
from pergola.testing.world import World

GARBAGE = {marks.GARBAGE_COLLECTABLE: "true"}


def collector(world: World, client: Client | None = None, minutes: int = 11) -> GarbageCollector:
    """Return a collector for the world's namespace, some minutes in the future."""
    return GarbageCollector(
        client or world.client,
        FakeClock(datetime.now(UTC) + timedelta(minutes=minutes)),
        sync_period=3600.0,
        namespaces=[world.namespace],
    )


async def put_garbage(world: World, name: str, kind: str = "ConfigMap") -> None:
    """Create a labelled object."""
    await world.client.create(
        {**world.config_map(name, labels=GARBAGE), "kind": kind, "immutable": True}
    )


def user(world: World, kind: str, annotations: JsonObject) -> JsonObject:
    """Return an object of a kind, with annotations."""
    template: JsonObject = {
        "metadata": {"labels": {"app": "a"}},
        "spec": {
            "restartPolicy": "Never" if kind in ("Job", "CronJob") else "Always",
            "containers": [{"name": "c", "image": "registry.example/c:1"}],
        },
    }
    workload = {"selector": {"matchLabels": {"app": "a"}}, "template": template}
    specs: dict[str, tuple[str, JsonObject]] = {
        "Deployment": ("apps/v1", {**workload, "replicas": 0}),
        "StatefulSet": ("apps/v1", {**workload, "replicas": 0, "serviceName": "a"}),
        "DaemonSet": ("apps/v1", workload),
        "Job": ("batch/v1", {"template": template, "suspend": True}),
        "CronJob": (
            "batch/v1",
            {"schedule": "0 0 1 1 *", "jobTemplate": {"spec": {"template": template}}},
        ),
        "Pod": ("v1", {**template["spec"], "schedulerName": "nobody"}),
        "ManagedResource": ("resources.gardener.cloud/v1alpha1", {"secretRefs": []}),
    }
    version, spec = specs[kind]
    metadata = {"name": "user", "namespace": world.namespace, "annotations": annotations}
    return {"apiVersion": version, "kind": kind, "metadata": metadata, "spec": spec}


async def collect(collector: GarbageCollector) -> None:
    """Run twice, because an object must be unused in two runs."""
    first = await collector.reconcile("target")
    assert isinstance(first, Again)
    await collector.reconcile("target")


async def test_the_documented_example_works(world: World) -> None:
    await put_garbage(world, "test-1234")
    await put_garbage(world, "test-5678")
    reference = {"reference.resources.gardener.cloud/configmap-82a3537f": "test-5678"}
    await world.client.create(user(world, "Pod", reference))
    await collect(collector(world))
    assert not await world.exists(CONFIG_MAP, "test-1234")
    assert await world.exists(CONFIG_MAP, "test-5678")


async def test_young_and_unlabelled_objects_are_kept(world: World) -> None:
    await put_garbage(world, "young")
    await world.client.create(world.config_map("plain"))
    await collect(collector(world, minutes=9))
    assert await world.exists(CONFIG_MAP, "young")
    await collect(collector(world))
    assert not await world.exists(CONFIG_MAP, "young")
    assert await world.exists(CONFIG_MAP, "plain")


async def test_a_reference_protects_only_objects_of_its_kind(world: World) -> None:
    await put_garbage(world, "same")
    await put_garbage(world, "same", "Secret")
    reference = Reference("secret", "same")
    await world.client.create(user(world, "Pod", {reference_key(*reference): reference.name}))
    await collect(collector(world))
    assert not await world.exists(CONFIG_MAP, "same")
    assert await world.exists(SECRET, "same")


@pytest.mark.parametrize(
    "kind",
    ["Deployment", "StatefulSet", "DaemonSet", "Job", "CronJob", "Pod", "ManagedResource"],
)
async def test_each_kind_of_user_protects_its_references(world: World, kind: str) -> None:
    await put_garbage(world, "a")
    await put_garbage(world, "b", "Secret")
    references = (Reference("configmap", "a"), Reference("secret", "b"))
    await world.client.create(user(world, kind, {reference_key(*r): r.name for r in references}))
    await collect(collector(world))
    assert await world.exists(CONFIG_MAP, "a")
    assert await world.exists(SECRET, "b")


async def test_objects_that_a_pod_mounts_are_kept_without_any_annotation(world: World) -> None:
    await put_garbage(world, "mounted")
    pod = user(world, "Pod", {})
    pod["spec"]["volumes"] = [{"name": "v", "configMap": {"name": "mounted"}}]
    await world.client.create(pod)
    await collect(collector(world))
    assert await world.exists(CONFIG_MAP, "mounted")


async def test_an_object_must_be_unused_in_two_runs(world: World) -> None:
    await put_garbage(world, "a")
    looking = collector(world)
    assert [c.key.name for c in await looking.unused()] == ["a"]
    await looking.reconcile("target")
    assert await world.exists(CONFIG_MAP, "a")
    # A user appears between the two runs.
    reference = Reference("configmap", "a")
    await world.client.create(user(world, "Pod", {reference_key(*reference): "a"}))
    await looking.reconcile("target")
    assert await world.exists(CONFIG_MAP, "a")


async def test_a_failing_list_deletes_nothing(world: World) -> None:
    await put_garbage(world, "a")

    class Failing(Client):
        async def pages(
            self, gvk: GroupVersionKind, namespace: str | None = None, **options: Any
        ) -> AsyncGenerator[ObjectList]:
            if gvk.kind == "Pod":
                raise ApiError(500, {"message": "the server is not well"})
            async for page in super().pages(gvk, namespace, **options):
                yield page

    failing = Failing(world.client._transport)
    looking = collector(world, failing)
    for _ in range(2):
        with pytest.raises(KubeError, match="not well"):
            await looking.reconcile("target")
    assert await world.exists(CONFIG_MAP, "a")


async def test_an_object_that_changed_after_the_check_is_kept(world: World) -> None:
    await put_garbage(world, "a")
    looking = collector(world)
    await looking.reconcile("target")
    candidates = await looking.unused()
    await world.client.patch(
        CONFIG_MAP, Key(world.namespace, "a"), {"metadata": {"labels": {"x": "y"}}}
    )
    await looking._collect(candidates)
    assert await world.exists(CONFIG_MAP, "a")


async def test_the_secret_controller_removes_only_its_own_finalizer(world: World) -> None:
    finalizers = [marks.FINALIZER, "example.org/other"]
    await world.client.create(
        {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {
                "name": "old",
                "namespace": world.namespace,
                "finalizers": finalizers,
            },
        }
    )
    await world.start()
    live = await world.until_object(
        SECRET, world.key("old"), lambda o: len(o["metadata"]["finalizers"]) == 1
    )
    assert live["metadata"]["finalizers"] == ["example.org/other"]
    await world.client.patch(SECRET, world.key("old"), {"metadata": {"finalizers": None}})
