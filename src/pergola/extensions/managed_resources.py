"""ManagedResources for the Shoot of an extension resource (spec 40 §3.3).

`ManagedResources` is the set of one extension; the functions handle a single one by name.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable, Iterator, Mapping, Sequence
from contextlib import aclosing, contextmanager
from typing import Final

from pergola.api import marks
from pergola.api.managed_resource_status import (
    applied_problem,
    healthy_problem,
    progressing_problem,
)
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of, name_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import (
    Bundle,
    BundleError,
    Registry,
    Settings,
    apply,
    for_shoot,
    set_keep_objects,
    wait_until,
)
from pergola.bundle import delete as delete_bundle
from pergola.bundle import wait_deleted as wait_bundle_deleted
from pergola.bundle.waits import watched
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extensions.actuator import Context
from pergola.kube.client import Client

DELETION_SECONDS: Final = 120.0
_WAITING_PERCENT: Final = 60
_DELETION_PAUSE: Final = 5.0


class ManagedResources:
    """All ManagedResources of one extension in the namespace of an extension resource.

    Args:
        origin: the value of their origin label; all ManagedResources with the label belong to the
            set.
    """

    def __init__(self, context: Context, origin: str) -> None:
        self._context = context
        self._origin = origin

    async def apply(
        self, desired: Mapping[str, Sequence[JsonObject]], *, condition_type: str = ""
    ) -> None:
        """Apply these and delete the others, in order; write only differences.

        Args:
            desired: objects by the name of their ManagedResource.
            condition_type: see `create_for_shoot`.

        Raises:
            RequeueAfter: one of a previous extension resource is still being deleted.
            ExtensionError: an object occurs twice, or is too large.
            KubeError: the API server refused, or did not answer.
        """
        for name, objects in desired.items():
            with as_extension_error():
                stored = await create_for_shoot(
                    self._context, name, self._origin, objects, condition_type=condition_type
                )
            if deletion_timestamp_of(stored) is not None:
                cause = f"ManagedResource {Key.of(stored)} of a previous resource is being deleted"
                raise RequeueAfter(_DELETION_PAUSE, ExtensionError(cause))
        for name in await self.names():
            if name not in desired:
                await delete(self._context, name)

    async def wait_applied(self, name: str, seconds: float) -> None:
        """Wait until the Shoot has all objects, healthy and rolled out.

        Raises:
            ExtensionError: the time is over; the message names the missing objects.
        """
        with as_extension_error():
            await wait_applied(self._context, name, seconds)

    async def names(self) -> list[str]:
        """Return the names of existing ones, including those of earlier versions."""
        found = await self._context.client.list(
            MANAGED_RESOURCE,
            self._context.namespace,
            labels=f"{marks.ORIGIN_LABEL}={self._origin}",
            metadata_only=True,
        )
        return sorted(map(name_of, found))

    async def keep_objects(self) -> None:
        """Keep the objects in the Shoot when their ManagedResources are deleted."""
        for name in await self.names():
            await set_keep(self._context, name, keep=True)

    async def delete(self) -> None:
        """Delete all; return once they are gone, along with the objects that are not kept.

        Raises:
            ExtensionError: one still exists after two minutes; the text says what blocks it, if
                known.
        """
        names = await self.names()
        for name in names:
            await delete(self._context, name)
        with as_extension_error():
            for name in names:
                await wait_deleted(self._context, name)


@contextmanager
def as_extension_error() -> Iterator[None]:
    """Report a problem with a ManagedResource to the user, since it is not a bug."""
    try:
        yield
    except BundleError as error:
        raise ExtensionError(str(error)) from error


async def create_for_shoot(
    context: Context,
    name: str,
    origin: str,
    objects: Iterable[JsonObject | None],
    *,
    keep_objects: bool = False,
    condition_type: str = "",
    labels: Mapping[str, str] | None = None,
    settings: Settings | None = None,
) -> JsonObject:
    """Create or update a ManagedResource with these objects, in the extension's namespace.

    Writes that would change nothing are not sent.

    Args:
        name: the name of the ManagedResource, such as `extension-networking-calico-config`.
        origin: the extension, such as `extension-networking-calico`.
        objects: the objects for the Shoot; None is skipped.
        keep_objects: whether they stay when the ManagedResource is deleted.
        condition_type: the condition of the Shoot that reflects the health of these objects, such
            as `SystemComponentsHealthy`; empty for the default.
        labels: extra labels of the ManagedResource.
        settings: other options for managing the objects.

    Returns:
        The ManagedResource as stored.

    Raises:
        BundleError: an object cannot be part of a ManagedResource.
        KubeError: the API server refused, or did not answer.
    """
    own = dict(labels or {})
    if condition_type:
        own[marks.CARE_CONDITION_TYPE] = condition_type

    def build() -> Bundle:
        return for_shoot(
            context.namespace,
            name,
            Registry(*objects),
            origin=origin,
            keep_objects=keep_objects,
            settings=settings or Settings(),
            labels=own,
        )

    # Compressing many objects takes long.
    bundle = await asyncio.to_thread(build)
    return await apply(context.client, bundle, clock=context.clock)


async def set_keep(context: Context, name: str, *, keep: bool) -> None:
    """Set whether to keep the objects when the ManagedResource is deleted; no-op if it is gone."""
    await set_keep_objects(context.client, Key(context.namespace, name), keep)


async def delete(context: Context, name: str) -> None:
    """Request the deletion of a ManagedResource; no-op if it is gone."""
    await delete_bundle(context.client, Key(context.namespace, name))


async def wait_deleted(context: Context, name: str, seconds: float = DELETION_SECONDS) -> None:
    """Wait until a ManagedResource is gone, along with objects that are not kept.

    Raises:
        WaitTimeout: it still exists; the text gives the reason, if known.
    """
    await wait_bundle_deleted(context.client, Key(context.namespace, name), seconds)


async def leave(context: Context, name: str, seconds: float = DELETION_SECONDS) -> None:
    """Delete a ManagedResource and keep its objects, which move to another seed.

    Raises:
        WaitTimeout: it still exists.
    """
    await set_keep(context, name, keep=True)
    await delete(context, name)
    await wait_deleted(context, name, seconds)


async def wait_applied(
    context: Context, name: str, seconds: float, *, percent: int = _WAITING_PERCENT
) -> JsonObject:
    """Return a ManagedResource once its objects are applied, healthy and rolled out.

    Reports missing objects as progress.

    Args:
        percent: the completed percentage when the wait begins.

    Raises:
        WaitTimeout: the time is over; the message names the missing objects.
    """

    async def reported(client: Client, key: Key) -> AsyncGenerator[JsonObject | None]:
        async with aclosing(watched(client, key)) as states:
            async for resource in states:
                problem = _problem(resource)
                if problem is not None:
                    await context.progress(
                        percent, f"Waiting for ManagedResource {name}: {problem}"
                    )
                yield resource

    checks = (applied_problem, healthy_problem, progressing_problem)
    key = Key(context.namespace, name)
    return await wait_until(context.client, key, seconds, *checks, states=reported)


def _problem(resource: JsonObject | None) -> str | None:
    if resource is None:
        return "it does not exist"
    checks = (applied_problem, healthy_problem, progressing_problem)
    return next(filter(None, (check(resource) for check in checks)), None)
