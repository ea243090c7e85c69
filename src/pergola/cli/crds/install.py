"""Installation of CustomResourceDefinitions in a cluster."""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from typing import Final

from pergola.api.conditions import get_condition
from pergola.api.kinds import CRD
from pergola.api.objects import JsonObject, Key, maps_at, name_of
from pergola.cli.crds.groups import definitions
from pergola.kube import states
from pergola.kube.client import Client
from pergola.kube.errors import Conflict

_FIELD_MANAGER: Final = "pergola-crds"
_POLL_SECONDS: Final = 1.0


class CrdsError(Exception):
    """The API server does not serve an installed kind; the text names it."""


async def install(
    client: Client,
    own: Iterable[JsonObject] | None = None,
    foreign: Iterable[JsonObject] = (),
    *,
    timeout: float = 60.0,
) -> set[str]:
    """Apply CustomResourceDefinitions, and return once the API server serves their kinds.

    Args:
        client: Of the cluster.
        own: Definitions that replace others of the same name; by default those of Pergola's API.
        foreign: Definitions that do not: those of other projects.
        timeout: In seconds, until all are served.

    Returns:
        The names of the definitions left to the program that installed them.

    Raises:
        CrdsError: A kind is not served in time.
        KubeError: The API server refuses a request or is unreachable.
    """
    applied = [
        await client.apply(crd, manager=_FIELD_MANAGER, force=True)
        for crd in (definitions() if own is None else own)
    ]
    left = set()
    for crd in foreign:
        try:
            applied.append(await client.apply(crd, manager=_FIELD_MANAGER))
        except Conflict:
            left.add(name_of(crd))
    await _all_established(client, applied, timeout)
    return left


def is_established(crd: JsonObject) -> bool:
    """Return whether the API server serves the kind."""
    condition = get_condition(maps_at(crd, "status", "conditions"), "Established") or {}
    return condition.get("status") == "True"


async def _all_established(client: Client, crds: list[JsonObject], timeout: float) -> None:
    try:
        async with asyncio.timeout(timeout):
            for crd in crds:
                await _established(client, crd)
    except TimeoutError:
        raise CrdsError(
            f"CustomResourceDefinition {name_of(crd)} is not served after {timeout:g}s; "
            f"run `kubectl describe crd {name_of(crd)}` to see why"
        ) from None


async def _established(client: Client, crd: JsonObject) -> None:
    """Wait until the API server serves the kind of a definition, given its current state."""
    if is_established(crd):
        return
    watched = states.watched(client, CRD, Key.of(crd), _POLL_SECONDS)
    async with aclosing(watched) as seen:
        async for state in seen:
            if state is not None and is_established(state):
                return
