"""`pergola garbage`: what the garbage collector would take, without taking it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

if TYPE_CHECKING:
    from pergola.resource_manager.controllers.garbage_collector import Candidate


def garbage(
    *,
    namespace: Annotated[list[str] | None, Parameter(alias="-n", negative="")] = None,
    minimum_age: str = "10m",
    output: Annotated[Literal["table", "json"], Parameter(alias="-o")] = "table",
    kubeconfig: Path | None = None,
    context: str | None = None,
) -> None:
    """Print the immutable ConfigMaps and Secrets that nobody uses; nothing is deleted.

    Looks once, as the garbage collector does in each run. It deletes what it finds unused in two
    runs in a row.

    Parameters
    ----------
    namespace
        Look only there; may be given several times.
    minimum_age
        Leave out what is younger.
    output
        `table` for people, `json` for programs.
    kubeconfig
        The cluster, as kubectl finds it unless given.
    context
        Context of that kubeconfig.
    """
    found = asyncio.run(_look(namespace or [], minimum_age, kubeconfig, context))
    if output == "json":
        import orjson

        rows = [
            {"kind": c.gvk.kind, "namespace": c.key.namespace, "name": c.key.name} for c in found
        ]
        print(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    for candidate in found:
        print(f"{candidate.key.namespace:20}  {candidate.gvk.kind:10}  {candidate.key.name}")
    print(f"{len(found)} unused" if found else "nothing is unused")


async def _look(
    namespaces: list[str], minimum_age: str, kubeconfig: Path | None, context: str | None
) -> list["Candidate"]:
    from pergola.api.durations import parse_duration
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load
    from pergola.resource_manager.controllers.garbage_collector import GarbageCollector
    from pergola.runtime.clock import SystemClock

    async with Client.connect(load(kubeconfig, context)) as client:
        collector = GarbageCollector(
            client,
            SystemClock(),
            sync_period=0,
            namespaces=namespaces,
            minimum_age=parse_duration(minimum_age),
        )
        return await collector.unused()
