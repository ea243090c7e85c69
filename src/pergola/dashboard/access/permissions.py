"""The kinds that a user may list: decided by the API server, and cached briefly.

Decisions are per kind and namespace, never per object; for a kind that a user may list everywhere,
one decision suffices. Unknown permissions are denied.
"""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.kinds import CORE_EVENT, EVENT
from pergola.api.objects import JsonObject
from pergola.dashboard.access.lifetimes import Lifetimes
from pergola.dashboard.access.reviews import User, may_list
from pergola.dashboard.state.scope import Place
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, UnknownKind
from pergola.runtime.clock import monotonic
from pergola.runtime.task_group import gathered

EVERYWHERE: Final = ""
MOST_DECISIONS: Final = 5_000
"""The maximum number of kinds in namespaces to check with the API server for one user."""
_AT_ONCE: Final = 8
NOTHING: Final = (
    "you may not list anything that this page shows: request a role with the verb list on its "
    "kinds, such as managedresources.resources.gardener.cloud"
)
_EVENTS: Final = (EVENT, CORE_EVENT)
"""The same objects in two API groups: most roles grant only the older one."""


class _Decision(NamedTuple):
    is_allowed: bool
    until: float
    problem: str = ""


class Permissions:
    """The permissions of one user.

    Args:
        client: Must be allowed to create SubjectAccessReviews.
    """

    def __init__(self, client: Client, user: User, lifetimes: Lifetimes) -> None:
        self._client = client
        self._user = user
        self._lifetimes = lifetimes
        self._decisions: dict[Place, _Decision] = {}
        self._asking = asyncio.Lock()
        self._left_out = 0

    async def allowed(self, places: Iterable[Place]) -> set[Place]:
        """Return the places whose objects the user may list."""
        desired = set(places)
        async with self._asking:
            await self._decide({Place(place.gvk, EVERYWHERE) for place in desired})
            rest = {each for each in desired if not self._holds(Place(each.gvk, EVERYWHERE))}
            await self._decide(rest)
        return {each for each in desired if each not in rest or self._holds(each)}

    def problems(self) -> list[JsonObject]:
        """Return why some objects that the user may see are not shown."""
        problem = next((it.problem for it in self._decisions.values() if it.problem), "")
        if self._decisions and not any(each.is_allowed for each in self._decisions.values()):
            problem = problem or NOTHING
        if self._left_out:
            problem = _too_many(self._left_out)
        return [{"kind": "Permissions", "problem": problem}] if problem else []

    def _holds(self, place: Place) -> bool:
        found = self._decisions.get(place)
        return found is not None and found.is_allowed

    async def _decide(self, places: set[Place]) -> None:
        """Check the places without a decision, or with an expired one."""
        now = monotonic()
        self._decisions = {k: v for k, v in self._decisions.items() if v.until > now}
        due = [place for place in places if place not in self._decisions]
        room = MOST_DECISIONS - len(self._decisions)
        self._left_out = max(0, len(due) - room)
        limit = asyncio.Semaphore(_AT_ONCE)

        async def ask(place: Place) -> None:
            async with limit:
                self._decisions[place] = await self._decided(place)

        await gathered(map(ask, due[:room]))

    async def _decided(self, place: Place) -> _Decision:
        lifetimes = self._lifetimes
        try:
            is_allowed = await self._may_list(place)
        except KubeError as error:
            problem = f"the API server cannot be asked what you may see: {error}"
            return _Decision(False, monotonic() + lifetimes.failed, problem)  # noqa: FBT003
        seconds = lifetimes.allowed if is_allowed else lifetimes.denied
        return _Decision(is_allowed, monotonic() + seconds)

    async def _may_list(self, place: Place) -> bool:
        for kind in _EVENTS if place.gvk == EVENT else (place.gvk,):
            try:
                resource = await self._client.resource(kind)
            except UnknownKind:
                continue
            if await may_list(self._client, self._user, resource, place.namespace):
                return True
        return False


def _too_many(count: int) -> str:
    return (
        f"{count} kinds in namespaces are not shown, since at most {MOST_DECISIONS} are checked "
        "with the API server: request the permission to list the kinds in all namespaces"
    )
