"""The chart of a gardenlet, applied to its cluster by the operator itself.

It is not a ManagedResource: gardenlet updates its objects later, and they stay when the Gardenlet
is deleted.
"""

from typing import Final, NamedTuple

from pergola.api import marks
from pergola.api.kinds import NAMESPACE as NAMESPACE_KIND
from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, uid_of
from pergola.charts import Chart, Release
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.manifests import manifest
from pergola.operator.chart_source import Charts, served_version
from pergola.operator.gardenlet.errors import GardenletFailed
from pergola.operator.gardenlet.names import PROGRAM
from pergola.operator.run.direct import MANAGER, DirectObjects
from pergola.runtime.clock import Clock

_NAMESPACE_LABELS: Final = {marks.ROLE: "garden"}


class Rendering(NamedTuple):
    """A gardenlet chart, and the values to render it with.

    Attributes:
        hidden: Texts in the values that must not appear in errors.
    """

    chart: Chart
    values: JsonObject
    hidden: frozenset[str]


async def render_chart(charts: Charts, target: Client, rendering: Rendering) -> list[JsonObject]:
    """Return the objects of the chart for a cluster.

    Raises:
        ChartError: Helm refused the chart or its values.
        GardenletFailed: An object has no kind or no name.
        KubeError: The cluster refused, or did not answer.
    """
    release = Release(
        name=PROGRAM,
        namespace=NAMESPACE,
        values=rendering.values,
        kube_version=await served_version(target),
        hidden=rendering.hidden,
    )
    objects = await charts.render(rendering.chart, release)
    for obj in objects:
        check_object(obj, rendering.chart)
    return objects


def check_object(obj: JsonObject, chart: Chart) -> None:
    """Check that an object of a chart can be applied.

    Raises:
        GardenletFailed: It has no kind or no name.
    """
    metadata = obj.get("metadata")
    has_name = isinstance(metadata, dict) and bool(metadata.get("name"))
    if not (obj.get("apiVersion") and obj.get("kind") and has_name):
        raise GardenletFailed(
            f"a template of chart {chart.source} has no apiVersion, kind or metadata.name: add it"
        )


async def apply_chart(target: Client, objects: list[JsonObject], clock: Clock) -> None:
    """Apply the objects of the chart; skip those that are already as desired.

    Raises:
        KubeError: The cluster refused one, or did not answer.
    """
    await _apply_namespace(target)
    placed = [await _placed(target, obj) for obj in objects]
    await DirectObjects(target, clock).apply(placed)


async def delete_secret(client: Client, key: Key) -> None:
    """Delete a Secret with a kubeconfig, if it exists.

    Raises:
        KubeError: The cluster refused, or did not answer.
    """
    live = await client.find(SECRET, key, metadata_only=True)
    if live is not None:
        try:
            await client.delete(SECRET, key, uid=uid_of(live))
        except NotFound:
            return


async def _apply_namespace(target: Client) -> None:
    """Create the namespace; an existing one keeps its labels."""
    if await target.find(NAMESPACE_KIND, Key("", NAMESPACE), metadata_only=True) is None:
        obj = manifest("v1", NAMESPACE_KIND.kind, NAMESPACE, labels=_NAMESPACE_LABELS)
        await target.apply(obj, manager=MANAGER, force=True)


async def _placed(target: Client, obj: JsonObject) -> JsonObject:
    """Return an object, in the namespace of the release if it needs one and sets none."""
    resource = await target.resource(GroupVersionKind.of(obj))
    metadata = obj["metadata"]
    if not resource.namespaced or metadata.get("namespace"):
        return obj
    return {**obj, "metadata": {**metadata, "namespace": NAMESPACE}}
