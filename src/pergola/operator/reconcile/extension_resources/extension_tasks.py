"""Creating, changing and deleting the Extensions of the garden (spec 21 §15.3)."""

from collections.abc import Callable, Iterable
from typing import TypeAlias

from pergola.api.objects import JsonObject, name_of
from pergola.extension_api.caller import Request
from pergola.extension_api.kinds import EXTENSION
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.errors import UnknownKind
from pergola.operator.reconcile.extension_resources.caller import Caller, together
from pergola.operator.reconcile.extension_resources.extensions import (
    BEFORE,
    GardenExtension,
    deletion_of,
    extensions,
)
from pergola.operator.reconcile.extension_resources.inputs import is_ours

Current: TypeAlias = Callable[[], Landscape]
"""Returns the landscape."""


class Deployment:
    """The Extensions before or after the kube-apiserver: one task deploys them, another waits.

    Args:
        is_before: Whether these are the Extensions before the kube-apiserver.
    """

    def __init__(self, caller: Caller, current: Current, *, is_before: bool) -> None:
        self._caller = caller
        self._current = current
        self._is_before = is_before
        self._requests: list[tuple[GardenExtension, Request]] = []

    async def deploy(self) -> None:
        """Deploy the Extensions.

        Raises:
            OperatorError: An Extension of the same name is not the garden's.
            CallerError: An Extension is being deleted.
            KubeError: The API server refused, or did not answer.
        """
        desired = [each for each in extensions(self._current()) if self._is_mine(each)]
        live = {name_of(obj): obj for obj in await _live(self._caller)}
        requests = await together(
            self._caller.deploy(EXTENSION, each.obj, live.get(name_of(each.obj)))
            for each in desired
        )
        self._requests = list(zip(desired, requests, strict=True))

    async def wait(self) -> None:
        """Wait until the deployed Extensions are ready.

        Raises:
            CallerError: An Extension did not become ready.
            KubeError: The API server refused, or did not answer.
        """
        await together(
            self._caller.wait(EXTENSION, request, extension.timeout)
            for extension, request in self._requests
        )

    def _is_mine(self, extension: GardenExtension) -> bool:
        return extension.is_before == self._is_before


class Deletion:
    """Extensions to delete: one task requests their deletion, another waits.

    Args:
        concerned: Returns the live Extensions of the garden to delete.
    """

    def __init__(self, caller: Caller, concerned: Callable[[JsonObject], bool]) -> None:
        self._caller = caller
        self._concerned = concerned
        self._deleted: list[JsonObject] = []

    async def delete(self) -> None:
        """Request the deletions.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        live = [obj for obj in await _live(self._caller) if is_ours(obj)]
        self._deleted = [obj for obj in live if self._concerned(obj)]
        await together(self._caller.delete(EXTENSION, obj) for obj in self._deleted)

    async def wait(self) -> None:
        """Wait until they are gone.

        Raises:
            CallerError: An Extension was not deleted.
            KubeError: The API server refused, or did not answer.
        """
        await together(self._caller.wait_deleted(EXTENSION, obj) for obj in self._deleted)


def stale(caller: Caller, current: Current) -> Deletion:
    """Return the deletion of the Extensions that the Garden no longer uses."""

    def is_stale(obj: JsonObject) -> bool:
        return name_of(obj) not in {name_of(each.obj) for each in extensions(current())}

    return Deletion(caller, is_stale)


def before_api_server(caller: Caller, current: Current) -> Deletion:
    """Return the deletion of the Extensions that are deleted before the kube-apiserver."""
    return Deletion(caller, lambda obj: deletion_of(obj, current().extensions) == BEFORE)


def everything(caller: Caller) -> Deletion:
    """Return the deletion of all Extensions of the garden."""
    return Deletion(caller, lambda _: True)


async def _live(caller: Caller) -> Iterable[JsonObject]:
    """Return all Extensions in the garden's namespace; none if the kind is not served."""
    try:
        return await caller.client.list(EXTENSION.gvk, NAMESPACE)
    except UnknownKind:
        return ()
