"""What a flow remembers between its runs: identities of what it created, and values it found.

The values are those that an object's status carries: a flat map of texts, nested by `/` in the
keys (spec 30 §1.3). Two kinds of change differ in how long they may be forgotten: what was created
is written at once, and before anything that depends on it starts; the rest within a second, for it
can be found again.
"""

from collections.abc import Callable, Mapping
from contextvars import ContextVar
from typing import Final

RUNNING_TASK: Final[ContextVar[str | None]] = ContextVar("running_task", default=None)
"""The task on whose behalf code runs; what a task starts runs on its behalf as well."""


class State:
    """Texts by their keys; for one event loop.

    An empty text is the same as none. Keys that nobody touches stay as they were read.

    Args:
        data: what was saved last.
    """

    def __init__(self, data: Mapping[str, str] | None = None) -> None:
        self._data = dict(data or {})
        self._version = 0
        self._created: dict[str | None, int] = {}
        self._created_last = 0
        self._listeners: list[Callable[[], None]] = []

    def get(self, key: str) -> str | None:
        """Return the value; None if there is none, or an empty one."""
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
        """Remember what identifies something that was just created, or is about to be.

        It is written at once; the tasks after the running one wait until that has succeeded.
        """
        if self._change(key, value):
            self._created[RUNNING_TASK.get()] = self._created_last = self._version
            self._tell()

    def set(self, key: str, value: str) -> None:
        """Remember a value that could be found again; it is written within a second."""
        if self._change(key, value):
            self._tell()

    def forget(self, key: str) -> None:
        """Forget what is gone. No value with this key is no mistake."""
        self.set(key, "")

    def snapshot(self) -> dict[str, str]:
        """Return all that is to be saved, at this moment."""
        return dict(self._data)

    @property
    def version(self) -> int:
        """A number that grows with each change."""
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

    def _tell(self) -> None:
        for listener in self._listeners:
            listener()
