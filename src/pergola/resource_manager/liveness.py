"""When the process should be restarted, and when it should get no traffic (spec 10 §13.3)."""

from collections.abc import Callable, Sequence
from typing import Final

UNSYNCED_SECONDS: Final = 180.0


class SyncChecks:
    """Whether watches are live: now, and whether they were at all in the last three minutes.

    Args:
        unsynced: the kinds whose watch is not live now, each with the reason.
        now: a monotonic clock in seconds.
    """

    def __init__(self, unsynced: Callable[[], Sequence[str]], now: Callable[[], float]) -> None:
        self._unsynced = unsynced
        self._now = now
        self._since: float | None = None

    def ready(self) -> str | None:
        """Why the process is not ready, or None."""
        unsynced = self._unsynced()
        if not unsynced:
            self._since = None
            return None
        if self._since is None:
            self._since = self._now()
        return "; ".join(unsynced)

    def healthy(self) -> str | None:
        """Why the process should be restarted, or None."""
        problem = self.ready()
        if problem is None or self._since is None:
            return None
        seconds = self._now() - self._since
        if seconds < UNSYNCED_SECONDS:
            return None
        return f"not synced for {seconds:.0f} s: {problem}"
