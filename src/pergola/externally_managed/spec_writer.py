"""Writing the spec of InfraClusters, and releasing abandoned finalizers."""

from typing import Final

from pergola.api.objects import (
    JsonObject,
    Key,
    finalizers_of,
    map_at,
    metadata_of,
    resource_version_of,
)
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.ownership import MANAGER, Decision, decide_fields, owned_fields
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Forbidden, Invalid, NotFound
from pergola.runtime.caching.cache import Cache
from pergola.runtime.logging import get_logger

log = get_logger("infra-manager")

_UNKNOWN_FIELD: Final = "failed to create typed patch object"


class SpecRefused(Exception):
    """The API server, or a webhook of the provider, rejects the spec."""


class SpecWriter:
    """The writer of the spec of one kind of InfraClusters."""

    def __init__(self, client: Client, managed: Managed, objects: Cache[JsonObject]) -> None:
        self._client = client
        self._managed = managed
        self._objects = objects

    async def apply(self, obj: JsonObject, spec: JsonObject) -> tuple[JsonObject, tuple[str, ...]]:
        """Write the fields that are empty or ours.

        Returns:
            The updated object, and one sentence for each value that others set differently.

        Raises:
            SpecRefused: the API server would reject the content from any writer.
        """
        decision = decide_fields(spec, map_at(obj, "spec"), owned_fields(obj, "spec"))
        try:
            obj = await self._write(obj, decision)
        except ApiError as error:
            if isinstance(error, Invalid | Forbidden) or _UNKNOWN_FIELD in str(error):
                raise SpecRefused(str(error)) from error
            raise
        return obj, decision.conflicts

    async def release(self, obj: JsonObject) -> None:
        """Remove the finalizers of the kind's provider."""
        names = finalizers_of(obj)
        left = [name for name in names if name not in self._managed.finalizers]
        if left == names:
            return
        metadata = {"resourceVersion": resource_version_of(obj), "finalizers": left}
        try:
            await self._client.patch(self._managed.gvk, Key.of(obj), {"metadata": metadata})
        except NotFound:
            return
        log.info("finalizers released", object=f"{self._managed.gvk.kind} {Key.of(obj)}")

    async def _write(self, obj: JsonObject, decision: Decision) -> JsonObject:
        # A decision is valid for one state only: concurrent writes of users must not be lost.
        if decision.removed:
            change = {
                "metadata": {"resourceVersion": resource_version_of(obj)},
                "spec": decision.removed,
            }
            obj = await self._client.patch(self._managed.gvk, Key.of(obj), change)
            self._objects.observe(obj)
        if decision.differs:
            names = ("name", "namespace", "uid", "resourceVersion")
            desired = {
                "apiVersion": self._managed.gvk.api_version,
                "kind": self._managed.gvk.kind,
                "metadata": {name: metadata_of(obj)[name] for name in names},
                "spec": decision.fields,
            }
            # Forced, because an empty field, such as host "", may have another owner.
            obj = await self._client.apply(desired, manager=MANAGER, force=True)
            self._objects.observe(obj)
        return obj
