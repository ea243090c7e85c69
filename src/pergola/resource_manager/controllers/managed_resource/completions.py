"""Runs that applied everything and are not recorded yet.

The first check of the objects mostly follows within moments, and then one write of the status
records both. A check that takes longer, or cannot be made, does not delay ResourcesApplied further.
A process that ends before that write loses nothing: the next one finds the run unfinished.
"""

import asyncio
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pergola.api.objects import JsonObject, Key, map_at, uid_of
from pergola.resource_manager.controllers.managed_resource.conditions import Conditions
from pergola.runtime.controlling.watches import Events

HOLD_SECONDS: Final = 0.5


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """The end of one run.

    Attributes:
        uid: of the ManagedResource.
        fields: of its status, to record beside the condition.
        due: the time of the event loop at which it is recorded without a check.
    """

    uid: str
    fields: JsonObject
    due: float

    @property
    def seconds_left(self) -> float:
        """How long the record may wait for a check."""
        return self.due - asyncio.get_running_loop().time()

    def recorded(self, resource: JsonObject, now: datetime) -> JsonObject:
        """Return the ManagedResource as it is when the end of the run is recorded."""
        conditions = Conditions(resource, now)
        conditions.applied()
        status = {**map_at(resource, "status"), "conditions": conditions.items, **self.fields}
        return {**resource, "status": status}


class Completions:
    """The completed runs that wait for their first check.

    Attributes:
        held: the ManagedResources whose objects should be checked now.
    """

    def __init__(self) -> None:
        self.held: Events[Key] = Events()
        self._waiting: dict[Key, Completion] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def hold(self, resource: JsonObject, fields: JsonObject) -> None:
        """Have a run recorded with the next check, or soon without one."""
        due = asyncio.get_running_loop().time() + HOLD_SECONDS
        key = Key.of(resource)
        self._waiting[key] = Completion(uid_of(resource), fields, due)
        self.held.notify(key)

    def of(self, key: Key, uid: str) -> Completion | None:
        """Return the run of a ManagedResource that is to be recorded."""
        completion = self._waiting.get(key)
        return completion if completion is not None and completion.uid == uid else None

    def drop(self, key: Key) -> None:
        """Forget the run, because it is recorded, or another one began."""
        self._waiting.pop(key, None)
