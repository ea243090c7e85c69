"""A client that lets a real API server check objects, and stores none."""

from typing import Final

import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client

_CHECKED: Final = {"dryRun": "All", "fieldValidation": "Strict"}
_APPLY: Final = "application/apply-patch+yaml"


class StrictClient(Client):
    """A client whose new objects are authorized, admitted and validated, and then dropped.

    A field that the API server does not know is an error.
    """

    async def create(self, obj: JsonObject, *, dry_run: bool = True) -> JsonObject:
        """Have the API server check the creation of the object."""
        gvk = GroupVersionKind.of(obj)
        resource = await self.resource(gvk)
        return await self._object(
            gvk,
            "POST",
            resource.collection(Key.of(obj).namespace),
            query=_CHECKED,
            body=orjson.dumps(obj),
        )

    async def apply(self, obj: JsonObject, *, manager: str, force: bool = False) -> JsonObject:
        """Have the API server check the object as one that is applied."""
        gvk, key = GroupVersionKind.of(obj), Key.of(obj)
        resource = await self.resource(gvk)
        return await self._object(
            gvk,
            "PATCH",
            resource.item(key),
            query={**_CHECKED, "fieldManager": manager, "force": str(force).lower()},
            body=orjson.dumps(obj),
            content_type=_APPLY,
        )
