"""A cluster in which a Garden comes up without root.

The control plane of the runtime cluster is that of a sandbox. The etcds, the API server and the
controller manager of the virtual cluster and both resource managers are processes, started from the
pods that the operator's Deployments lead to; kwok simulates all other pods.
"""

import asyncio
import os
import tempfile
from collections.abc import AsyncGenerator, Iterable
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Final

from pergola.api.objects import JsonObject
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.kube.yaml import dump, parse_documents
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.task_group import TaskGroup
from pergola.sandbox import binaries
from pergola.sandbox.cluster import Sandbox, start
from pergola.sandbox.components import KWOK
from pergola.sandbox.directory import remove, root, write
from pergola.sandbox.images.catalogue import named
from pergola.sandbox.module import CALICO_CRDS
from pergola.sandbox.on_demand import GARDENER_APISERVER
from pergola.sandbox.process_node import (
    NodeSettings,
    ProcessNode,
    api_server_flags,
    process_node,
)
from pergola.sandbox.processes import ProcessId
from pergola.sandbox.progress import Progress, silent
from pergola.sandbox.simulated.backups import Backups, copy_task_unit
from pergola.sandbox.simulated.claims import claims_unit
from pergola.sandbox.simulated.etcd_druid import druid_unit
from pergola.sandbox.simulated.load_balancers import load_balancers_unit
from pergola.sandbox.simulated.machines import machines_unit
from pergola.sandbox.simulated.reported import OF_A_GARDEN, ReportedTypes, reporter_unit

NAMESPACE: Final = "garden"

_MANAGER: Final = "pergola-sandbox"
_PREFIX: Final = "site-"
_IP_POOLS: Final = "crd.projectcalico.org_ippools.yaml"
_IMAGES: Final = "images.yaml"
# The objects that the operator's chart installs before the operator runs.
_INSTALLED: Final[tuple[JsonObject, ...]] = (
    {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": NAMESPACE}},
    {
        "apiVersion": "scheduling.k8s.io/v1",
        "kind": "PriorityClass",
        "metadata": {"name": "gardener-garden-system-critical"},
        "value": 999_999_550,
    },
)


@dataclass(frozen=True, kw_only=True)
class SiteSettings:
    """The settings of a cluster.

    Attributes:
        node: those of its node; by default, it runs the pods of the Garden alone.
        flags: more flags of its API server.
        reported: the types of extension resources that are reported as successful, by kind.
        backups: the folder for backups of etcds; None to take none.
        machines: simulate the nodes of Shoots whose machines machine-controller-manager makes.
    """

    node: NodeSettings = field(default_factory=lambda: NodeSettings(namespace=NAMESPACE))
    flags: tuple[str, ...] = ()
    reported: ReportedTypes = field(default_factory=lambda: OF_A_GARDEN)
    backups: Path | None = None
    machines: bool = False


@dataclass(frozen=True)
class Site:
    """A runtime cluster, while it serves.

    Attributes:
        sandbox: its control plane.
        client: the administrator's.
        directory: the files and logs of processes: `garden/<ReplicaSet>/<container>.log`.
        node: runs the pods.
    """

    sandbox: Sandbox
    client: Client
    directory: Path
    node: ProcessNode

    @property
    def proxy(self) -> str:
        """The URL of a proxy to API servers that are Services of it."""
        return self.node.proxy

    def reach(self, config: ClusterConfig) -> ClusterConfig:
        """Return how a program outside the site reaches an API server that is a Service of it."""
        return replace(config, proxy_url=self.proxy)

    @property
    def operator_environment(self) -> dict[str, str]:
        """The variables of an operator on this machine: for its webhooks and image versions."""
        return {
            "WEBHOOK_MODE": "url",
            "WEBHOOK_URL": "127.0.0.1",
            "IMAGEVECTOR_OVERWRITE": str(self.directory / _IMAGES),
        }


@asynccontextmanager
async def garden_site(
    name: str,
    progress: Progress = silent,
    settings: SiteSettings | None = None,
) -> AsyncGenerator[Site]:
    """Start a runtime cluster, and stop it with all its processes when the block ends.

    Args:
        name: of the sandbox.

    Raises:
        SandboxError: the sandbox cannot be started.
    """
    settings = settings or SiteSettings()
    directory = await asyncio.to_thread(_make_directory)
    try:
        flags = (*api_server_flags(directory), *settings.flags)
        sandbox = await start(name, apiserver_flags=flags, progress=progress)
        try:
            async with _serving(sandbox, directory, settings) as site:
                yield site
        finally:
            await sandbox.stop()
    finally:
        await asyncio.to_thread(remove, directory)


def _make_directory() -> Path:
    """Make the directory of a site of this process, and remove those of dead processes."""
    for path in root().glob(f"{_PREFIX}*"):
        _, pid, started, _ = path.name.split("-", 3)
        if not ProcessId(int(pid), int(started)).alive:
            remove(path)
    own = ProcessId.of(os.getpid()) or ProcessId(os.getpid(), 0)
    return Path(tempfile.mkdtemp(prefix=f"{_PREFIX}{own.pid}-{own.started}-", dir=root()))


@asynccontextmanager
async def _serving(
    sandbox: Sandbox, directory: Path, settings: SiteSettings
) -> AsyncGenerator[Site]:
    async with Client.connect(load(sandbox.kubeconfig)) as client:
        for obj in _INSTALLED:
            await client.apply(obj, manager=_MANAGER, force=True)
        write(directory / _IMAGES, dump(_images()))
        volumes = settings.node.volumes or directory / "claims"
        node_settings = replace(settings.node, volumes=volumes)
        async with process_node(client, sandbox.kubeconfig, directory, node_settings) as node:
            backups = Backups(settings.backups, volumes) if settings.backups else None
            units = (
                node.unit,
                druid_unit(client, settings.node.namespace, backups),
                *([copy_task_unit(client, backups)] if backups else []),
                claims_unit(client),
                load_balancers_unit(client),
                reporter_unit(client, settings.reported),
                *(await _machines(client, directory, node.proxy) if settings.machines else ()),
            )
            async with running(units):
                yield Site(sandbox, client, directory, node)


async def _machines(client: Client, directory: Path, proxy: str) -> list[Unit]:
    """Define the kind that provider-local requires; return the unit that simulates nodes."""
    found = await asyncio.to_thread(binaries.find, (KWOK, CALICO_CRDS))
    text = await asyncio.to_thread((found[CALICO_CRDS] / _IP_POOLS).read_text)
    for document in parse_documents(text):
        if isinstance(document.value, dict):
            await client.apply(document.value, manager=_MANAGER, force=True)
    return [machines_unit(client, found[KWOK], directory, proxy)]


@asynccontextmanager
async def running(units: Iterable[Unit]) -> AsyncGenerator[None]:
    """Run units until the block ends."""
    async with TaskGroup() as group:
        tasks = [group.create_task(unit.run()) for unit in units]
        yield
        for task in tasks:
            task.cancel()


def _images() -> JsonObject:
    """Return an image vector with the version of Gardener that the sandbox builds."""
    offers = named([GARDENER_APISERVER])
    images: list[JsonObject] = [
        {"name": offer.name, "repository": offer.repository, "tag": offer.version}
        for offer in offers
    ]
    return {"images": images}
