"""Runs that applied everything but are not recorded yet.

One write of the status records the end of a run together with the first verdict about its objects,
which usually follows within moments, and within a few seconds at the latest. A process that ends
before that write loses nothing: the next one finds the run unfinished.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import datetime

from pergola.api.objects import JsonObject, Key, map_at, uid_of
from pergola.resource_manager.controllers.managed_resource.conditions import Conditions
from pergola.runtime.controlling.watches import Events


@dataclass(frozen=True, slots=True, eq=False)
class Completion:
    """The end of one run.

    Attributes:
        uid: of the ManagedResource.
        fields: of its status, to record with the condition.
        remarks: about objects, for the message of the condition.
    """

    uid: str
    fields: JsonObject
    remarks: tuple[str, ...] = ()

    def recorded(self, resource: JsonObject, now: datetime) -> JsonObject:
        """Return the ManagedResource with the end of the run recorded."""
        conditions = Conditions(resource, now)
        conditions.applied(self.remarks)
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

    def hold(self, resource: JsonObject, fields: JsonObject, remarks: Sequence[str] = ()) -> None:
        """Schedule a run to be recorded with the first verdict about its objects."""
        key = Key.of(resource)
        self._waiting[key] = Completion(uid_of(resource), fields, tuple(remarks))
        self.held.notify(key)

    def of(self, key: Key, uid: str) -> Completion | None:
        """Return the pending run of a ManagedResource."""
        completion = self._waiting.get(key)
        return completion if completion is not None and completion.uid == uid else None

    def drop(self, key: Key) -> None:
        """Drop the run, because it is recorded, or another one began."""
        self._waiting.pop(key, None)
