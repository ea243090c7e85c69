"""Takes the finalizer off Secrets onto which older versions had put it (spec 10 §11).

Nothing puts it there any more. Without this, such a Secret could never be deleted.
"""

from contextlib import suppress

from pergola.api.objects import Key
from pergola.kube.errors import NotFound
from pergola.resource_manager.source import SECRET, SeenSecret, Source
from pergola.runtime.cache import Change
from pergola.runtime.controller import DONE, Outcome


class Secrets:
    """The reconciler; only ever removes this instance's own finalizer."""

    def __init__(self, source: Source) -> None:
        self._source = source

    async def reconcile(self, key: Key) -> Outcome:
        """Removes the finalizer of one Secret, if it is there."""
        finalizer = self._source.responsibility.finalizer
        seen = self._source.secret(key)
        if seen is None or finalizer not in seen.finalizers:
            return DONE
        left = [name for name in seen.finalizers if name != finalizer]
        metadata = {"resourceVersion": seen.version, "finalizers": left}
        with suppress(NotFound):
            await self._source.client.patch(SECRET, key, {"metadata": metadata})
        return DONE

    def wakes(self, change: Change[SeenSecret]) -> bool:
        """Whether the Secret carries the finalizer."""
        return change.new is not None and (
            self._source.responsibility.finalizer in change.new.finalizers
        )
