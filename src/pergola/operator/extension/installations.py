"""ControllerInstallations in the virtual cluster: the installations of Extensions in Seeds."""

from collections.abc import Iterator
from typing import Final, NamedTuple

from pergola.api.conditions import TRUE, get_condition
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    map_at,
    maps_at,
    resource_version_of,
)
from pergola.kube.client import Client
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.watches import Events
from pergola.runtime.task_group import TaskGroup

INSTALLATION: Final = GroupVersionKind(GARDENER_CORE, "v1beta1", "ControllerInstallation")
REGISTRATION: Final = GroupVersionKind(GARDENER_CORE, "v1beta1", "ControllerRegistration")

_REQUIRED: Final = "Required"


class Installation(NamedTuple):
    """The facts about a ControllerInstallation that its Extension's conditions depend on.

    Attributes:
        registration: The name of the ControllerRegistration, which is that of the Extension.
        version: The resourceVersion of the ControllerRegistration that it is based on.
        where: The cluster, such as `Seed: one`.
        conditions: Each with type, status, reason and message.
    """

    registration: str
    version: str
    where: str
    conditions: tuple[tuple[str, str, str, str], ...]

    @classmethod
    def of(cls, obj: JsonObject) -> "Installation":
        """Return these facts about an object."""
        spec = map_at(obj, "spec")
        registration = map_at(spec, "registrationRef")
        conditions = (
            tuple(str(each.get(field) or "") for field in ("type", "status", "reason", "message"))
            for each in maps_at(obj, "status", "conditions")
        )
        return cls(
            registration=str(registration.get("name") or ""),
            version=str(registration.get("resourceVersion") or ""),
            where=_where(spec),
            conditions=tuple(sorted(conditions)),  # type: ignore[arg-type] # four texts each
        )

    def condition(self, kind: str) -> JsonObject | None:
        """Return a condition, or None."""
        names = ("type", "status", "reason", "message")
        found = (dict(zip(names, each, strict=True)) for each in self.conditions)
        return get_condition(found, kind)

    @property
    def is_required(self) -> bool:
        """Whether its cluster requires it."""
        return (self.condition(_REQUIRED) or {}).get("status") == TRUE


class Installations:
    """A watch of the ControllerInstallations, while the virtual cluster is reachable.

    Attributes:
        changed: Reports the registration whose installations changed, or an empty name if it may be
            any.
    """

    def __init__(self, virtual: VirtualCluster) -> None:
        self.changed: Events[str] = Events()
        self._virtual = virtual
        self._caches: _Caches | None = None

    @property
    def are_known(self) -> bool:
        """Whether reads can be trusted now."""
        caches = self._caches
        return caches is not None and all(each.is_synced for each in caches)

    def of(self, registration: str) -> Iterator[Installation]:
        """Yield the installations of a registration."""
        items = self._caches.installations.items() if self._caches is not None else ()
        yield from (each for _, each in items if each.registration == registration)

    def current_version(self, registration: str) -> str:
        """Return the resourceVersion of a registration; empty if it does not exist."""
        if self._caches is None:
            return ""
        return self._caches.registrations.get(Key("", registration)) or ""

    async def run(self) -> None:
        """Watch until cancelled."""
        await self._virtual.while_connected(self._watch)

    async def _watch(self, client: Client) -> None:
        self._caches = caches = _Caches.of(client)
        caches.installations.subscribe(self._installation_changed)
        caches.registrations.subscribe(lambda change: self.changed.notify(change.key.name))
        try:
            async with TaskGroup() as group:
                for cache in caches:
                    group.create_task(cache.run())
                for cache in caches:
                    await cache.synced()
                self.changed.notify("")
        finally:
            self._caches = None

    def _installation_changed(self, change: Change[Installation]) -> None:
        names = {each.registration for each in (change.old, change.new) if each is not None}
        if change.old != change.new:
            for name in names:
                self.changed.notify(name)


class _Caches(NamedTuple):
    """The objects of one virtual cluster."""

    installations: Cache[Installation]
    registrations: Cache[str]

    @classmethod
    def of(cls, client: Client) -> "_Caches":
        return cls(
            Cache(client, INSTALLATION, Installation.of),
            Cache(client, REGISTRATION, resource_version_of, metadata_only=True),
        )


def _where(spec: JsonObject) -> str:
    shoot = map_at(spec, "shootRef")
    if shoot:
        return f"Shoot: {Key(str(shoot.get('namespace') or ''), str(shoot.get('name') or ''))}"
    return f"Seed: {map_at(spec, 'seedRef').get('name') or ''}"
