"""Requests to the garden's extensions, and waiting for their results (spec 21 §15.2).

Requests are made only if something changed or the last one failed. Objects of a class other than
`garden` are never touched.
"""

import asyncio
from collections.abc import Awaitable, Iterable
from typing import TypeVar

from pergola.api.objects import JsonObject, Key
from pergola.extension_api.caller import (
    Progress,
    Request,
    Waiting,
    deploy_if_needed,
    destroy,
    wait_deleted,
    wait_ready,
)
from pergola.extension_api.errors import SeveralErrors
from pergola.extension_api.kinds import ExtensionKind
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client
from pergola.operator.reconcile.extension_resources.inputs import is_ours
from pergola.operator.run.waiting import Note, unnoted
from pergola.runtime.clock import Clock

T = TypeVar("T")


class Caller:
    """The operator in the role of a caller of extensions.

    Args:
        client: Of the runtime cluster.
        note: Receives the awaited objects, and why they are not ready.
    """

    def __init__(self, client: Client, clock: Clock, note: Note = unnoted) -> None:
        self.client = client
        self._clock = clock
        self._note = note

    async def deploy(
        self, kind: ExtensionKind, desired: JsonObject, live: JsonObject | None
    ) -> Request:
        """Create or change a resource, and request its reconciliation if needed.

        Args:
            live: The resource as just read; None if it does not exist.

        Raises:
            OperatorError: A resource of this name exists that is not the garden's.
            CallerError: The resource is being deleted.
            KubeError: The API server refused, or did not answer.
        """
        if live is not None and not is_ours(live):
            raise OperatorError(
                f"{kind.kind} {Key.of(desired)} exists, but its spec.class is not garden: delete "
                "it, or rename what the Garden needs it for"
            )
        return await deploy_if_needed(self.client, kind, desired, live, self._clock)

    async def wait(
        self, kind: ExtensionKind, request: Request, timeout: float | None = None
    ) -> JsonObject:
        """Return the resource once its extension has carried out the request.

        Args:
            timeout: In seconds; the kind's default if None.

        Raises:
            NotReady: The resource is not ready; the text says why.
            KubeError: It cannot be read.
        """
        if request.is_settled:
            return request.obj
        key = Key.of(request.obj)
        waiting = self._waiting(kind, key, timeout)
        try:
            return await wait_ready(self.client, kind, key, waiting, expected=request.timestamp)
        finally:
            self._note(f"{kind.kind} {key}", "")

    async def delete(self, kind: ExtensionKind, live: JsonObject) -> None:
        """Request the deletion of a resource, unless it is not the garden's.

        Raises:
            KubeError: The API server refused, or did not answer.
        """
        if is_ours(live):
            await destroy(self.client, kind, Key.of(live), self._clock)

    async def wait_deleted(self, kind: ExtensionKind, live: JsonObject) -> None:
        """Wait until a resource is gone, unless it is not the garden's.

        Raises:
            NotDeleted: The deletion is blocked; the text says by what.
            KubeError: It cannot be read.
        """
        if not is_ours(live):
            return
        key = Key.of(live)
        try:
            await wait_deleted(self.client, kind, key, self._waiting(kind, key, None))
        finally:
            self._note(f"{kind.kind} {key}", "")

    async def remove(self, kind: ExtensionKind, live: JsonObject) -> None:
        """Delete a resource, and wait until it is gone; raises as `wait_deleted` does."""
        await self.delete(kind, live)
        await self.wait_deleted(kind, live)

    def _waiting(self, kind: ExtensionKind, key: Key, timeout: float | None) -> Waiting:
        def report(progress: Progress) -> None:
            self._note(f"{kind.kind} {key}", progress.text)

        return Waiting(timeout=timeout, report=report)


async def together(awaitables: Iterable[Awaitable[T]]) -> list[T]:
    """Await all; a failure does not cancel the others.

    Raises:
        SeveralErrors: Several failed; if only one did, its own error.
    """
    results = await asyncio.gather(*awaitables, return_exceptions=True)
    done: list[T] = []
    failed: list[Exception] = []
    for result in results:
        if isinstance(result, Exception):
            failed.append(result)
        elif isinstance(result, BaseException):
            raise result
        else:
            done.append(result)
    if failed:
        raise failed[0] if len(failed) == 1 else SeveralErrors(failed)
    return done
