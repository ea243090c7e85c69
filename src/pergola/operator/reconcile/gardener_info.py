"""The ConfigMap with which users of the virtual cluster identify its Gardener (spec 20 §16.2).

It contains the version, and the issuer of workload identity tokens. All authenticated users may
read it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from typing import Final

import orjson

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key, map_at
from pergola.bundle.versions import Version, VersionError
from pergola.flow import Graph, Retry
from pergola.garden.components import authorities, task_names, workload_identity
from pergola.garden.components.gardener_apiserver import GARDENER_APISERVER
from pergola.garden.components.gardener_apiserver import NAME as API_SERVER
from pergola.garden.components.virtual_system import PUBLIC
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.kube.client import Client
from pergola.kube.credentials import Anonymous
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import ClusterConfig
from pergola.manifests import manifest
from pergola.operator.run.direct import MANAGER
from pergola.operator.run.run import Run

TASK: Final = "Deploy gardener-info ConfigMap"

_KEY: Final = "gardenerAPIServer"
_ANSWER_SECONDS: Final = 5.0
_UNSTAMPED: Final = Version(0, 0, 0)

AskVersion = Callable[[Landscape], Awaitable[str]]
"""Returns the version of the running gardener-apiserver, or empty if it is unknown."""


def gardener_info(landscape: Landscape, version: str) -> JsonObject:
    """Return the ConfigMap for this version of Gardener."""
    issuer = workload_identity.issuer(landscape)
    text = f"version: {version}\nworkloadIdentityIssuerURL: {issuer}\n"
    return manifest("v1", "ConfigMap", "gardener-info", namespace=PUBLIC, data={_KEY: text})


async def served_version(landscape: Landscape) -> str:
    """Return the version that gardener-apiserver reports.

    Empty if it is unreachable from here, or was built without a version.
    """
    config = ClusterConfig(
        server=f"https://{API_SERVER}.{NAMESPACE}.svc",
        ca=landscape.credentials.bundle(authorities.GARDENER).data["bundle.crt"],
        insecure=False,
        tls_server_name=None,
        proxy_url=None,
        credentials=Anonymous(),
        namespace=NAMESPACE,
        context=API_SERVER,
    )
    try:
        async with asyncio.timeout(_ANSWER_SECONDS), Client.connect(config) as client:
            version = str(orjson.loads(await client.get_raw("/version"))["gitVersion"])
            return version if Version.parse(version) > _UNSTAMPED else ""
    except (KubeError, VersionError, TimeoutError, ValueError, KeyError):
        return ""


async def deploy(virtual: Client, landscape: Landscape, ask: AskVersion = served_version) -> None:
    """Write the ConfigMap to the virtual cluster, if it differs.

    If the server does not report its version, that of the images is used.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    desired = gardener_info(landscape, await ask(landscape) or landscape.gardener_version)
    live = await virtual.find(CONFIG_MAP, Key.of(desired))
    if live is None or map_at(live, "data").get(_KEY) != desired["data"][_KEY]:
        await virtual.apply(desired, manager=MANAGER, force=True)


def add_gardener_info_task(graph: Graph, run: Run) -> None:
    """Add the task that writes the ConfigMap.

    It is retried, because the resource manager of the virtual cluster may not have created its
    namespace yet.
    """

    async def write() -> None:
        await deploy(await run.virtual_client(), run.current())

    graph.add(
        TASK,
        write,
        after=[GARDENER_APISERVER.ready, task_names.CONNECTION],
        retry=Retry.every(1),
        timeout=30,
    )
