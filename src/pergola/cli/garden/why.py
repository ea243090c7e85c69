"""`pergola garden why`: why something of a Garden is there, skipped, unhealthy or stuck."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.garden.runtime_cluster import Source, chosen, runtime_template
from pergola.cli.output import ReportOutput

if TYPE_CHECKING:
    from pergola.why import Answer


def why(
    name: str,
    /,
    *,
    garden: str = "",
    config: Path | None = None,
    output: ReportOutput = "text",
    cluster: ClusterOptions = DEFAULT_CLUSTER,
) -> None:
    """Explain why a part of a Garden is present, skipped, unhealthy or stuck.

    Goes down from a component to its ManagedResources, the objects that are not healthy, their
    pods, and the container with its last log line and the last Event. Ends with what to do next
    where that can be known. Only reads.

    Parameters
    ----------
    name
        A component (`etcd-druid`), a task ("Deploying ETCD Druid"), a ManagedResource, or an object
        as NAME, KIND/NAME or NAMESPACE/NAME.
    garden
        Name of the Garden; by default the only one.
    config
        Configuration file of the operator, whose feature gates decide about components;
        by default that of the operator in the cluster.
    """
    from pergola.cli.answers import print_answer

    print_answer(asyncio.run(answer_about(name, Source(garden, config, cluster))), output)


async def answer_about(name: str, source: Source) -> "Answer":
    """Return why a component, task or object of a Garden is as it is.

    Raises:
        GardenNotFound: The target is not exactly one Garden.
        Unknown: The name has no subject.
        KubeError: The API server refused, or did not answer.
    """
    from pergola.operator.reconcile.picture import following
    from pergola.runtime.logging import configure
    from pergola.why import Reader
    from pergola.why.garden_parts import answer

    configure("error", "text")
    async with source.cluster.connect() as client:
        garden = await chosen(client, source.garden)
        template = await runtime_template(client, source.config)
        async with following(client, garden, template) as pictures:
            picture = await anext(pictures)
        return await answer(Reader(client), name, picture)
