"""`pergola garbage`: a dry run of the garbage collector."""

import asyncio
from typing import TYPE_CHECKING, Annotated, Literal

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.resource_manager.controllers.garbage_collector import Candidate


class GarbageError(Exception):
    """The options contradict each other."""


def garbage(
    *,
    namespace: Annotated[list[str] | None, Parameter(alias="-n", negative="")] = None,
    all_namespaces: Annotated[bool, Parameter(alias="-A", negative="")] = False,
    minimum_age: str = "10m",
    output: Annotated[Literal["table", "json"], Parameter(alias="-o")] = "table",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Print the immutable ConfigMaps and Secrets that nothing references, and delete nothing.

    This is one run of the garbage collector, which deletes objects that are unused in two
    consecutive runs.

    Parameters
    ----------
    namespace
        Only this namespace; repeat for several. All namespaces by default.
    all_namespaces
        All namespaces, which is the default.
    minimum_age
        Ignore younger objects.
    output
        `table` for people, `json` for programs.
    """
    if all_namespaces and namespace:
        raise GarbageError("give either --namespace or --all-namespaces")
    found = asyncio.run(_observe(namespace or [], minimum_age, cluster))
    if output == "json":
        import orjson

        rows = [
            {"kind": c.gvk.kind, "namespace": c.key.namespace, "name": c.key.name} for c in found
        ]
        say(orjson.dumps(rows, option=orjson.OPT_INDENT_2).decode())
        return
    for candidate in found:
        say(f"{candidate.key.namespace:20}  {candidate.gvk.kind:10}  {candidate.key.name}")
    say(f"{len(found)} unused" if found else "nothing is unused")


async def _observe(
    namespaces: list[str], minimum_age: str, cluster: ClusterOptions
) -> list["Candidate"]:
    from pergola.api.durations import parse_duration
    from pergola.resource_manager.controllers.garbage_collector import GarbageCollector
    from pergola.runtime.clock import SystemClock

    async with cluster.connect() as client:
        collector = GarbageCollector(
            client,
            SystemClock(),
            sync_period=0,
            namespaces=namespaces,
            minimum_age=parse_duration(minimum_age),
        )
        return await collector.unused()
