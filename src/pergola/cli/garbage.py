"""`pergola garbage`: a dry run of the garbage collector."""

import asyncio
from typing import TYPE_CHECKING, Annotated

from cyclopts import Parameter

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.output import ListOutput, object_name, print_table, show
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
    output: ListOutput = "table",
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
    """
    if all_namespaces and namespace:
        raise GarbageError("give either --namespace or --all-namespaces")
    found = asyncio.run(_observe(namespace or [], minimum_age, cluster))
    rows = [(each.key.namespace, each.gvk.kind, each.key.name) for each in found]
    show(
        output,
        data=[{"kind": kind, "namespace": where, "name": name} for where, kind, name in rows],
        names=[object_name(kind, "", name) for _, kind, name in rows],
        text=lambda: _print(rows),
    )


def _print(rows: list[tuple[str, str, str]]) -> None:
    if rows:
        print_table(("NAMESPACE", "KIND", "NAME"), rows)
    say(f"{len(rows)} unused" if rows else "nothing is unused")


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
