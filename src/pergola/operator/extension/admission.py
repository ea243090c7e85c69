"""The admission component of an Extension: a part in each cluster (spec 21 §13.2.2)."""

from typing import Final

from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, annotations_of, labels_of, name_of, uid_of
from pergola.charts import Release, merge_values
from pergola.garden.components.virtual_access import access_secret
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.manifests import KUBE_SYSTEM, manifest
from pergola.operator.chart_source import Charts, served_version
from pergola.operator.extension.deployments import Deployments
from pergola.operator.extension.garden_kubeconfig import with_kubeconfig
from pergola.operator.extension.names import (
    ADMISSION_RUNTIME_CHART,
    ADMISSION_VIRTUAL_CHART,
    admission_account,
    admission_runtime_resource,
    admission_virtual_resource,
    chart_of,
    virtual_namespace,
)
from pergola.operator.extension.values import Resolved

PRIORITY: Final = "gardener-garden-system-400"
_NAME: Final = "extensions.operator.gardener.cloud/name"


class AdmissionPart:
    """The admission component of an Extension.

    Args:
        client: Of the runtime cluster.
    """

    def __init__(self, client: Client, charts: Charts, deployments: Deployments) -> None:
        self._client = client
        self._charts = charts
        self._deployments = deployments

    async def apply_virtual(self, extension: JsonObject, values: Resolved, virtual: Client) -> None:
        """Deploy the part in the virtual cluster, and wait until it is healthy.

        Args:
            virtual: A client of the virtual cluster.

        Raises:
            ExtensionFailed, ChartError: The chart cannot be pulled or rendered.
            WaitTimeout: Its objects did not become healthy.
            KubeError: The API server refused, or did not answer.
        """
        name = name_of(extension)
        chart = await self._charts.pull(chart_of(extension, *ADMISSION_VIRTUAL_CHART))
        account = {"name": admission_account(name), "namespace": KUBE_SYSTEM}
        injected = {"gardener": {"virtualCluster": {"enabled": True, "serviceAccount": account}}}
        release = Release(
            name=name,
            namespace=virtual_namespace(name),
            values=merge_values(values.values, injected),
            kube_version=await served_version(virtual),
            hidden=values.hidden,
        )
        objects = await self._charts.render(chart, release)
        key = admission_virtual_resource(name)
        await self._deployments.apply_for_virtual(key, [_namespace(name), *objects])
        await self._deployments.wait(key)

    async def apply_runtime(self, extension: JsonObject, values: Resolved, generic: str) -> None:
        """Deploy the part in the runtime cluster; raises as `apply_virtual` does.

        Args:
            generic: The Secret with the kubeconfig that all components share.
        """
        name = name_of(extension)
        chart = await self._charts.pull(chart_of(extension, *ADMISSION_RUNTIME_CHART))
        secret = access_secret(admission_account(name))
        virtual = {"enabled": True, "namespace": virtual_namespace(name)}
        runtime = {"priorityClassName": PRIORITY}
        injected = {"gardener": {"runtimeCluster": runtime, "virtualCluster": virtual}}
        release = Release(
            name=name,
            namespace=NAMESPACE,
            values=merge_values(values.values, injected),
            kube_version=await served_version(self._client),
            hidden=values.hidden,
        )
        objects = [
            with_kubeconfig(each, generic, name_of(secret))
            for each in await self._charts.render(chart, release)
        ]
        await self._apply_access(secret)
        key = admission_runtime_resource(name)
        await self._deployments.apply_for_runtime(key, objects)
        await self._deployments.wait(key)

    async def delete(self, name: str) -> bool:
        """Delete both parts; return whether there was any.

        Raises:
            WaitTimeout: The deletion is blocked; the text says by what.
            KubeError: The API server refused, or did not answer.
        """
        had_runtime = await self.delete_runtime(name)
        return await self.delete_virtual(name) or had_runtime

    async def delete_runtime(self, name: str) -> bool:
        """Delete the part in the runtime cluster, then its access; see `delete`."""
        had_objects = await self._deployments.delete(admission_runtime_resource(name))
        key = Key.of(access_secret(admission_account(name)))
        secret = await self._client.find(SECRET, key, metadata_only=True)
        if secret is None:
            return had_objects
        try:
            await self._client.delete(SECRET, key, uid=uid_of(secret))
        except NotFound:
            return had_objects
        return True

    async def delete_virtual(self, name: str) -> bool:
        """Delete the part in the virtual cluster; see `delete`."""
        return await self._deployments.delete(admission_virtual_resource(name))

    async def _apply_access(self, desired: JsonObject) -> None:
        """Create or correct the Secret for the token, which the resource manager writes."""
        key = Key.of(desired)
        live = await self._client.find(SECRET, key)
        if live is None:
            await self._client.create(desired)
            return
        labels, annotations = labels_of(desired), annotations_of(desired)
        has = {**labels_of(live), **annotations_of(live)}
        if any(has.get(name) != value for name, value in {**labels, **annotations}.items()):
            patch = {"metadata": {"labels": labels, "annotations": annotations}}
            await self._client.patch(SECRET, key, patch)


def _namespace(name: str) -> JsonObject:
    annotations = {marks.ROLE: "extension", _NAME: name}
    return manifest("v1", "Namespace", virtual_namespace(name), annotations=annotations)
