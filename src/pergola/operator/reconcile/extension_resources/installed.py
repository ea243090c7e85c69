"""Waiting until the extensions that a Garden requires are installed and ready (spec 21 §13.8).

An extension is ready when its ManagedResource is. All are checked again after every change, so that
one that fails while another is awaited is noticed.
"""

import asyncio
from collections.abc import AsyncGenerator, Iterable
from contextlib import aclosing, suppress
from dataclasses import replace
from typing import Final

from pergola.api.managed_resource_status import (
    applied_problem,
    healthy_problem,
    progressing_problem,
)
from pergola.api.objects import JsonObject, Key, name_of
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import ExtensionsMissing
from pergola.garden.landscape.served import Need
from pergola.kube.client import Client
from pergola.kube.errors import Gone, UnknownKind, Unreachable
from pergola.kube.states import watched
from pergola.kube.watch import watch
from pergola.operator.reconcile.extension_resources.required import required
from pergola.operator.run.waiting import Note, unnoted
from pergola.runtime.task_group import TaskGroup, gathered

LIMIT: Final = 60.0
"""Seconds until waiting fails."""

_POLL_SECONDS: Final = 2.0
_PAUSE_SECONDS: Final = 1.0
_WATCH_SECONDS: Final = 300
_SUBJECT: Final = "Extensions"
_CHECKS: Final = (applied_problem, healthy_problem, progressing_problem)


def managed_resource(extension: str) -> Key:
    """Return the ManagedResource of an extension in the runtime cluster."""
    return Key(NAMESPACE, f"extension-{extension}-garden")


async def wait_for_extensions(
    client: Client, landscape: Landscape, limit: float = LIMIT, note: Note = unnoted
) -> None:
    """Wait until a ready extension serves everything that the Garden requires.

    Args:
        limit: In seconds.

    Raises:
        ExtensionsMissing: An extension is missing or not ready; the text says which ones and why.
        KubeError: Something cannot be read.
    """
    installation = _Installation(client, landscape)
    try:
        async with asyncio.timeout(limit) as deadline:
            await installation.read()
            if installation.problems():
                await installation.follow(note)
    except TimeoutError:
        if not deadline.expired():
            raise
        raise ExtensionsMissing(installation.problems()) from None
    finally:
        note(_SUBJECT, "")


class _Installation:
    """The known state of the extensions that a Garden requires."""

    def __init__(self, client: Client, landscape: Landscape) -> None:
        self._client = client
        self._landscape = landscape
        self._states: dict[str, str | None] = {}
        self._followed: set[str] = set()
        self._changed = asyncio.Event()

    def problems(self) -> list[str]:
        """Return each kind and type that no extension currently serves, with the reason."""
        return [
            f"{need} ({self._problem(names)})"
            for need, names in self._required().items()
            if not any(self._is_ready(name) for name in names)
        ]

    async def read(self) -> None:
        """Read the ManagedResources of all extensions concerned."""
        names = sorted(self._names())
        found = await gathered(
            self._client.find(MANAGED_RESOURCE, managed_resource(name)) for name in names
        )
        self._states = dict(zip(names, map(_problem_of, found), strict=True))

    async def follow(self, note: Note) -> None:
        """Watch until there are no problems."""
        async with TaskGroup() as group:
            followers = [group.create_task(self._follow_extensions())]
            while problems := self.problems():
                note(_SUBJECT, ", ".join(problems))
                for name in self._names() - self._followed:
                    self._followed.add(name)
                    followers.append(group.create_task(self._follow(name)))
                await self._changed.wait()
                self._changed.clear()
            for follower in followers:
                follower.cancel()

    async def _follow(self, name: str) -> None:
        states = watched(self._client, MANAGED_RESOURCE, managed_resource(name), _POLL_SECONDS)
        async with aclosing(states) as seen:
            async for resource in seen:
                self._states[name] = _problem_of(resource)
                self._changed.set()

    async def _follow_extensions(self) -> None:
        with suppress(UnknownKind):
            async with aclosing(_extensions(self._client)) as lists:
                async for extensions in lists:
                    self._landscape = replace(self._landscape, extensions=extensions)
                    self._changed.set()

    def _required(self) -> dict[Need, tuple[str, ...]]:
        return dict(required(self._landscape))

    def _names(self) -> set[str]:
        return {name for names in self._required().values() for name in names}

    def _is_ready(self, name: str) -> bool:
        return name in self._states and self._states[name] is None

    def _problem(self, names: Iterable[str]) -> str:
        problems = [
            f"ManagedResource {managed_resource(name)}: "
            f"{self._states.get(name, 'it was not read yet')}"
            for name in names
        ]
        return "; ".join(problems) or "no Extension serves it"


def _problem_of(resource: JsonObject | None) -> str | None:
    if resource is None:
        return "it does not exist"
    return next(filter(None, (check(resource) for check in _CHECKS)), None)


async def _extensions(client: Client) -> AsyncGenerator[tuple[JsonObject, ...]]:
    """Yield the operator's Extensions by name, now and after each change."""
    while True:
        listed: list[JsonObject] = []
        version = ""
        async with aclosing(client.pages(EXTENSION)) as pages:
            async for page in pages:
                listed += page.items
                version = page.resource_version
        yield tuple(sorted(listed, key=name_of))
        changes = watch(
            client,
            await client.resource(EXTENSION),
            metadata_only=True,
            resource_version=version,
            timeout_seconds=_WATCH_SECONDS,
        )
        with suppress(Gone, Unreachable):
            async with aclosing(changes):
                async for change in changes:
                    if change.type in ("ADDED", "MODIFIED", "DELETED"):
                        break
                else:
                    await asyncio.sleep(_PAUSE_SECONDS)
