"""The state of a flow between its runs: ids of created resources, and discovered values.

The state is part of an object's status: a flat map of strings, nested by `/` in the keys (spec 30
§1.3). Creations are written at once, before anything that depends on them starts. Other changes are
written within a second, because they can be rediscovered.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Final

RUNNING_TASK: Final[ContextVar[str | None]] = ContextVar("running_task", default=None)
"""The current task; code that it starts also runs on its behalf."""


class State:
    """Strings by key; for one event loop.

    An empty string counts as absent. Untouched keys keep their values.

    Args:
        data: the state as last saved.
    """

    def __init__(self, data: Mapping[str, str] | None = None) -> None:
        self._data = dict(data or {})
        self._version = 0
        self._created: dict[str | None, int] = {}
        self._created_last = 0
        self._listeners: list[Callable[[], None]] = []

    def get(self, key: str) -> str | None:
        """Return the value; None if it is missing or empty."""
        return self._data.get(key) or None

    def under(self, prefix: str) -> dict[str, str]:
        """Return the values whose keys begin with `prefix/`, by the rest of their keys."""
        start = f"{prefix}/"
        return {
            key.removeprefix(start): value
            for key, value in self._data.items()
            if value and key.startswith(start)
        }

    def created(self, key: str, value: str) -> None:
        """Record the id of something that was just created, or is about to be.

        It is written at once; dependent tasks wait until that has succeeded.
        """
        if self._change(key, value):
            self._created[RUNNING_TASK.get()] = self._created_last = self._version
            self._notify()

    def set(self, key: str, value: str) -> None:
        """Record a value that can be rediscovered; it is written within a second."""
        if self._change(key, value):
            self._notify()

    def forget(self, key: str) -> None:
        """Remove a key, if it exists."""
        self.set(key, "")

    def snapshot(self) -> dict[str, str]:
        """Return a copy of everything to save."""
        return dict(self._data)

    @property
    def version(self) -> int:
        """A number that increases with each change."""
        return self._version

    @property
    def created_last(self) -> int:
        """The version of the last creation; 0 if there was none."""
        return self._created_last

    def created_by(self, task: str) -> int:
        """Return the version of a task's last creation; 0 if it created nothing."""
        return self._created.get(task, 0)

    def listen(self, listener: Callable[[], None]) -> None:
        """Call `listener` after each change."""
        self._listeners.append(listener)

    def _change(self, key: str, value: str) -> bool:
        if self._data.get(key, "") == value:
            return False
        if value:
            self._data[key] = value
        else:
            del self._data[key]
        self._version += 1
        return True

    def _notify(self) -> None:
        for listener in self._listeners:
            listener()
