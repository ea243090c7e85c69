"""The ManagedResources of a network plugin: how its objects come into the Shoot, and go."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Final

from pergola.api.marks import ORIGIN_LABEL
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import BundleError
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extensions.actuator import Context
from pergola.extensions.health_checks.checks import SYSTEM_COMPONENTS_HEALTHY
from pergola.extensions.managed_resources import (
    create_for_shoot,
    delete,
    set_keep,
    wait_applied,
    wait_deleted,
)

_GOING_SECONDS: Final = 5.0


class Shipping:
    """All ManagedResources of one origin beside a Network.

    Args:
        origin: what they are labelled with; whatever has the label is one of them.
    """

    def __init__(self, context: Context, origin: str) -> None:
        self._context = context
        self._origin = origin

    async def ship(self, wanted: Mapping[str, Sequence[JsonObject]]) -> None:
        """Makes these and no others be there, in their order; writes only what differs.

        Raises:
            RequeueAfter: one of a former network is still going.
            ExtensionError: an object is there twice, or is too large.
            KubeError: the API server refused, or did not answer.
        """
        for name, objects in wanted.items():
            with _told():
                stored = await create_for_shoot(
                    self._context,
                    name,
                    self._origin,
                    objects,
                    condition_type=SYSTEM_COMPONENTS_HEALTHY,
                )
            if deletion_timestamp_of(stored) is not None:
                going = f"ManagedResource {Key.of(stored)} of a former network is still going"
                raise RequeueAfter(_GOING_SECONDS, ExtensionError(going))
        for name in await self.names():
            if name not in wanted:
                await delete(self._context, name)

    async def wait_applied(self, name: str, seconds: float) -> None:
        """Returns when the Shoot has all objects, healthy and rolled out.

        Raises:
            ExtensionError: it has not in time; says what is missing.
        """
        with _told():
            await wait_applied(self._context, name, seconds)

    async def names(self) -> list[str]:
        """Those that are there, also of former versions of the plugin."""
        found = await self._context.client.list(
            MANAGED_RESOURCE,
            self._context.namespace,
            labels=f"{ORIGIN_LABEL}={self._origin}",
            metadata_only=True,
        )
        return sorted(map(name_of, found))

    async def keep(self) -> None:
        """Has the objects stay in the Shoot when their ManagedResources go."""
        for name in await self.names():
            await set_keep(self._context, name, keep=True)

    async def delete(self, name: str) -> None:
        """Asks for the deletion of one."""
        await delete(self._context, name)

    async def delete_all(self) -> None:
        """Deletes all; returns when they are gone, and with them the objects that are not kept.

        Raises:
            ExtensionError: one is still there after two minutes; says what holds it, if known.
        """
        names = await self.names()
        for name in names:
            await delete(self._context, name)
        with _told():
            for name in names:
                await wait_deleted(self._context, name)


@contextmanager
def _told() -> Iterator[None]:
    """What went wrong with a ManagedResource is for the user, and no defect."""
    try:
        yield
    except BundleError as error:
        raise ExtensionError(str(error)) from error
