"""Liveness and readiness of a process (spec 10 §13.3)."""

from collections.abc import Callable, Sequence
from typing import Final

from pergola.runtime.controlling.unit import Unsynced

UNSYNCED_SECONDS: Final = 180.0


class SyncChecks:
    """Readiness and liveness of a process, based on its watches.

    A watch that is not live makes the process unready at once. It makes the process unhealthy after
    three minutes, unless the API server is away: a restart does not fix an outage.

    Args:
        unsynced: the watches that are not live now.
        now: a monotonic clock in seconds.
    """

    def __init__(
        self, unsynced: Callable[[], Sequence[Unsynced]], now: Callable[[], float]
    ) -> None:
        self._unsynced = unsynced
        self._now = now
        self._since: float | None = None

    def ready(self) -> str | None:
        """Return why the process is not ready, or None."""
        self.healthy()
        return "; ".join(map(str, self._unsynced())) or None

    def healthy(self) -> str | None:
        """Return why the process should be restarted, or None."""
        stalled = [lost for lost in self._unsynced() if not lost.is_outage]
        if not stalled:
            self._since = None
            return None
        if self._since is None:
            self._since = self._now()
        seconds = self._now() - self._since
        if seconds < UNSYNCED_SECONDS:
            return None
        return f"not synced for {seconds:.0f} s: {'; '.join(map(str, stalled))}"
