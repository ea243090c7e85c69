"""Interrupting the reconciliation of a Garden as soon as its deletion is requested.

Otherwise, the deletion of a Garden that waits for something broken would start only after that
wait. Tasks can be cancelled at any await, since the process could also be killed there: the
deletion finds what they left behind.
"""

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any, Final

from pergola.api.objects import Key
from pergola.operator.reconcile.triggers import Request
from pergola.runtime.caching.view import View
from pergola.runtime.controlling.controller import Again, Outcome
from pergola.runtime.controlling.spans import work_until
from pergola.runtime.logging import get_logger

log = get_logger("garden")

_AT_ONCE: Final = 0.005


class Interruptible:
    """Cancels the reconciliation of a Garden to delete; never a deletion.

    Args:
        gardens: Reports requests for deletion.
        reconcile: May be cancelled at any await.
    """

    def __init__(
        self, gardens: View[Request], reconcile: Callable[[Key], Coroutine[Any, Any, Outcome]]
    ) -> None:
        self._gardens = gardens
        self._reconcile = reconcile
        self._changed = asyncio.Event()
        gardens.subscribe(self._notify)

    async def reconcile(self, key: Key) -> Outcome:
        """Return the outcome of the reconciliation, or an immediate requeue if it was cancelled.

        Raises:
            Exception: The error of the reconciliation.
        """
        if self._is_to_delete(key):
            return await self._reconcile(key)
        outcome = await work_until(self._deletion_requested(key), self._reconcile(key))
        if outcome is None:
            log.info("reconciliation interrupted", garden=key.name, reason="deletion requested")
        return outcome or Again(_AT_ONCE)

    async def _deletion_requested(self, key: Key) -> None:
        while not self._is_to_delete(key):
            await self._changed.wait()

    def _is_to_delete(self, key: Key) -> bool:
        request = self._gardens.get(key)
        return request is None or (request.is_deleted and not request.is_ignored)

    def _notify(self, _: object) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
