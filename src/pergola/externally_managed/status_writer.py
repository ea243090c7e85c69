"""Writing the status of InfraClusters; users see an Event if the API server rejects it."""

from typing import Final

from pergola.api.objects import JsonObject, Key, resource_version_of
from pergola.externally_managed.kinds import Managed
from pergola.externally_managed.ownership import author_of
from pergola.externally_managed.status import Outcome, paused_patch, status_patch
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, Invalid
from pergola.runtime.caching.cache import Cache
from pergola.runtime.clock import Clock
from pergola.runtime.controlling.events import Recorder, Regarding
from pergola.runtime.logging import get_logger

log = get_logger("infra-manager")

STATUS_REFUSED: Final = "StatusRefused"
"""The reason of the Event about a refused status."""


class StatusWriter:
    """Writes the status of one kind of InfraClusters, skipping writes without effect.

    Args:
        name: the external manager of this process.
    """

    def __init__(
        self,
        name: str,
        client: Client,
        managed: Managed,
        objects: Cache[JsonObject],
        recorder: Recorder,
        clock: Clock,
    ) -> None:
        self._author = author_of(name)
        self._client = client
        self._managed = managed
        self._objects = objects
        self._recorder = recorder
        self._clock = clock

    async def patch_outcome(self, obj: JsonObject, outcome: Outcome) -> None:
        """Write the outcome of a reconciliation.

        Raises:
            KubeError: it was not written.
        """
        await self._patch(
            obj, status_patch(obj, self._managed.contract, outcome, self._clock.now())
        )

    async def patch_paused(self, obj: JsonObject) -> None:
        """Record that the object is paused, if its contract has a condition for that.

        Raises:
            KubeError: it was not written.
        """
        await self._patch(obj, paused_patch(obj, self._managed.contract, self._clock.now()))

    async def _patch(self, obj: JsonObject, status: JsonObject) -> None:
        if not status:
            return
        change = {"metadata": {"resourceVersion": resource_version_of(obj)}, "status": status}
        gvk, key = self._managed.gvk, Key.of(obj)
        try:
            written = await self._client.patch(
                gvk, key, change, subresource="status", manager=self._author
            )
        except (Invalid, Forbidden) as error:
            note = f"the API server refuses the status: {error}"
            self._recorder.warning(Regarding.of(obj), STATUS_REFUSED, note)
            raise
        self._objects.observe(written)
        log.info("status written", object=f"{gvk.kind} {key}")
