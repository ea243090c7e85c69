"""The progress of what Gardener reconciles."""

from collections.abc import AsyncGenerator
from contextlib import aclosing
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    generation_of,
    map_at,
    maps_at,
)
from pergola.kube import states
from pergola.kube.client import Client

_INTERVAL: Final = 1.0


@dataclass(frozen=True)
class Reconciliation:
    """A state of an object.

    Attributes:
        obj: the object; empty while it does not exist.
    """

    obj: JsonObject

    @property
    def state(self) -> str:
        """The state of the last operation; empty before the first one."""
        return str(self._operation.get("state") or "")

    @property
    def percent(self) -> int:
        """The progress of the last operation."""
        return int(self._operation.get("progress") or 0)

    @property
    def description(self) -> str:
        """The task that Gardener is running or waiting for."""
        return str(self._operation.get("description") or "")

    @property
    def errors(self) -> list[str]:
        """The errors of the last operation."""
        return [str(each.get("description")) for each in maps_at(self.obj, "status", "lastErrors")]

    @property
    def unmet(self) -> list[str]:
        """The types of conditions that are not true."""
        conditions = maps_at(self.obj, "status", "conditions")
        return [str(each["type"]) for each in conditions if each.get("status") != "True"]

    @property
    def _operation(self) -> JsonObject:
        return map_at(self.obj, "status", "lastOperation")


def is_reconciled(found: Reconciliation) -> bool:
    """Return whether the current specification is reconciled."""
    observed = map_at(found.obj, "status").get("observedGeneration")
    return observed == generation_of(found.obj) and found.state == "Succeeded"


def succeeded(found: Reconciliation) -> bool:
    """Return whether the current specification is reconciled, and all conditions are true."""
    has_conditions = bool(maps_at(found.obj, "status", "conditions"))
    return is_reconciled(found) and has_conditions and not found.unmet


async def following(
    client: Client, kind: GroupVersionKind, key: Key
) -> AsyncGenerator[Reconciliation]:
    """Yield the states of an object until the current specification is reconciled and healthy.

    Raises:
        KubeError: it cannot be read.
    """
    async with aclosing(states.watched(client, kind, key, _INTERVAL)) as objects:
        async for obj in objects:
            found = Reconciliation(obj or {})
            yield found
            if obj and succeeded(found):
                return
