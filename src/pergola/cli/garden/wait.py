"""`pergola garden wait`: until a Garden is ready, has some conditions, or is gone."""

import asyncio
import sys
from collections.abc import Iterator, Sequence
from contextlib import aclosing
from typing import TYPE_CHECKING, Annotated, Final

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.garden.runtime_cluster import chosen
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.kube.client import Client

READY: Final = "ready"
DELETE: Final = "delete"

_CONDITION: Final = "condition="
_POLL_SECONDS: Final = 5.0
Flag = Annotated[bool, Parameter(negative="")]


def wait(
    garden: str = "",
    /,
    *,
    for_: Annotated[tuple[str, ...], Parameter(name="--for", negative="")] = (READY,),
    timeout: str = "10m",
    skip_last_operation: Flag = False,
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Wait until a Garden is ready, has some conditions, or is gone.

    Exits with 1 after the timeout, and prints what the Garden lacks.

    Parameters
    ----------
    garden
        Name of the Garden; by default the only one.
    for_
        `ready`: reconciled in its newest generation, and all four conditions are True. A
        condition, such as `VirtualComponentsHealthy`, which requires the reconciliation as well;
        `condition=NAME=STATUS` names another status than True. `delete`: the Garden is gone.
        Repeat it to wait for all of several.
    timeout
        How long to wait at most, such as 90s or 1h30m.
    skip_last_operation
        Do not require of the last operation that it succeeded.
    """
    from pergola.api.durations import parse_duration

    seconds = parse_duration(timeout).total_seconds()
    problem = asyncio.run(_wait(garden, for_, seconds, cluster, skips=skip_last_operation))
    if problem:
        say(f"{problem} (after {timeout})", file=sys.stderr)
        sys.exit(1)


async def _wait(
    garden: str,
    targets: Sequence[str],
    seconds: float,
    cluster: ClusterOptions,
    *,
    skips: bool,
) -> str:
    from pergola.cli.garden.runtime_cluster import GardenNotFound
    from pergola.runtime.logging import configure

    configure("error", "text")
    async with cluster.connect() as client:
        try:
            name = await chosen(client, garden)
        except GardenNotFound:
            if list(targets) == [DELETE]:
                return ""  # it is already gone
            raise
        return await unmet(client, name, targets, seconds, skips=skips)


async def unmet(
    client: "Client", name: str, targets: Sequence[str], seconds: float, *, skips: bool = False
) -> str:
    """Wait for a Garden; return the unmet targets after the time limit, or an empty text."""
    from pergola.api.objects import Key
    from pergola.api.operator_v1alpha1 import GARDEN
    from pergola.kube.states import watched

    missing = f"Garden {name} was not read"
    try:
        async with (
            asyncio.timeout(seconds),
            aclosing(watched(client, GARDEN, Key("", name), _POLL_SECONDS)) as states,
        ):
            async for garden in states:
                problems = [*problems_of(garden, targets, skips=skips)]
                if not problems:
                    return ""
                missing = f"Garden {name}: {'; '.join(problems)}"
    except TimeoutError:
        pass
    return missing


def problems_of(
    garden: "JsonObject | None", targets: Sequence[str], *, skips: bool = False
) -> Iterator[str]:
    """Yield the unmet targets of a Garden.

    Args:
        skips: Whether to ignore the last operation.
    """
    if DELETE in targets:
        if garden is not None:
            yield f"it exists{_operation(garden)}"
        return
    if garden is None:
        yield "it does not exist"
        return
    if not skips:
        yield from _last_operation(garden)
    for kind, status in _conditions(targets):
        yield from _condition(garden, kind, status)


def _conditions(targets: Sequence[str]) -> Iterator[tuple[str, str]]:
    from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS

    for target in targets:
        if target == READY:
            yield from ((kind, "True") for kind in CARE_CONDITIONS)
        else:
            kind, _, status = target.removeprefix(_CONDITION).partition("=")
            yield kind, status or "True"


def _last_operation(garden: "JsonObject") -> Iterator[str]:
    """Yield why the current Garden is not reconciled (spec 21 §12.5)."""
    from pergola.api.objects import generation_of, map_at

    status = map_at(garden, "status")
    operation = map_at(status, "lastOperation")
    if status.get("observedGeneration") != generation_of(garden):
        yield "its newest generation was not reconciled yet"
    if (operation.get("type"), operation.get("state")) != ("Reconcile", "Succeeded"):
        yield f"it is not reconciled{_operation(garden)}"


def _operation(garden: "JsonObject") -> str:
    from pergola.api.objects import map_at

    operation = map_at(garden, "status", "lastOperation")
    if not operation:
        return ""
    progress = f"{operation.get('progress', 0)} %"
    description = operation.get("description") or ""
    return f" ({operation.get('type')} {operation.get('state')}, {progress}: {description})"


def _condition(garden: "JsonObject", kind: str, status: str) -> Iterator[str]:
    from pergola.api.objects import maps_at

    found = {each.get("type"): each for each in maps_at(garden, "status", "conditions")}
    live = found.get(kind)
    if live is None:
        known = ", ".join(sorted(map(str, found))) or "none"
        yield f"it has no condition {kind} (it has {known})"
    elif live.get("status") != status:
        yield f"{kind} is {live.get('status')}: {live.get('message') or live.get('reason') or ''}"
