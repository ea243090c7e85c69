"""A resource manager in the test's event loop, on a real API server, and its writes.

    async def test_a_manual_edit_is_reverted(world: World) -> None:
        await world.start()
        await world.create("demo", config_map("greeting", text="hello"))
        await world.applied("demo")

Each world has namespaces of its own, so that tests run side by side on one sandbox.
"""

import asyncio
import base64
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import replace
from typing import Any

import orjson

from pergola.api.kinds import EVENT, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    generation_of,
    maps_at,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.errors import Conflict
from pergola.resource_manager.controllers.garbage_collector import Settings as GarbageSettings
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.runtime.clock import Clock
from pergola.runtime.metrics import Metrics
from pergola.testing import waiting
from pergola.testing.waiting import PATIENCE


class RecordingClient(Client):
    """A client that records its writes: `verb Kind namespace/name`, `verb/subresource …`."""

    writes: list[str]

    def _note(self, verb: str, kind: str, key: Key, subresource: str = "") -> None:
        if not hasattr(self, "writes"):
            self.writes = []
        verb = f"{verb}/{subresource}" if subresource else verb
        self.writes.append(f"{verb} {kind} {key}")

    async def create(self, obj: JsonObject, *, dry_run: bool = False) -> JsonObject:
        """Record `create`."""
        self._note("create", obj.get("kind", ""), Key.of(obj))
        return await super().create(obj, dry_run=dry_run)

    async def update(self, obj: JsonObject, *, subresource: str = "") -> JsonObject:
        """Record `update`."""
        self._note("update", obj["kind"], Key.of(obj), subresource)
        return await super().update(obj, subresource=subresource)

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Record `patch`."""
        self._note("patch", gvk.kind, key, subresource)
        return await super().patch(gvk, key, body, subresource=subresource, manager=manager)

    async def apply(self, obj: JsonObject, *, manager: str, force: bool = False) -> JsonObject:
        """Record `apply`."""
        self._note("apply", obj["kind"], Key.of(obj))
        return await super().apply(obj, manager=manager, force=force)

    async def delete(
        self,
        gvk: GroupVersionKind,
        key: Key,
        *,
        uid: str = "",
        resource_version: str = "",
        propagation: str = "",
    ) -> bool:
        """Record `delete`."""
        self._note("delete", gvk.kind, key)
        return await super().delete(
            gvk, key, uid=uid, resource_version=resource_version, propagation=propagation
        )

    def taken(self) -> list[str]:
        """Return the writes since the last call."""
        taken, self.writes = getattr(self, "writes", []), []
        return taken


def instance_options(
    options: Options | None = None, *, collects_garbage: bool = False, **changes: Any
) -> Options:
    """Return the options of an instance, with some changed.

    Args:
        changes: fields of `Options`, or of the ManagedResource controller's settings; with the
            prefix `health_` or `secret_`, fields of these controllers' settings.
    """
    options = options or Options()
    parts: dict[str, dict[str, Any]] = {"managed_resource": {}, "health": {}, "secret": {}}
    for name in list(changes):
        prefix, _, field = name.partition("_")
        if prefix in ("health", "secret"):
            parts[prefix][field] = changes.pop(name)
        elif hasattr(options.managed_resource, name):
            parts["managed_resource"][name] = changes.pop(name)
    for name, part in parts.items():
        changes[name] = replace(getattr(options, name), **part)
    if collects_garbage:
        changes["garbage"] = GarbageSettings(namespaces=changes.get("target_namespaces", ()))
    return replace(options, **changes)


class World:
    """A namespace with ManagedResources in it, and instances of the resource manager."""

    def __init__(self, client: Client, recorder: RecordingClient, namespace: str) -> None:
        self.client = client
        self.recorder = recorder
        self.namespace = namespace
        self.manager: ResourceManager | None = None
        self._tasks: list[asyncio.Task[None]] = []

    # Running instances

    async def start(
        self,
        options: Options | None = None,
        *,
        metrics: Metrics | None = None,
        clock: Clock | None = None,
        target: Client | None = None,
        **changes: Any,
    ) -> ResourceManager:
        """Start an instance for this namespace.

        Args:
            target: of the cluster in which it applies objects; the same cluster if None.
            changes: fields of its options.
        """
        options = instance_options(options, **({"source_namespaces": (self.namespace,)} | changes))
        manager = ResourceManager(
            self.recorder, target or self.recorder, options, metrics=metrics, clock=clock
        )
        self.manager = manager
        self._tasks.append(asyncio.create_task(manager.run()))
        await manager.source.synced()
        return manager

    async def stop(self) -> None:
        """Stop all instances at any await, as a kill would."""
        tasks, self._tasks = self._tasks, []
        for task in tasks:
            task.cancel()
        for outcome in await asyncio.gather(*tasks, return_exceptions=True):
            if isinstance(outcome, Exception):
                raise outcome

    # ManagedResources and their objects

    async def create(self, name: str, *objects: JsonObject, **spec: Any) -> JsonObject:
        """Create a Secret of the name with the objects, and a ManagedResource that names it."""
        await self.put_secret(name, *objects)
        return await self.create_resource(name, [name], **spec)

    async def create_resource(
        self, name: str, secrets: list[str], metadata: JsonObject | None = None, **spec: Any
    ) -> JsonObject:
        """Create a ManagedResource; `spec` has additional fields of its spec."""
        return await self.client.create(
            {
                "apiVersion": MANAGED_RESOURCE.api_version,
                "kind": MANAGED_RESOURCE.kind,
                "metadata": {"name": name, "namespace": self.namespace, **(metadata or {})},
                "spec": {"secretRefs": [{"name": secret} for secret in secrets], **spec},
            }
        )

    async def put_secret(self, name: str, *objects: JsonObject) -> None:
        """Write the Secret with exactly these objects, one data key each."""
        await self.put_data(
            name,
            {f"{number:03}.yaml": orjson.dumps(obj) for number, obj in enumerate(objects)},
        )

    async def put_data(self, name: str, data: dict[str, bytes]) -> None:
        """Write the Secret with exactly this data."""
        secret: JsonObject = {
            "apiVersion": "v1",
            "kind": "Secret",
            "metadata": {"name": name, "namespace": self.namespace},
            "data": {key: base64.b64encode(value).decode() for key, value in data.items()},
        }
        while (live := await self.client.find(SECRET, Key(self.namespace, name))) is not None:
            with suppress(Conflict):  # an instance puts a finalizer on it, or takes it off
                await self.client.update({**live, "data": secret["data"]})
                return
        await self.client.create(secret)

    async def edit(self, name: str, patch: JsonObject) -> JsonObject:
        """Apply a merge patch to a ManagedResource."""
        return await self.client.patch(MANAGED_RESOURCE, self.key(name), patch)

    async def delete(self, name: str) -> None:
        """Delete a ManagedResource, without waiting."""
        await self.client.delete(MANAGED_RESOURCE, self.key(name))

    async def resource(self, name: str) -> JsonObject:
        """Return the current ManagedResource."""
        return await self.client.get(MANAGED_RESOURCE, self.key(name))

    def key(self, name: str) -> Key:
        """Return the key of something in this world's namespace."""
        return Key(self.namespace, name)

    def config_map(self, name: str, labels: JsonObject | None = None, **data: str) -> JsonObject:
        """Return a ConfigMap in this world's namespace."""
        return config_map(name, self.namespace, labels=labels, **data)

    # Waiting, by watching

    async def until(
        self, name: str, holds: Callable[[JsonObject], bool], *, patience: float = PATIENCE
    ) -> JsonObject:
        """Wait until `holds` accepts a ManagedResource; fail with its last state."""
        return await self.until_object(MANAGED_RESOURCE, self.key(name), holds, patience=patience)

    async def until_object(
        self,
        gvk: GroupVersionKind,
        key: Key,
        holds: Callable[[JsonObject], bool],
        *,
        patience: float = PATIENCE,
    ) -> JsonObject:
        """Wait until an object exists and `holds` accepts it; fail with its last state."""
        return await waiting.until(self.client, gvk, key, holds, patience=patience)

    async def until_gone(
        self, gvk: GroupVersionKind, key: Key, *, patience: float = PATIENCE
    ) -> None:
        """Wait until an object is gone."""
        await waiting.until_gone(self.client, gvk, key, patience=patience)

    async def applied(self, name: str) -> JsonObject:
        """Wait until the current generation is applied."""
        return await self.until(name, is_applied)

    async def healthy(self, name: str) -> JsonObject:
        """Wait until the current generation is applied, healthy and rolled out."""
        return await self.until(name, is_ready)

    async def reported(self, name: str, reason: str) -> JsonObject:
        """Wait for an Event with a reason about a ManagedResource; return it."""
        async with asyncio.timeout(PATIENCE):
            while True:
                for event in await self.client.list(EVENT, self.namespace):
                    if event["reason"] == reason and event["regarding"].get("name") == name:
                        return event

    async def settled(self) -> None:
        """Wait until no controller of the last started instance has anything to do."""
        assert self.manager is not None
        target = self.manager.target
        caches = [*self.manager.source.unit.caches, *(target.caches() if target else ())]
        await waiting.settled(self.manager, self.client, caches=caches)

    async def exists(self, gvk: GroupVersionKind, name: str) -> bool:
        """Return whether an object of this world's namespace exists."""
        return await self.client.find(gvk, self.key(name)) is not None


def config_map(
    name: str, namespace: str, labels: JsonObject | None = None, **data: str
) -> JsonObject:
    """Return a ConfigMap."""
    metadata: JsonObject = {"name": name, "namespace": namespace}
    if labels:
        metadata["labels"] = labels
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": data}


def condition(resource: JsonObject, kind: str) -> tuple[str, str]:
    """Return the status and reason of a condition, or two empty strings."""
    for found in maps_at(resource, "status", "conditions"):
        if found.get("type") == kind:
            return found.get("status", ""), found.get("reason", "")
    return "", ""


def message(resource: JsonObject, kind: str) -> str:
    """Return the message of a condition, or an empty string."""
    for found in maps_at(resource, "status", "conditions"):
        if found.get("type") == kind:
            return found.get("message") or ""
    return ""


def is_applied(resource: JsonObject) -> bool:
    """Return whether the current generation is applied."""
    observed = (resource.get("status") or {}).get("observedGeneration")
    applied = condition(resource, "ResourcesApplied")[0]
    return observed == generation_of(resource) and applied == "True"


def is_ready(resource: JsonObject) -> bool:
    """Return whether the current generation is applied, healthy and rolled out."""
    return (
        is_applied(resource)
        and condition(resource, "ResourcesHealthy")[0] == "True"
        and condition(resource, "ResourcesProgressing")[0] == "False"
    )


def has(kind: str, status: str, reason: str) -> Callable[[JsonObject], bool]:
    """Return a predicate that checks a condition's status and reason."""
    return lambda resource: condition(resource, kind) == (status, reason)
