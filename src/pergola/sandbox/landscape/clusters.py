"""The clusters of a landscape: that of the Garden, and one for each Seed."""

import asyncio
import base64
import tempfile
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path, PurePath
from typing import Final
from urllib.parse import urlsplit

from pergola.api.kinds import NODE, SECRET
from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of
from pergola.charts import ChartReference
from pergola.kube.client import Client
from pergola.kube.kubeconfig import parse_cluster
from pergola.kube.yaml import parse
from pergola.manifests import manifest
from pergola.sandbox import binaries
from pergola.sandbox.aws.environment import variables
from pergola.sandbox.components import SCHEDULER
from pergola.sandbox.landscape.objects import FOLDER, MANAGER, ONE_ZONE, apply_all, documents
from pergola.sandbox.on_demand import (
    AWS_PROVIDER,
    GARDENER_CONTROL_PLANE,
    GARDENER_RESOURCE_MANAGER,
    GARDENLET,
    GARDENLET_CHART,
    HELM,
    LANDSCAPE,
    LOCAL_PROVIDER,
    MACHINE_CONTROLLER_AWS,
    MACHINE_CONTROLLER_MANAGER,
    PROVIDER_AWS_CHART,
    PROVIDER_LOCAL_CHART,
    SEED_AGENT,
)
from pergola.sandbox.process_node import (
    OWN_RESOURCE_MANAGER,
    NodeSettings,
    Programs,
    built_program,
)
from pergola.sandbox.progress import Progress, silent
from pergola.sandbox.registry import Registry, registry
from pergola.sandbox.seed_node import NodeSite, PublicServer, seed_node
from pergola.sandbox.simulated import Site, SiteSettings, garden_site
from pergola.sandbox.simulated.reported import ReportedTypes
from pergola.shipped import CHARTS, EXAMPLES

_LOCAL: Final = frozenset({"local"})
_REPORTED: Final = dict.fromkeys(
    (
        *("BackupBucket", "BackupEntry", "DNSRecord", "Infrastructure", "Network"),
        *("OperatingSystemConfig", "ControlPlane", "Worker"),
    ),
    _LOCAL,
)
_ACCESS: Final = Key("garden", "gardener")
_BY_PROVIDER_LOCAL: Final = ("ControlPlane", "Infrastructure", "OperatingSystemConfig", "Worker")
_CLUSTERS: Final = ("runtimeCluster", "virtualCluster")
_BACKUPS: Final = "backups"
_AWS: Final = "pergola-aws"
_ALSO: Final = {"ControlPlane": "controlPlanes", "Worker": "workers"}
_ORIGINALS: Final = {
    "provider-aws": (AWS_PROVIDER, PROVIDER_AWS_CHART),
    "provider-local": (LOCAL_PROVIDER, PROVIDER_LOCAL_CHART),
}
_OF_MACHINES: Final = (SCHEDULER, MACHINE_CONTROLLER_MANAGER)
_ZONE: Final = "topology.kubernetes.io/zone"
# For documentation (RFC 5737). Loopback addresses are not allowed in Endpoints.
_API_SERVER: Final = "192.0.2.2"


@dataclass(frozen=True)
class Landscape:
    """The clusters of a landscape, while they serve.

    Attributes:
        name: the beginning of the names of its sandboxes.
        garden: the runtime cluster of the Garden; the caller runs the operator there.
        charts: a registry.
        chart: of gardenlet, in this registry.
        directory: of the operator's charts, and of the backups of Seeds.
        aws: the URL of an AWS in which the machines of Shoots are started; empty for none.
    """

    name: str
    garden: Site
    charts: Registry
    chart: ChartReference
    directory: Path
    aws: str = ""

    @property
    def operator_environment(self) -> dict[str, str]:
        """The variables of the operator, which renders charts."""
        helm = str(binaries.find((HELM,))[HELM])
        cache = str(self.directory / "charts")
        return {
            **self.garden.operator_environment,
            "PERGOLA_HELM": helm,
            "PERGOLA_CHART_CACHE": cache,
        }

    async def install(self, extension: str, variables: Mapping[str, str]) -> Key:
        """Create one of the Extensions of the examples, with its charts; return its key.

        Pergola's extension also serves control planes and workers in AWS, as the only one in a
        landscape.

        Args:
            extension: the name of a file, without its ending.
            variables: the environment of the extension, in addition to its own.
        """
        obj = await self.extension(extension, variables)
        if extension == _AWS:
            values = map_at(obj, "spec", "deployment", "extension", "values")
            for kind, value in _ALSO.items():
                obj["spec"]["resources"].append({"kind": kind, "type": "aws"})
                values[value] = {"enabled": True}
        await apply_all(self.garden.client, obj)
        return Key.of(obj)

    async def extension(self, name: str, variables: Mapping[str, str]) -> JsonObject:
        """Return one of the Extensions of the examples for this landscape, and push its charts.

        Args:
            name: of a file, without its ending.
            variables: the environment of the extension, in addition to its own.
        """
        [obj] = documents(EXAMPLES / "extensions" / f"{name}.yaml")
        deployment = map_at(obj, "spec", "deployment")
        admission = map_at(deployment, "admission")
        for part in (deployment["extension"], *map(admission.get, _CLUSTERS)):
            if part is not None:
                repository = map_at(part, "helm", "ociRepository")
                repository["ref"] = str(await self._push(str(repository["ref"])))
        more = [{"name": variable, "value": value} for variable, value in variables.items()]
        for field in ("values", "runtimeClusterValues"):
            values = deployment["extension"].setdefault(field, {})
            values["env"] = [*maps_at(values, "env"), *more]
        return obj

    async def install_original(self, name: str) -> Key:
        """Create the Extension of one of the original's providers; return its key.

        Args:
            name: `provider-aws` or `provider-local`.

        Raises:
            SandboxError: it cannot be built.
        """
        module, packed = _ORIGINALS[name]
        programs = (*module.parts, MACHINE_CONTROLLER_MANAGER)
        found = await asyncio.to_thread(binaries.find, programs)
        chart = await self.charts.push(found[packed], module.version.removeprefix("v"))
        [obj] = documents(FOLDER / f"{name}.yaml")
        helm = map_at(obj, "spec", "deployment", "extension", "helm")
        helm["ociRepository"] = {"ref": str(chart)}
        await apply_all(self.garden.client, obj)
        return Key.of(obj)

    async def _push(self, reference: str) -> ChartReference:
        """Push the chart of Pergola that a reference to another registry names."""
        name = PurePath(ChartReference.parse(reference).repository).name
        [folder] = (path.parent for path in CHARTS.glob("*/Chart.yaml") if _name(path) == name)
        return await self.charts.push(folder)

    @asynccontextmanager
    async def seed_cluster(
        self,
        name: str = "seed",
        progress: Progress = silent,
        *,
        flags: tuple[str, ...] = (),
        original: bool = False,
        zones: Sequence[str] = ONE_ZONE,
        programs: Programs | None = None,
        provider_local: bool = False,
    ) -> AsyncGenerator[Site]:
        """Start a cluster for a Seed, and stop it with all control planes when the block ends.

        Args:
            flags: more flags of its API server.
            original: run the original's resource managers in place of Pergola's.
            zones: of its nodes, `ONE_ZONE` or `ZONES`.
            programs: more programs of its nodes.
            provider_local: run provider-local, which is installed, in place of its stand-in.

        Raises:
            SandboxError: the sandbox cannot be started.
        """
        machines = provider_local or bool(self.aws)
        node = NodeSettings(
            namespace=None,
            more=(
                GARDENLET,
                *((GARDENER_RESOURCE_MANAGER,) if original else ()),
                *(LOCAL_PROVIDER.packages if provider_local else ()),
                *(_OF_MACHINES if machines else ()),
            ),
            own={
                **({} if original else OWN_RESOURCE_MANAGER),
                **await asyncio.to_thread(_driver, self.aws),
                **(programs or {}),
            },
            beyond=self.garden.node.resolve_public,
        )
        settings = SiteSettings(
            node=node,
            flags=flags,
            reported=_reported(provider_local=provider_local),
            backups=self.directory / _BACKUPS,
            machines=machines,
        )
        async with garden_site(f"{self.name}-{name}", progress, settings) as site:
            await _prepare(site.client, zones)
            yield site

    @asynccontextmanager
    async def seed_node(
        self, name: str = "seed", progress: Progress = silent, *, flags: tuple[str, ...] = ()
    ) -> AsyncGenerator[NodeSite]:
        """Start a cluster with a real node for a Seed, and stop it when the block ends.

        The Garden is reconciled by now.

        Args:
            flags: more flags of its API server.

        Raises:
            SandboxError: the sandbox cannot be started.
        """
        secret = await self.garden.client.get(SECRET, _ACCESS)
        content = base64.b64decode(map_at(secret, "data")["kubeconfig"])
        host = urlsplit(parse_cluster(content, f"Secret {_ACCESS}").server).hostname or ""
        server = PublicServer(host, lambda: self.garden.node.resolve_public(host))
        own, [zone] = f"{self.name}-{name}", ONE_ZONE
        async with seed_node(own, server, zone, _REPORTED, progress, flags=flags) as site:
            yield site


@asynccontextmanager
async def landscape(
    name: str, progress: Progress = silent, *, aws: str = ""
) -> AsyncGenerator[Landscape]:
    """Start the runtime cluster of a Garden and a registry, and stop them when the block ends.

    Args:
        aws: the URL of an AWS in which the machines of Shoots are started, if not empty.

    Raises:
        SandboxError: one cannot be started, or a program cannot be built.
    """
    found = await asyncio.to_thread(binaries.find, LANDSCAPE, progress)
    node = NodeSettings(
        namespace=None,
        more=(*GARDENER_CONTROL_PLANE, GARDENLET, *(_OF_MACHINES if aws else ())),
        own={**OWN_RESOURCE_MANAGER, **await asyncio.to_thread(_driver, aws)},
    )
    settings = SiteSettings(
        node=node, reported={**_REPORTED, "Extension": None}, machines=bool(aws)
    )
    with tempfile.TemporaryDirectory(prefix="pergola-landscape-") as folder:
        directory = Path(folder)
        async with (
            registry(directory) as charts,
            garden_site(f"{name}-garden", progress, settings) as garden,
        ):
            await _prepare(garden.client, ONE_ZONE)
            number = SEED_AGENT.version.removeprefix("v")
            chart = await charts.push(found[GARDENLET_CHART], number)
            yield Landscape(name, garden, charts, chart, directory, aws)


def _driver(aws: str) -> Programs:
    """Return the driver of machines in the AWS at this URL; nothing if it is empty."""
    return in_aws(aws, MACHINE_CONTROLLER_AWS) if aws else {}


def in_aws(url: str, *names: str) -> Programs:
    """Return programs that use the AWS at a URL.

    Raises:
        SandboxError: one cannot be built.
    """
    built = binaries.find(names)
    programs = {name: built_program(name, built[name]) for name in names}
    given = [f"{name}={value}" for name, value in variables(url).items()]
    return {
        name: program._replace(line=("/usr/bin/env", *given, *program.line))
        for name, program in programs.items()
    }


def _reported(*, provider_local: bool) -> ReportedTypes:
    served = _BY_PROVIDER_LOCAL if provider_local else ()
    return {kind: types - _LOCAL if kind in served else types for kind, types in _REPORTED.items()}


async def _prepare(client: Client, zones: Sequence[str]) -> None:
    """Label the nodes with their zone, and publish an address of the API server, for gardenlet."""
    nodes = sorted(map(name_of, await client.list(NODE, metadata_only=True)))
    for node, zone in zip(nodes, cycle(zones), strict=False):
        await client.patch(NODE, Key("", node), {"metadata": {"labels": {_ZONE: zone}}})
    await client.apply(_endpoints(), manager=MANAGER, force=True)


def _endpoints() -> JsonObject:
    subset = {
        "addresses": [{"ip": _API_SERVER}],
        "ports": [{"name": "https", "port": 443, "protocol": "TCP"}],
    }
    return manifest("v1", "Endpoints", "kubernetes", namespace="default", subsets=[subset])


def _name(chart: Path) -> str:
    document = parse(chart.read_bytes())
    return str(document["name"]) if isinstance(document, dict) else ""
