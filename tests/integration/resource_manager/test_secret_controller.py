"""Secrets in use by ManagedResources are protected, and never blocked for long: spec 11 §6."""

import asyncio
from collections import Counter
from pathlib import Path
from typing import Any

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, NAMESPACE, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    deletion_timestamp_of,
    finalizers_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.resource_manager.controllers.secret import Secrets, Settings, secret_unit
from pergola.resource_manager.responsibility import Responsibility
from pergola.resource_manager.source import Source
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.namespaces import create_namespace
from pergola.testing.world import RecordingClient, World
from tests.support.service_accounts import service_account_config, until_allowed

OURS = marks.FINALIZER
SEED = f"{marks.FINALIZER}-seed"
FOREIGN = "example.com/foreign"
ROLE = Path(__file__).parents[3] / "charts" / "resource-manager" / "rbac" / "secret.yaml"


async def until_finalizers(world: World, name: str, *finalizers: str) -> None:
    """Wait until a Secret has exactly these finalizers."""
    await world.until_object(
        SECRET, world.key(name), lambda s: sorted(finalizers_of(s)) == sorted(finalizers)
    )


async def put_secret(world: World, name: str, *finalizers: str) -> None:
    """Create a Secret with finalizers."""
    metadata = {"name": name, "namespace": world.namespace, "finalizers": [*finalizers]}
    await world.client.create({"apiVersion": "v1", "kind": "Secret", "metadata": metadata})


async def release(world: World, name: str) -> None:
    """Remove all finalizers of a Secret, so that the test's namespace can be deleted."""
    await world.client.patch(SECRET, world.key(name), {"metadata": {"finalizers": None}})


def secret_writes(recorder: RecordingClient) -> list[str]:
    """Return the writes of Secrets since the last call."""
    return [write for write in recorder.taken() if " Secret " in write]


# Must hold


async def test_both_secrets_get_the_finalizer_and_a_changed_reference_moves_it(
    world: World,
) -> None:
    for name in ("a", "b", "c"):
        await put_secret(world, name, *([FOREIGN] if name == "a" else []))
    await world.start()
    await world.create_resource("demo", ["a", "b"])
    await until_finalizers(world, "a", FOREIGN, OURS)
    await until_finalizers(world, "b", OURS)
    await world.edit("demo", {"spec": {"secretRefs": [{"name": "b"}, {"name": "c"}]}})
    await until_finalizers(world, "a", FOREIGN)
    await until_finalizers(world, "c", OURS)
    await world.settled()
    changed = {f"patch Secret {world.key(name)}" for name in "abc"}
    assert {*secret_writes(world.recorder)} == changed
    await release(world, "a")


async def test_deleting_the_managed_resource_removes_the_finalizer(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting"))
    await world.healthy("demo")
    await until_finalizers(world, "demo", OURS)
    await world.delete("demo")
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))
    await until_finalizers(world, "demo")


async def test_a_change_to_a_foreign_class_removes_the_finalizer(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting"))
    await until_finalizers(world, "demo", OURS)
    await world.edit("demo", {"spec": {"class": "other"}})
    await until_finalizers(world, "demo")
    await world.until("demo", lambda r: not finalizers_of(r))


async def test_an_unreferenced_secret_is_never_touched(world: World) -> None:
    await world.start()
    await put_secret(world, "unnamed", FOREIGN)
    await world.client.patch(SECRET, world.key("unnamed"), {"stringData": {"a": "b"}})
    await world.create("demo", world.config_map("greeting"))
    await world.healthy("demo")
    await until_finalizers(world, "demo", OURS)
    await world.settled()
    assert {*secret_writes(world.recorder)} == {f"patch Secret {world.key('demo')}"}
    await until_finalizers(world, "unnamed", FOREIGN)
    await release(world, "unnamed")


async def test_a_start_removes_forgotten_finalizers(world: World) -> None:
    await put_secret(world, "forgotten", OURS, SEED)
    await world.start()
    await until_finalizers(world, "forgotten", SEED)
    await release(world, "forgotten")


async def test_instances_of_two_classes_manage_separate_finalizers(world: World) -> None:
    await put_secret(world, "shared")
    await world.start()
    await world.start(resource_class="seed")
    await world.create_resource("one", ["shared"])
    seed: dict[str, Any] = {"class": "seed"}
    await world.create_resource("two", ["shared"], **seed)
    await until_finalizers(world, "shared", OURS, SEED)
    await world.delete("one")
    await until_finalizers(world, "shared", SEED)
    await world.delete("two")
    await until_finalizers(world, "shared")


class Stopping(RecordingClient):
    """A client whose process dies right after a write, without reading the answer."""

    left = -1
    died: asyncio.Event

    async def _object(
        self,
        gvk: GroupVersionKind,
        method: str,
        path: str,
        *,
        query: dict[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
    ) -> JsonObject:
        if method == "GET":
            return await super()._object(gvk, method, path, query=query, accept=accept)
        if self.left == 0:
            await self._die()
        answer = await super()._object(
            gvk, method, path, query=query, body=body, content_type=content_type, accept=accept
        )
        self.left -= 1
        if self.left == 0:
            await self._die()
        return answer

    async def _die(self) -> None:
        self.died.set()
        await asyncio.Event().wait()


async def test_no_secret_blocks_its_namespace_wherever_the_resource_manager_stops(
    world: World, sandbox: Sandbox
) -> None:
    # In parallel, because the namespace controller takes its time.
    async with asyncio.TaskGroup() as group:
        for writes in range(8):
            group.create_task(check_interrupted_deletion(world.client, sandbox, writes))


async def check_interrupted_deletion(client: Client, sandbox: Sandbox, writes: int) -> None:
    """Delete a namespace, stop the resource manager after some writes, and start it again."""
    namespace = await create_namespace(client, f"stops after {writes}")
    async with Stopping.connect(load(sandbox.kubeconfig)) as stopping:
        stopping.died = asyncio.Event()
        world = World(client, stopping, namespace)
        try:
            await until_protected(world)
            stopping.left = writes
            await client.delete(NAMESPACE, Key("", namespace))
            await died_or_done(stopping, world)
        finally:
            await world.stop()
    await nothing_is_orphaned(world)

    async with RecordingClient.connect(load(sandbox.kubeconfig)) as world.recorder:
        await world.start()
        try:
            await world.until_gone(NAMESPACE, Key("", namespace))
        finally:
            await world.stop()


async def died_or_done(stopping: Stopping, world: World) -> None:
    """Wait until the resource manager has stopped or has nothing more to write.

    It has less to write if the namespace controller is first to delete the objects.
    """
    gone = world.until_gone(NAMESPACE, Key("", world.namespace))
    waits = [asyncio.create_task(wait) for wait in (stopping.died.wait(), gone)]
    try:
        done, _ = await asyncio.wait(waits, return_when=asyncio.FIRST_COMPLETED)
        await done.pop()
    finally:
        for wait in waits:
            wait.cancel()
        await asyncio.gather(*waits, return_exceptions=True)


async def until_protected(world: World) -> None:
    """Create two ManagedResources that share a Secret, and wait until everything is idle."""
    await world.start()
    for name in ("one", "two"):
        await world.put_secret(name, world.config_map(name))
    await world.create_resource("demo", ["one", "two"])
    await world.create_resource("other", ["two"])
    for name in ("one", "two"):
        await until_finalizers(world, name, OURS)
    for name in ("demo", "other"):
        await world.healthy(name)
    await world.settled()


async def nothing_is_orphaned(world: World) -> None:
    """Check that each Secret with our finalizer is referenced by a ManagedResource with it."""
    secrets = await world.client.list(SECRET, world.namespace)
    resources = await world.client.list(MANAGED_RESOURCE, world.namespace)
    held = {
        reference["name"]
        for resource in resources
        if OURS in finalizers_of(resource)
        for reference in resource["spec"]["secretRefs"]
    }
    assert {s["metadata"]["name"] for s in secrets if OURS in finalizers_of(s)} <= held


# Safeguards, and Beyond


async def test_a_deleted_secret_exists_as_long_as_it_is_needed(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting", text="hello"))
    await world.healthy("demo")
    await until_finalizers(world, "demo", OURS)
    await world.client.delete(SECRET, world.key("demo"))
    await world.client.delete(CONFIG_MAP, world.key("greeting"))
    await world.until_object(CONFIG_MAP, world.key("greeting"), lambda _: True)
    going = await world.client.get(SECRET, world.key("demo"))
    assert deletion_timestamp_of(going) is not None
    await world.delete("demo")
    await world.until_gone(SECRET, world.key("demo"))


async def test_a_secret_keeps_the_finalizer_while_another_managed_resource_names_it(
    world: World,
) -> None:
    await world.start()
    await world.put_secret("shared", world.config_map("greeting"))
    await world.create_resource("one", ["shared"])
    await world.create_resource("two", ["shared"], keepObjects=True)
    await until_finalizers(world, "shared", OURS)
    await world.healthy("one")
    await world.healthy("two")
    await world.settled()
    secret_writes(world.recorder)
    await world.delete("two")
    await world.until_gone(MANAGED_RESOURCE, world.key("two"))
    await world.settled()
    await until_finalizers(world, "shared", OURS)
    assert secret_writes(world.recorder) == []
    await world.delete("one")
    await until_finalizers(world, "shared")


async def test_a_managed_resource_under_deletion_adds_no_finalizer_to_a_secret(
    world: World,
) -> None:
    await world.start()
    blocked = world.config_map("blocked")
    blocked["metadata"]["finalizers"] = [FOREIGN]
    await world.create("demo", blocked)
    await world.healthy("demo")
    await until_finalizers(world, "demo", OURS)
    await world.delete("demo")
    await world.until("demo", lambda r: deletion_timestamp_of(r) is not None)
    await world.settled()
    await until_finalizers(world, "demo", OURS)  # the finalizer is kept until all objects are gone

    await release(world, "demo")
    await world.client.delete(SECRET, world.key("demo"))
    await put_secret(world, "demo")
    await world.settled()
    await until_finalizers(world, "demo")
    await world.client.patch(CONFIG_MAP, world.key("blocked"), {"metadata": {"finalizers": None}})
    await world.until_gone(MANAGED_RESOURCE, world.key("demo"))


async def test_an_ignored_managed_resource_does_not_protect_its_secrets(
    world: World,
) -> None:
    await world.start()
    await put_secret(world, "demo")
    await world.create_resource("demo", ["demo"], {"annotations": {marks.IGNORE: "true"}})
    await world.until("demo", lambda r: bool(r.get("status")))
    await world.settled()
    assert secret_writes(world.recorder) == []
    await world.edit("demo", {"metadata": {"annotations": {marks.IGNORE: None}}})
    await until_finalizers(world, "demo", OURS)


async def test_a_secret_created_after_its_managed_resource_is_protected(
    world: World,
) -> None:
    await world.start()
    await world.create_resource("demo", ["late"])
    await world.until("demo", lambda r: OURS in finalizers_of(r))
    await put_secret(world, "late")
    await until_finalizers(world, "late", OURS)


async def test_a_manually_removed_finalizer_is_restored(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting"))
    await until_finalizers(world, "demo", OURS)
    await release(world, "demo")
    await until_finalizers(world, "demo", OURS)


async def test_remove_only_removes_all_finalizers_and_adds_none(world: World) -> None:
    await put_secret(world, "named", OURS, FOREIGN)
    await world.start(secret_mode="RemoveOnly")
    await world.create_resource("demo", ["named"])
    await until_finalizers(world, "named", FOREIGN)
    await world.put_secret("new", world.config_map("greeting"))
    await world.create_resource("further", ["new"])
    await world.healthy("further")
    await world.settled()
    assert {*secret_writes(world.recorder)} == {f"patch Secret {world.key('named')}"}
    await release(world, "named")


async def test_a_restart_writes_nothing(world: World) -> None:
    await world.start()
    await world.create("demo", world.config_map("greeting"))
    await world.healthy("demo")
    await until_finalizers(world, "demo", OURS)
    await world.settled()
    await world.stop()
    world.recorder.taken()
    await world.start()
    await world.settled()
    assert world.recorder.taken() == []


async def test_adding_the_finalizer_does_not_cause_another_read_of_the_secret(
    world: World, sandbox: Sandbox
) -> None:
    requests: Counter[str] = Counter()

    class Counting(RecordingClient):
        async def get(
            self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
        ) -> JsonObject:
            if gvk == SECRET:
                requests[key.name] += 1
            return await super().get(gvk, key, metadata_only=metadata_only)

    async with Counting.connect(load(sandbox.kubeconfig)) as world.recorder:
        manager = await world.start(sync_period=0.5)
        await world.create("demo", world.config_map("greeting"))
        await world.healthy("demo")
        await until_finalizers(world, "demo", OURS)
        await world.settled()
        before = requests["demo"]
        [unit] = [part for part in manager.running if part.name == "managedresource"]
        assert isinstance(unit, Unit)
        [controller] = unit.controllers
        controller.queue.add(world.key("demo"))  # type: ignore[attr-defined]
        await world.settled()
        assert requests["demo"] == before
        await world.stop()


# Permissions


async def test_the_role_is_enough_for_the_controller(world: World, sandbox: Sandbox) -> None:
    for document in parse_documents(ROLE.read_text()):
        assert isinstance(document.value, dict)
        await bind(world, document.value)
    answers: Counter[str] = Counter()

    def observe(method: str, code: str, host: str, seconds: float) -> None:
        answers[code] += 1

    await world.put_secret("demo", world.config_map("greeting"))
    await world.create_resource("demo", ["demo"], {"finalizers": [OURS]})
    config = await service_account_config(load(sandbox.kubeconfig), world.namespace)
    async with Client.connect(config, observe=observe) as client:
        await until_allowed(client, SECRET, world.namespace)
        await until_allowed(client, MANAGED_RESOURCE, world.namespace)
        answers.clear()
        working = asyncio.create_task(run_alone(client, world.namespace))
        await until_finalizers(world, "demo", OURS)
        await world.edit("demo", {"spec": {"secretRefs": []}})
        await until_finalizers(world, "demo")
        working.cancel()
        await asyncio.gather(working, return_exceptions=True)
    assert answers["403"] == 0
    await world.edit("demo", {"metadata": {"finalizers": None}})


async def bind(world: World, role: JsonObject) -> None:
    """Grant the rules of a ClusterRole to the default ServiceAccount of the world's namespace."""
    metadata = {"name": "restricted", "namespace": world.namespace}
    group = "rbac.authorization.k8s.io"
    await world.client.create({**role, "kind": "Role", "metadata": metadata})
    await world.client.create(
        {
            "apiVersion": f"{group}/v1",
            "kind": "RoleBinding",
            "metadata": metadata,
            "roleRef": {"apiGroup": group, "kind": "Role", "name": "restricted"},
            "subjects": [
                {"kind": "ServiceAccount", "name": "default", "namespace": world.namespace}
            ],
        }
    )


async def run_alone(client: Client, namespace: str) -> None:
    """Run only this controller."""
    source = Source(client, Responsibility("resources"), namespaces=[namespace])
    async with asyncio.TaskGroup() as group:
        group.create_task(source.unit.run())
        await source.synced()
        await secret_unit(source, Secrets(source), Settings(workers=1), Metrics()).run()
