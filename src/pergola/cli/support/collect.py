"""What support needs to see of a cluster: objects, Events, logs and versions, not yet masked."""

from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass, field
from typing import Final
from urllib.parse import urlencode

from pergola.api.kinds import CONFIG_MAP, CRD, DEPLOYMENT, EVENT, LEASE, NAMESPACE, POD, SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.cli.processes import Process, processes
from pergola.dashboard.state.kinds import WATCHED
from pergola.extension_api.cluster import CLUSTER
from pergola.kube.client import Client
from pergola.kube.errors import Forbidden, KubeError, NotFound, UnknownKind
from pergola.kube.selectors import format_selector

_ADMISSION: Final = "admissionregistration.k8s.io"
_WEBHOOKS: Final = (
    GroupVersionKind(_ADMISSION, "v1", "MutatingWebhookConfiguration"),
    GroupVersionKind(_ADMISSION, "v1", "ValidatingWebhookConfiguration"),
)
_NODES: Final = "kube-node-lease"
_EVENTS: Final = 2_000


@dataclass
class Collected:
    """What was read, and what was not.

    Attributes:
        objects: by the name of their file.
        logs: by the name of their file.
        missing: one sentence for each thing that could not be read.
    """

    objects: dict[str, list[JsonObject]] = field(default_factory=dict)
    logs: dict[str, str] = field(default_factory=dict)
    processes: list[Process] = field(default_factory=list)
    missing: list[str] = field(default_factory=list)


class Collector:
    """Reads a namespace, or the whole cluster.

    Args:
        namespace: None for all.
        log_lines: the number of lines of each container's log.
    """

    def __init__(self, client: Client, namespace: str | None, log_lines: int) -> None:
        self._client = client
        self._namespace = namespace
        self._log_lines = log_lines
        self.found = Collected()

    async def collect(self) -> Collected:
        """Read everything except Secrets, one kind after another."""
        for gvk in (*WATCHED, CLUSTER):
            await self._add("objects", gvk)
        for gvk in (*_WEBHOOKS, NAMESPACE):
            await self._add("cluster", gvk)
        await self._add("cluster", CRD, metadata_only=True)
        await self._add("cluster", LEASE, keep=_is_not_of_node)
        await self._add("cluster", EVENT, newest=_EVENTS)
        await self._processes()
        return self.found

    async def secrets(self) -> list[JsonObject]:
        """Return the Secrets of the whole cluster.

        Raises:
            KubeError: They cannot be listed.
        """
        return await self._client.list(SECRET)

    async def _add(
        self,
        folder: str,
        gvk: GroupVersionKind,
        *,
        metadata_only: bool = False,
        keep: Callable[[JsonObject], bool] | None = None,
        newest: int = 0,
    ) -> None:
        try:
            resource = await self._client.resource(gvk)
            namespace = self._namespace if resource.namespaced else None
            objects = await self._client.list(gvk, namespace, metadata_only=metadata_only)
        except UnknownKind:
            return
        except KubeError as error:
            self.found.missing.append(_unread(str(gvk.group_kind), error))
            return
        chosen = [obj for obj in objects if keep is None or keep(obj)]
        if newest:
            chosen = sorted(chosen, key=_time)[-newest:]
        if chosen:
            self.found.objects[f"{folder}/{gvk.group_kind}.yaml"] = chosen

    async def _processes(self) -> None:
        try:
            found = self.found.processes = await processes(self._client, self._namespace)
        except KubeError as error:
            unread = _unread("Deployment.apps", error)
            self.found.missing.append(f"{unread}, so there are no logs")
            return
        for process in found:
            try:
                await self._process(process)
            except NotFound:
                continue
            except KubeError as error:
                self.found.missing.append(f"process {process.key}: {error}")

    async def _process(self, process: Process) -> None:
        key = process.key
        folder = f"processes/{key.namespace}/{key.name}"
        deployment = await self._client.get(DEPLOYMENT, key)
        selector = format_selector(process.selector)
        pods = await self._client.list(POD, key.namespace, labels=selector)
        maps = [each async for each in self._config_maps(key.namespace, deployment)]
        self.found.objects[f"{folder}.yaml"] = [deployment, *pods, *maps]
        for pod in pods:
            await self._logs(folder, pod)

    async def _config_maps(
        self, namespace: str, deployment: JsonObject
    ) -> AsyncIterator[JsonObject]:
        for name in sorted(set(_mounted(deployment))):
            try:
                yield await self._client.get(CONFIG_MAP, Key(namespace, name))
            except KubeError as error:
                self.found.missing.append(f"ConfigMap {namespace}/{name}: {error}")

    async def _logs(self, folder: str, pod: JsonObject) -> None:
        resource, key = await self._client.resource(POD), Key.of(pod)
        for container, previous in _logged(pod):
            query: dict[str, str | int] = {"container": container, "tailLines": self._log_lines}
            if previous:
                query["previous"] = "true"
            name = f"{folder}/{key.name}/{container}{'-previous' if previous else ''}.log"
            try:
                path = f"{resource.item(key)}/log?{urlencode(query)}"
                text = await self._client.get_raw(path)
            except KubeError as error:
                self.found.missing.append(f"log of pod {key}, container {container}: {error}")
            else:
                self.found.logs[name] = text.decode(errors="replace")


def _unread(kind: str, error: KubeError) -> str:
    if isinstance(error, Forbidden):
        return f"you may not list {kind}"
    return f"{kind} cannot be listed: {error}"


def _is_not_of_node(lease: JsonObject) -> bool:
    return Key.of(lease).namespace != _NODES


def _time(event: JsonObject) -> str:
    last = map_at(event, "series").get("lastObservedTime") or event.get("eventTime")
    return str(last or event.get("deprecatedLastTimestamp") or "")


def _mounted(deployment: JsonObject) -> Iterator[str]:
    for volume in maps_at(deployment, "spec", "template", "spec", "volumes"):
        name = map_at(volume, "configMap").get("name")
        if name:
            yield str(name)


def _logged(pod: JsonObject) -> Iterator[tuple[str, bool]]:
    """Yield the containers of a pod, and whether it is about their last run."""
    for status in (
        *maps_at(pod, "status", "initContainerStatuses"),
        *maps_at(pod, "status", "containerStatuses"),
    ):
        yield str(status.get("name")), False
        if status.get("restartCount"):
            yield str(status.get("name")), True
