"""The command `pergola crds`."""

import asyncio
from typing import TYPE_CHECKING, Final

from cyclopts import App

from pergola.cli.cluster_options import DEFAULT_CLUSTER, ClusterOptions
from pergola.cli.crds.groups import chosen, rendered
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject

app: Final = App(
    name="crds",
    help="Print CustomResourceDefinitions, or install them in a cluster.",
)


@app.default
def crds(
    *groups: str,
    apply: bool = False,
    cluster: ClusterOptions = DEFAULT_CLUSTER,
    timeout: float = 60.0,
) -> None:
    """Print CustomResourceDefinitions, or install them in a cluster.

    Prints YAML for `kubectl apply --server-side -f -`; the same version prints the same bytes.
    Definitions of other projects that the cluster already has with other content stay as they are.

    Parameters
    ----------
    groups
        pergola (the default): the kinds of the resource manager and of Pergola's extensions.
        operator: Garden and Extension, which the operator's chart installs itself. extensions,
        shoot-extensions: the other kinds of extensions. etcd, fluent-operator, istio,
        opentelemetry, perses-operator, prometheus-operator, pvc-autoscaler, victoria-operator, vpa:
        kinds of other projects, which the operator installs for a Garden. all: all of them.
    apply
        Install them in a cluster instead, and return once it serves them.
    timeout
        Seconds to wait until the cluster serves them.
    """
    own, foreign = chosen(groups)
    if apply:
        asyncio.run(_apply(own, foreign, cluster, timeout))
    else:
        say(rendered([*own, *foreign]), end="")


async def _apply(
    own: list["JsonObject"],
    foreign: list["JsonObject"],
    cluster: ClusterOptions,
    timeout: float,
) -> None:
    from pergola.api.objects import name_of
    from pergola.cli.crds.install import install

    async with cluster.connect() as client:
        left = await install(client, own, foreign, timeout=timeout)
    for name in map(name_of, [*own, *foreign]):
        state = (
            "is not ours and differs: not changed" if name in left else "is installed and served"
        )
        say(f"{name} {state}")
