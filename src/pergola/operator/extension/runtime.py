"""The Extension itself in the runtime cluster (spec 21 §13.2.1)."""

from typing import Final

from pergola.api import marks
from pergola.api.kinds import NAMESPACE as NAMESPACE_KIND
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    name_of,
    uid_of,
)
from pergola.charts import Release, merge_values
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.operator.chart_source import Charts, served_version
from pergola.operator.extension.deployments import WAIT_SECONDS, Deployments
from pergola.operator.extension.errors import NotYet
from pergola.operator.extension.names import (
    EXTENSION_CHART,
    POD_SECURITY,
    chart_of,
    runtime_namespace,
    runtime_resource,
)
from pergola.operator.extension.values import Resolved
from pergola.operator.extension.webhook_configurations import delete_configurations
from pergola.operator.run.waiting import gone, wait_until

PRIORITY_CLASS: Final = GroupVersionKind("scheduling.k8s.io", "v1", "PriorityClass")
PRIORITY: Final = "gardener-garden-system-200"

_ENFORCE: Final = "pod-security.kubernetes.io/enforce"
_HIGH_AVAILABILITY: Final = "high-availability-config.resources.gardener.cloud"
_ZONES: Final = f"{_HIGH_AVAILABILITY}/zones"
_LABELS: Final = {
    marks.ROLE: "extension",
    f"{_HIGH_AVAILABILITY}/consider": "true",
    "networking.gardener.cloud/access-target-apiserver": "allowed",
}
_RETRY_SECONDS: Final = 2.0


class RuntimePart:
    """The Extension in the runtime cluster.

    Args:
        client: Of the runtime cluster.
    """

    def __init__(self, client: Client, charts: Charts, deployments: Deployments) -> None:
        self._client = client
        self._charts = charts
        self._deployments = deployments

    async def apply(self, extension: JsonObject, values: Resolved) -> None:
        """Deploy the chart, and wait until it is healthy.

        Raises:
            NotYet: The priority class of its pods does not exist yet.
            ExtensionFailed, ChartError: The chart cannot be pulled or rendered.
            WaitTimeout: Its objects did not become healthy.
            KubeError: The API server refused, or did not answer.
        """
        await self._check_priority_class()
        name = name_of(extension)
        chart = await self._charts.pull(chart_of(extension, *EXTENSION_CHART))
        await self._apply_namespace(extension)
        release = Release(
            name=name,
            namespace=runtime_namespace(name),
            values=merge_values(values.values, _injected()),
            kube_version=await served_version(self._client),
            hidden=values.hidden,
        )
        objects = await self._charts.render(chart, release)
        key = runtime_resource(name)
        await self._deployments.apply_for_runtime(key, objects, has_origin=False)
        await self._deployments.wait(key)

    async def delete(self, name: str) -> bool:
        """Delete the objects, then the namespace; return whether anything existed.

        What the Extension registered by itself goes before the namespace, whose deletion it could
        prevent, and again after it: until then a pod may have registered it anew.

        Raises:
            WaitTimeout, NotReady: With what blocks the deletion.
            KubeError: The API server refused, or did not answer.
        """
        namespace = runtime_namespace(name)
        had_objects = await self._deployments.delete(runtime_resource(name))
        had_webhooks = await delete_configurations(self._client, namespace)
        had_namespace = await self._delete_namespace(Key("", namespace))
        if had_namespace:
            await delete_configurations(self._client, namespace)
        return had_objects or had_webhooks or had_namespace

    async def _check_priority_class(self) -> None:
        if await self._client.find(PRIORITY_CLASS, Key("", PRIORITY), metadata_only=True) is None:
            raise NotYet(f'priority class "{PRIORITY}" not found yet', _RETRY_SECONDS)

    async def _apply_namespace(self, extension: JsonObject) -> None:
        key = Key("", runtime_namespace(name_of(extension)))
        garden, live = (
            await self._client.find(NAMESPACE_KIND, Key("", NAMESPACE), metadata_only=True),
            await self._client.find(NAMESPACE_KIND, key),
        )
        labels = {**_LABELS, _ENFORCE: annotations_of(extension).get(POD_SECURITY)}
        annotations = {_ZONES: annotations_of(garden or {}).get(_ZONES) or None}
        if live is None:
            metadata = {
                "name": key.name,
                "labels": {name: value for name, value in labels.items() if value is not None},
                "annotations": {name: each for name, each in annotations.items() if each},
            }
            await self._client.create(
                {"apiVersion": "v1", "kind": NAMESPACE_KIND.kind, "metadata": metadata}
            )
            return
        has = {**labels_of(live), **annotations_of(live)}
        if any(has.get(name) != value for name, value in (labels | annotations).items()):
            patch = {"metadata": {"labels": labels, "annotations": annotations}}
            await self._client.patch(NAMESPACE_KIND, key, patch)

    async def _delete_namespace(self, key: Key) -> bool:
        live = await self._client.find(NAMESPACE_KIND, key)
        if live is None:
            return False
        if not map_at(live, "metadata").get("deletionTimestamp"):
            try:
                await self._client.delete(NAMESPACE_KIND, key, uid=uid_of(live))
            except NotFound:
                return True
        await wait_until(self._client, NAMESPACE_KIND, key, gone, WAIT_SECONDS)
        return True


def _injected() -> JsonObject:
    # The text "true", not a boolean: the original's charts compare it with that.
    return {"gardener": {"runtimeCluster": {"enabled": "true", "priorityClassName": PRIORITY}}}
