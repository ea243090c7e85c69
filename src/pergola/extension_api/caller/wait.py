"""Waiting until an extension has carried a request out (spec 40 §4).

A wait ends as soon as the object is in the desired state. Errors are evaluated as if the object
were read every five seconds: an error reported by an extension may pass within the first thirty
seconds, so that the extension can try again, and ends the wait at any later check.
"""

import asyncio
import math
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from pergola.api.objects import JsonObject, Key, map_at
from pergola.extension_api.caller.errors import CallerError, NotDeleted, NotMigrated, NotReady
from pergola.extension_api.caller.readiness import (
    Judge,
    Verdict,
    deletion,
    is_pending,
    migration,
    readiness,
)
from pergola.extension_api.caller.states import Latest, following
from pergola.extension_api.kinds import ExtensionKind
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.kube.states import State, States, watched
from pergola.runtime.clock import monotonic

_EXPLAIN_SECONDS: Final = 5.0


class Progress(NamedTuple):
    """The progress of an operation.

    Attributes:
        percent: as reported by the extension; 0 before it picked up the request.
        text: the current activity, or why the object is not in the desired state.
        hint: the likely reason for a delay; empty if unknown.
    """

    percent: int
    text: str
    hint: str = ""


Report: TypeAlias = Callable[[Progress], None]
"""Called with each new progress."""
Explain: TypeAlias = Callable[[State], Awaitable[str]]
"""Explains why an object may be ignored, e.g. a dead extension; empty if unknown."""


def silent(progress: Progress) -> None:
    """Report nothing."""


async def unexplained(state: State) -> str:
    """Explain nothing."""
    return ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting:
    """The options of a wait.

    Attributes:
        timeout: in seconds; the kind's default if None.
        report: receives each new progress.
        explain: called at each check of an object that is not in the desired state.
        states: the source of the object's states, if it is not the API server.
    """

    timeout: float | None = None
    report: Report = silent
    explain: Explain = unexplained
    states: Callable[[], States] | None = None


PLAIN_WAIT = Waiting()
NOT_PICKED_UP: Final = "waiting for the extension to pick up the request"


async def wait_ready(
    client: Client,
    kind: ExtensionKind,
    key: Key,
    waiting: Waiting = PLAIN_WAIT,
    *,
    expected: str = "",
) -> JsonObject:
    """Return the object once the last request was carried out.

    Args:
        expected: the timestamp of the request; any on the object if empty.

    Raises:
        NotReady: the object is not ready; the error has the last problem, and the codes of its last
            error.
        KubeError: the object cannot be read, or its kind is not served.
    """

    def judge(state: State) -> Verdict:
        return readiness(state, expected)

    state, verdict = await _Wait(client, kind, key, waiting, judge).run()
    if state is None or verdict.problem:
        what = f"Error while waiting for {kind.kind} {key} to become ready"
        raise _failure(NotReady, what, verdict)
    return state


async def wait_migrated(
    client: Client, kind: ExtensionKind, key: Key, waiting: Waiting = PLAIN_WAIT
) -> JsonObject | None:
    """Return the object once it was migrated away; None if it is gone.

    An error of the extension may pass until the timeout.

    Raises:
        NotMigrated: it was not migrated; the error has the last problem, and the codes of its last
            error.
        KubeError: the object cannot be read, or its kind is not served.
    """
    state, verdict = await _Wait(client, kind, key, waiting, migration).run()
    if verdict.problem:
        what = f"Error while waiting for {kind.kind} {key} to be migrated"
        raise _failure(NotMigrated, what, verdict)
    return state


async def wait_deleted(
    client: Client, kind: ExtensionKind, key: Key, waiting: Waiting = PLAIN_WAIT
) -> None:
    """Wait until the object, or its kind, is gone.

    Raises:
        NotDeleted: it still exists; the error has its last error with codes, or what blocks the
            deletion.
        KubeError: the object cannot be read.
    """
    try:
        _, verdict = await _Wait(client, kind, key, waiting, deletion).run()
    except UnknownKind:
        return
    if verdict.problem:
        raise _failure(NotDeleted, f"Failed to delete {kind.kind} {key}", verdict)


class _Wait:
    """A wait for one object."""

    def __init__(
        self, client: Client, kind: ExtensionKind, key: Key, waiting: Waiting, judge: Judge
    ) -> None:
        self._open = waiting.states or (
            lambda: watched(client, kind.gvk, key, interval=kind.interval)
        )
        self._kind = kind
        self._waiting = waiting
        self._judge = judge
        self._state: State = None
        self._verdict = Verdict("it was not read yet")
        self._believed_at = math.inf
        self._polls = 1  # the first one is at the start
        self._hint = ""
        self._reported: Progress | None = None

    async def run(self) -> tuple[State, Verdict]:
        """Return the last state, and its problem."""
        timeout = self._waiting.timeout
        self._began = monotonic()
        self._deadline = self._began + (self._kind.timeout if timeout is None else timeout)
        async with following(self._open()) as latest:
            while not await self._is_over(latest):
                self._report()
        if not self._verdict.problem or not self._hint:
            return self._state, self._verdict
        return self._state, self._verdict._replace(problem=f"{self._verdict.problem}; {self._hint}")

    async def _is_over(self, latest: Latest) -> bool:
        next_observe = self._began + self._polls * self._kind.interval
        try:
            self._state = await latest.next(min(next_observe, self._believed_at, self._deadline))
        except TimeoutError:
            return await self._observe()
        self._verdict = self._judge(self._state)
        if self._verdict.problem:
            self._believed_at = math.inf
            return False
        self._believed_at = min(self._believed_at, monotonic() + self._verdict.unsure)
        return self._verdict.unsure == 0

    async def _observe(self) -> bool:
        """Return whether the wait is over because of the elapsed time."""
        if monotonic() >= min(self._believed_at, self._deadline):
            if self._verdict.problem and not self._hint:
                self._hint = await self._explain()
            return True
        self._polls += 1
        if self._verdict.is_error and self._polls > self._kind.severe / self._kind.interval:
            return True
        self._hint = await self._explain() if self._verdict.problem else ""
        return False

    async def _explain(self) -> str:
        try:
            async with asyncio.timeout(_EXPLAIN_SECONDS):
                return await self._waiting.explain(self._state)
        except TimeoutError:
            return ""

    def _report(self) -> None:
        progress = _progress(self._state, self._verdict, self._hint)
        if progress != self._reported:
            self._waiting.report(progress)
            self._reported = progress


def _progress(state: State, verdict: Verdict, hint: str) -> Progress:
    operation = map_at(state or {}, "status", "lastOperation")
    if state is None:
        return Progress(0, verdict.problem, hint)
    if not operation or is_pending(state):
        return Progress(0, NOT_PICKED_UP, hint)
    percent = operation.get("progress")
    text = operation.get("description") if operation.get("state") == "Processing" else ""
    return Progress(percent if isinstance(percent, int) else 0, text or verdict.problem, hint)


def _failure(cls: type[CallerError], what: str, verdict: Verdict) -> CallerError:
    return cls(f"{what}: {verdict.problem}", *verdict.codes)
