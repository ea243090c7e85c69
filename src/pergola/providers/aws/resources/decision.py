"""Decisions of steps: a plan prints them, a run carries them out."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from typing import Self

from pergola.flow.picture import Fate, Note
from pergola.runtime.failures import Failures

Call = Callable[[], Awaitable[object]]
"""A change in AWS, which also updates the snapshot, and records new ids at once."""


@dataclass(frozen=True, slots=True)
class Decision:
    """The decision of a step.

    Attributes:
        note: The text that a plan prints.
        calls: The changes in AWS, one after another.
        record: Values that the state gets before the calls; empty ones are forgotten.
        forget: Keys that the state forgets after the calls.
        warnings: For the user; they do not block.
    """

    note: Note
    calls: tuple[Call, ...] = ()
    record: Mapping[str, str] = field(default_factory=dict)
    forget: tuple[str, ...] = ()
    warnings: tuple[str, ...] = ()

    @classmethod
    def keep(
        cls, why: str = "", record: Mapping[str, str] | None = None, forget: tuple[str, ...] = ()
    ) -> Self:
        """Decide to change nothing in AWS."""
        return cls(Note(Fate.KEEP, why), (), record or {}, forget)

    @classmethod
    def skip(
        cls, why: str, record: Mapping[str, str] | None = None, forget: tuple[str, ...] = ()
    ) -> Self:
        """Decide that there is nothing that could be kept or changed."""
        return cls(Note(Fate.SKIP, why), (), record or {}, forget)

    @classmethod
    def creation(cls, why: str, *calls: Call, record: Mapping[str, str] | None = None) -> Self:
        """Decide to create something, after which the step decides once more."""
        return cls(Note(Fate.CREATE, why), calls, record or {})

    @classmethod
    def change(cls, why: str, *calls: Call, record: Mapping[str, str] | None = None) -> Self:
        """Decide to change something."""
        return cls(Note(Fate.CHANGE, why), calls, record or {})

    @classmethod
    def change_or_keep(
        cls, name: str, changes: Mapping[str, Call], record: Mapping[str, str] | None = None
    ) -> Self:
        """Decide to make changes, by their words; to keep a resource if there are none."""
        if not changes:
            return cls.keep(name, record)
        note = Note(Fate.CHANGE, f"{name}: {', '.join(changes)}", name, tuple(changes))
        return cls(note, tuple(changes.values()), record or {})

    @classmethod
    def deletion(cls, why: str, *calls: Call, forget: tuple[str, ...] = ()) -> Self:
        """Decide to delete something."""
        return cls(Note(Fate.DELETE, why), calls, forget=forget)

    @classmethod
    def refuse(cls, error: Exception) -> Self:
        """Decide that nothing can be done."""

        async def fail() -> None:
            raise error

        return cls(Note(Fate.FAILED, str(error)), (fail,))


def in_turn(*calls: Call) -> Call:
    """Return several changes as one, which are made one after another."""

    async def make() -> None:
        for call in calls:
            await call()

    return make


def together(*calls: Call) -> Call:
    """Return several changes as one, which are made at the same time."""
    return lambda: all_done(*(call() for call in calls))


async def all_done(*doings: Awaitable[object]) -> None:
    """Run several actions concurrently; each is finished, even if another one fails.

    Raises:
        Failures: all of them; a single failure is raised directly.
    """
    results = await asyncio.gather(*doings, return_exceptions=True)
    failures = [
        each if isinstance(each, Exception) else RuntimeError("it was cancelled before it was done")
        for each in results
        if isinstance(each, BaseException)
    ]
    if len(failures) == 1:
        raise failures[0]
    if failures:
        raise Failures("several things failed", failures)
