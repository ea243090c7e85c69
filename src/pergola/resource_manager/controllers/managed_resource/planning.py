"""Planning from the Secrets of a ManagedResource, which are read only when they change."""

import asyncio
from collections.abc import Collection, Sequence
from typing import Final

import orjson

from pergola.api import marks
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    generation_of,
    labels_of,
    map_at,
    maps_at,
    uid_of,
)
from pergola.bundle.content import is_cheap
from pergola.kube.errors import KubeError, Unauthorized, UnknownKind
from pergola.resource_manager.controllers.managed_resource.decode import (
    Decoded,
    SecretData,
    decode,
)
from pergola.resource_manager.controllers.managed_resource.merge import Scaled
from pergola.resource_manager.controllers.managed_resource.plan import (
    Plan,
    Planned,
    Plans,
    fingerprint,
)
from pergola.resource_manager.controllers.managed_resource.references import (
    Equivalences,
    object_key,
    reference,
)
from pergola.resource_manager.controllers.managed_resource.scaled import scaled_objects
from pergola.resource_manager.controllers.managed_resource.secrets import (
    SecretReader,
    referenced_secrets,
)
from pergola.resource_manager.source import Source
from pergola.resource_manager.target import Target
from pergola.runtime.caching.packed import pack

_SCALABLE: Final = frozenset({"Deployment", "StatefulSet"})
_THREADS: Final = 2  # each may use the memory of a whole `Budget`
_EMPTIED: Final = (
    "the Secrets contain data but no longer any object; nothing is deleted. Empty the data, or "
    "spec.secretRefs, to delete all objects"
)


class Planner:
    """A planner with a cache of plans.

    Args:
        managed_by: the value of the `managed-by` label.
    """

    def __init__(self, source: Source, target: Target, *, managed_by: str) -> None:
        self._source = source
        self._target = target
        self._managed_by = managed_by
        self._plans = Plans()
        self._secrets = SecretReader(source)
        self._threads = asyncio.Semaphore(_THREADS)

    async def plan(self, resource: JsonObject) -> Plan:
        """Return the plan of a ManagedResource in its current state.

        Raises:
            UnreadableSecret: a reference names no Secret, or its Secret cannot be read.
        """
        key = Key.of(resource)
        names = referenced_secrets(resource)
        known = self._plans.get(key, self._basis(resource, names))
        if known is not None and not await self._learn(known.unknown):
            return known
        read = await self._secrets.read_all(key.namespace, names)
        data = [SecretData(name, read[name].data) for name in names]
        versions = tuple(read[name].version for name in names)
        basis = (uid_of(resource), generation_of(resource), versions)
        plan = await self._work_out(resource, data, basis)
        if plan.unknown and await self._learn(plan.unknown):
            plan = await self._work_out(resource, data, basis)
        self._plans.put(key, plan)
        return plan

    def forget(self, key: Key) -> None:
        """Drop the cached state of a ManagedResource."""
        self._plans.drop(key)
        self._secrets.forget(key.namespace)

    def injected(self, resource: JsonObject) -> dict[str, str]:
        """Return the labels to inject into all objects; the configured one wins."""
        return {**map_at(resource, "spec", "injectLabels"), marks.MANAGED_BY: self._managed_by}

    async def scaled(self, resource: JsonObject, objects: Sequence[Planned]) -> Scaled:
        """Return the objects scaled by the target's autoscalers, if any of these can be scaled."""
        namespaces = {p.key.namespace for p in objects if p.gvk.kind in _SCALABLE}
        if not namespaces:
            return frozenset()
        equivalences = Equivalences.of(map_at(resource, "spec"))
        return scaled_objects(await self._target.autoscalers.of(namespaces), equivalences)

    def _basis(self, resource: JsonObject, names: Sequence[str]) -> tuple[object, ...]:
        namespace = Key.of(resource).namespace
        seen = [self._source.secret(Key(namespace, name)) for name in names]
        versions = tuple(secret.version if secret else None for secret in seen)
        return (uid_of(resource), generation_of(resource), versions)

    async def _work_out(
        self, resource: JsonObject, data: Sequence[SecretData], basis: tuple[object, ...]
    ) -> Plan:
        """Decode and plan, in a thread if it could block the event loop for too long."""
        if is_cheap(*(secret.data for secret in data)):
            return self._make(resource, decode(data, self._scope), basis)
        async with self._threads:
            return await asyncio.to_thread(
                lambda: self._make(resource, decode(data, self._scope), basis)
            )

    async def _learn(self, kinds: Collection[GroupVersionKind]) -> bool:
        """Discover unknown kinds on the target; return whether any is now known.

        Raises:
            KubeError: the whole target does not answer.
        """
        learned = False
        for gvk in kinds:
            try:
                await self._target.client.resource(gvk)
                learned = True
            except UnknownKind:
                continue
            except KubeError as error:
                # An API group that does not answer concerns only its own objects (spec 10 B10).
                if isinstance(error, Unauthorized) or not await self._target.answers():
                    raise
        return learned

    def _scope(self, gvk: GroupVersionKind) -> bool | None:
        resource = self._target.client.discovery.known(gvk)
        return resource.namespaced if resource is not None else None

    def _make(self, resource: JsonObject, decoded: Decoded, basis: tuple[object, ...]) -> Plan:
        labels = self.injected(resource)
        spec = map_at(resource, "spec")
        flags = (
            bool(spec.get("forceOverwriteLabels")),
            bool(spec.get("forceOverwriteAnnotations")),
        )
        objects = tuple(_planned(obj, labels, flags) for obj in decoded.objects)
        errors = list(decoded.errors)
        was_managing = bool(maps_at(resource, "status", "resources"))
        nothing_left = not objects and not decoded.released and not errors
        if nothing_left and was_managing and decoded.has_data:
            errors.append(_EMPTIED)
        return Plan(
            basis=basis,
            objects=objects,
            released=tuple(_reference(obj, {}) for obj in decoded.released),
            errors=tuple(errors),
            checksum=decoded.checksum,
            unknown=decoded.unknown,
            size=sum(len(planned.packed) + len(planned.recorded) for planned in objects),
        )


def _planned(obj: JsonObject, labels: dict[str, str], flags: tuple[bool, ...]) -> Planned:
    packed, ref = pack(obj), _reference(obj, labels)
    # A copy, which does not keep the surrounding buffer alive.
    recorded = bytes(memoryview(orjson.dumps(ref, option=orjson.OPT_SORT_KEYS)))
    return Planned(
        gvk=GroupVersionKind.of(obj),
        key=Key.of(obj),
        object_key=object_key(ref),
        recorded=recorded,
        fingerprint=fingerprint(packed, recorded, flags),
        packed=packed,
    )


def _reference(obj: JsonObject, labels: dict[str, str]) -> JsonObject:
    return reference(
        GroupVersionKind.of(obj), Key.of(obj), {**labels_of(obj), **labels}, annotations_of(obj)
    )
