"""Writing conditions of Extensions and Gardenlets: each writer its own, if something differs."""

from collections.abc import Callable, Sequence
from typing import Final

from pergola.api.conditions import TRUE, get_condition, set_condition
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    generation_of,
    map_at,
    maps_at,
    resource_version_of,
)
from pergola.kube.client import Client
from pergola.kube.errors import Conflict, NotFound
from pergola.kube.patches import same
from pergola.runtime.clock import Clock

Change = Callable[[list[JsonObject]], Sequence[JsonObject]]
"""Maps the conditions of an object to its new ones."""

_ATTEMPTS: Final = 5


def conditions_in(obj: JsonObject) -> list[JsonObject]:
    """Return the conditions of an object."""
    return list(maps_at(obj, "status", "conditions"))


def condition_of(obj: JsonObject, kind: str) -> JsonObject:
    """Return a condition of an object; empty if it has none of this type."""
    return get_condition(conditions_in(obj), kind) or {}


def is_true(obj: JsonObject, kind: str) -> bool:
    """Return whether an object has a condition with status `True`."""
    return condition_of(obj, kind).get("status") == TRUE


class Conditions:
    """The conditions of objects of one kind, written by several controllers.

    Args:
        client: For the cluster with the objects.
    """

    def __init__(self, client: Client, gvk: GroupVersionKind, clock: Clock) -> None:
        self._client = client
        self._gvk = gvk
        self._clock = clock

    async def patch(
        self,
        key: Key,
        kind: str,
        status: str,
        reason: str,
        message: str,
        *,
        observed: JsonObject | None = None,
    ) -> None:
        """Set one condition; keep the others.

        Args:
            observed: The object that the condition is about, whose generation is recorded as well.

        Raises:
            KubeError: The API server refused, or did not answer.
        """

        def change(conditions: list[JsonObject]) -> list[JsonObject]:
            now = self._clock.now()
            return set_condition(
                conditions, kind, status=status, reason=reason, message=message, now=now
            )

        await self.change(key, change, observed=observed)

    async def change(self, key: Key, change: Change, *, observed: JsonObject | None = None) -> None:
        """Change conditions; raises as `patch` does.

        The change is recomputed if another controller wrote in the meantime.
        """
        live = await self._client.find(self._gvk, key)
        for attempt in range(_ATTEMPTS):
            if live is None:
                return
            status: JsonObject = {"conditions": list(change(conditions_in(live)))}
            if observed is not None:
                status["observedGeneration"] = generation_of(observed)
            before = map_at(live, "status")
            if all(same(before.get(name) or [], value) for name, value in status.items()):
                return
            patch = {
                "metadata": {"resourceVersion": resource_version_of(live)},
                "status": status,
            }
            try:
                await self._client.patch(self._gvk, key, patch, subresource="status")
            except NotFound:
                return
            except Conflict:
                if attempt + 1 == _ATTEMPTS:
                    raise
                live = await self._client.find(self._gvk, key)
            else:
                return
