"""A Gardener landscape on this machine: a Garden, Seeds in clusters of their own, and Shoots.

Gardener's control plane and gardenlet are the original's programs. The caller runs the operator;
Pergola is the resource manager of every cluster. All nodes are simulated.
"""

import asyncio
import base64
import io
import tarfile
import tempfile
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass
from itertools import cycle
from pathlib import Path, PurePath
from typing import Final
from urllib.parse import urlsplit

from pergola.api.kinds import NODE, SECRET, SHOOT
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    generation_of,
    map_at,
    maps_at,
    name_of,
)
from pergola.charts import ChartReference
from pergola.kube import states
from pergola.kube.client import Client
from pergola.kube.kubeconfig import parse_cluster
from pergola.kube.patches import apply_merge_patch
from pergola.kube.yaml import parse, parse_documents
from pergola.manifests import manifest
from pergola.sandbox import binaries
from pergola.sandbox.components import SCHEDULER
from pergola.sandbox.module import kubernetes_version
from pergola.sandbox.on_demand import (
    GARDENER_CONTROL_PLANE,
    GARDENER_RESOURCE_MANAGER,
    GARDENLET,
    GARDENLET_CHART,
    HELM,
    LANDSCAPE,
    LOCAL_PROVIDER,
    MACHINE_CONTROLLER_MANAGER,
    PROVIDER_LOCAL_CHART,
    SEED_AGENT,
)
from pergola.sandbox.process_node import OWN_RESOURCE_MANAGER, NodeSettings, Programs
from pergola.sandbox.progress import Progress, silent
from pergola.sandbox.registry import Registry, registry
from pergola.sandbox.seed_node import NodeSite, PublicServer, seed_node
from pergola.sandbox.simulated import Site, SiteSettings, garden_site
from pergola.sandbox.simulated.reported import ReportedTypes
from pergola.shipped import CHARTS, EXAMPLES

_MANAGER: Final = "pergola-sandbox"
_INTERVAL: Final = 1.0
_TOKEN_SECONDS: Final = 3600
_FOLDER: Final = EXAMPLES / "landscape"
_LOCAL: Final = frozenset({"local"})
_REPORTED: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(
        (
            *("BackupBucket", "BackupEntry", "DNSRecord", "Infrastructure", "Network"),
            "OperatingSystemConfig",
        ),
        _LOCAL,
    ),
    "ControlPlane": _LOCAL,
    "Worker": _LOCAL | {"aws"},
}
_ACCESS: Final = Key("garden", "gardener")
_BY_PROVIDER_LOCAL: Final = ("ControlPlane", "Infrastructure", "OperatingSystemConfig", "Worker")
_CLUSTERS: Final = ("runtimeCluster", "virtualCluster")
_BACKUPS: Final = "backups"
_STAND_IN: Final = "local-workers"
_AWS: Final = "pergola-aws"
_MADE_BY_PROVIDER_LOCAL: Final = (
    SCHEDULER,
    *LOCAL_PROVIDER.packages,
    MACHINE_CONTROLLER_MANAGER,
)
_ZONE: Final = "topology.kubernetes.io/zone"
ONE_ZONE: Final = ("local",)
ZONES: Final = ("local-a", "local-b", "local-c")
# For documentation (RFC 5737). Loopback addresses are not allowed in Endpoints.
_API_SERVER: Final = "192.0.2.2"
# gardenlet requires that an extension is installed; the sandbox itself reports for its kinds.
_CHART: Final = {
    "local/Chart.yaml": "apiVersion: v2\nname: local\nversion: 1.0.0\n",
    "local/templates/installed.yaml": "apiVersion: v1\nkind: ConfigMap\nmetadata:\n"
    "  name: provider-local\n  namespace: {{ .Release.Namespace }}\n",
}


@dataclass(frozen=True)
class Landscape:
    """The clusters of a landscape, while they serve.

    Attributes:
        name: the beginning of the names of its sandboxes.
        garden: the runtime cluster of the Garden; the caller runs the operator there.
        charts: a registry.
        chart: of gardenlet, in this registry.
        directory: of the operator's charts, and of the backups of Seeds.
    """

    name: str
    garden: Site
    charts: Registry
    chart: ChartReference
    directory: Path

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

        Pergola's extension also serves control planes in AWS, as the only one in a landscape.

        Args:
            extension: the name of a file, without its ending.
            variables: the environment of the extension, in addition to its own.
        """
        [obj] = _documents(EXAMPLES / "extensions" / f"{extension}.yaml")
        if extension == _AWS:
            obj["spec"]["resources"].append({"kind": "ControlPlane", "type": "aws"})
            values = map_at(obj, "spec", "deployment", "extension", "values")
            values["controlPlanes"] = {"enabled": True}
        deployment = map_at(obj, "spec", "deployment")
        admission = map_at(deployment, "admission")
        for part in (deployment["extension"], *map(admission.get, _CLUSTERS)):
            if part is not None:
                repository = map_at(part, "helm", "ociRepository")
                repository["ref"] = str(await self._push(str(repository["ref"])))
        more = [{"name": name, "value": value} for name, value in variables.items()]
        for field in ("values", "runtimeClusterValues"):
            values = deployment["extension"].setdefault(field, {})
            values["env"] = [*maps_at(values, "env"), *more]
        await _apply(self.garden.client, obj)
        return Key.of(obj)

    async def install_provider_local(self) -> Key:
        """Create the Extension of the original's provider-local; return its key.

        Raises:
            SandboxError: it cannot be built.
        """
        programs = (*LOCAL_PROVIDER.parts, MACHINE_CONTROLLER_MANAGER)
        found = await asyncio.to_thread(binaries.find, programs)
        number = LOCAL_PROVIDER.version.removeprefix("v")
        chart = await self.charts.push(found[PROVIDER_LOCAL_CHART], number)
        [obj] = _documents(_FOLDER / "provider-local.yaml")
        helm = map_at(obj, "spec", "deployment", "extension", "helm")
        helm["ociRepository"] = {"ref": str(chart)}
        await _apply(self.garden.client, obj)
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
        node = NodeSettings(
            namespace=None,
            more=(
                GARDENLET,
                *((GARDENER_RESOURCE_MANAGER,) if original else ()),
                *(_MADE_BY_PROVIDER_LOCAL if provider_local else ()),
            ),
            own={**({} if original else OWN_RESOURCE_MANAGER), **(programs or {})},
            beyond=self.garden.node.resolve_public,
        )
        settings = SiteSettings(
            node=node,
            flags=flags,
            reported=_reported(provider_local=provider_local),
            backups=self.directory / _BACKUPS,
            machines=provider_local,
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
async def landscape(name: str, progress: Progress = silent) -> AsyncGenerator[Landscape]:
    """Start the runtime cluster of a Garden and a registry, and stop them when the block ends.

    Raises:
        SandboxError: one cannot be started, or a program cannot be built.
    """
    found = await asyncio.to_thread(binaries.find, LANDSCAPE, progress)
    node = NodeSettings(
        namespace=None, more=(*GARDENER_CONTROL_PLANE, GARDENLET), own=OWN_RESOURCE_MANAGER
    )
    settings = SiteSettings(node=node, reported={**_REPORTED, "Extension": None})
    with tempfile.TemporaryDirectory(prefix="pergola-landscape-") as folder:
        directory = Path(folder)
        async with (
            registry(directory) as charts,
            garden_site(f"{name}-garden", progress, settings) as garden,
        ):
            await _prepare(garden.client, ONE_ZONE)
            number = SEED_AGENT.version.removeprefix("v")
            chart = await charts.push(found[GARDENLET_CHART], number)
            yield Landscape(name, garden, charts, chart, directory)


def _reported(*, provider_local: bool) -> ReportedTypes:
    served = _BY_PROVIDER_LOCAL if provider_local else ()
    return {kind: types - _LOCAL if kind in served else types for kind, types in _REPORTED.items()}


async def _prepare(client: Client, zones: Sequence[str]) -> None:
    """Label the nodes with their zone, and publish an address of the API server, for gardenlet."""
    nodes = sorted(map(name_of, await client.list(NODE, metadata_only=True)))
    for node, zone in zip(nodes, cycle(zones), strict=False):
        await client.patch(NODE, Key("", node), {"metadata": {"labels": {_ZONE: zone}}})
    await client.apply(_endpoints(), manager=_MANAGER, force=True)


def _endpoints() -> JsonObject:
    subset = {
        "addresses": [{"ip": _API_SERVER}],
        "ports": [{"name": "https", "port": 443, "protocol": "TCP"}],
    }
    return manifest("v1", "Endpoints", "kubernetes", namespace="default", subsets=[subset])


async def create_seed(
    garden: Client,
    kubeconfig: bytes | None,
    chart: ChartReference,
    name: str = "local",
    zones: Sequence[str] = ONE_ZONE,
    patch: JsonObject | None = None,
    *,
    provider_local: bool = False,
) -> Key:
    """Create the Gardenlet of a Seed, and what it requires; return its key.

    Args:
        garden: the virtual cluster.
        kubeconfig: of the Seed's cluster; None for the runtime cluster of the Garden.
        chart: of gardenlet.
        zones: of the cluster's nodes.
        patch: a merge patch of the example.
        provider_local: whether provider-local is installed, and registers its kinds itself.
    """
    await register(garden, provider_local=provider_local)
    reference: JsonObject | None = None
    if kubeconfig is not None:
        reference = {"name": f"seed-{name}"}
        access = {"kubeconfig": base64.b64encode(kubeconfig).decode()}
        await _apply(
            garden, manifest("v1", "Secret", f"seed-{name}", namespace="garden", data=access)
        )
    own: JsonObject = {
        "metadata": {"name": name},
        "spec": {
            "config": {"seedConfig": {"spec": {"provider": {"zones": list(zones)}}}},
            "deployment": {"helm": {"ociRepository": {"ref": str(chart)}}},
            "kubeconfigSecretRef": reference,
        },
    }
    [example] = _documents(_FOLDER / "gardenlet.yaml")
    await _apply(garden, apply_merge_patch(apply_merge_patch(example, own), patch or {}))
    return Key("garden", name)


async def register(garden: Client, *, provider_local: bool = False) -> None:
    """Register the kinds that the sandbox answers for, with the credentials of domains.

    Args:
        provider_local: whether provider-local is installed, and registers its kinds itself.
    """
    required = _documents(_FOLDER / "provider.yaml")
    served = {_STAND_IN} if provider_local else set()
    await _apply(garden, _deployment(), *(each for each in required if name_of(each) not in served))


async def create_project(garden: Client) -> None:
    """Create a CloudProfile with the version of Kubernetes that the sandbox runs, and a Project."""
    await _apply(garden, *map(_versioned, _documents(_FOLDER / "project.yaml")))


async def create_shoot(
    garden: Client, patch: JsonObject | None = None, *, example: str = "shoot.yaml"
) -> Key:
    """Create a Shoot, and what it refers to; return its key.

    Args:
        patch: a merge patch of the example.
        example: the name of the file, which ends with the Shoot.
    """
    patched = apply_merge_patch(await create_prerequisites(garden, example), patch or {})
    await garden.create(patched)
    return Key.of(patched)


async def create_prerequisites(garden: Client, example: str) -> JsonObject:
    """Create what a Shoot of the examples refers to; return the Shoot, which is not created.

    Args:
        example: the name of the file, which ends with the Shoot.
    """
    *others, shoot = _documents(_FOLDER / example)
    await _apply(garden, *map(_versioned, others))
    own = {"spec": {"kubernetes": {"version": _kubernetes()}}}
    return apply_merge_patch(shoot, own)


async def admin_kubeconfig(garden: Client, shoot: Key) -> bytes:
    """Return the kubeconfig that Gardener issues to an administrator of a Shoot, for an hour."""
    request: JsonObject = {
        "apiVersion": "authentication.gardener.cloud/v1alpha1",
        "kind": "AdminKubeconfigRequest",
        "spec": {"expirationSeconds": _TOKEN_SECONDS},
    }
    answer = await garden.create_subresource(SHOOT, shoot, "adminkubeconfig", request)
    return base64.b64decode(map_at(answer, "status")["kubeconfig"])


def _kubernetes() -> str:
    return kubernetes_version().removeprefix("v")


def _versioned(obj: JsonObject) -> JsonObject:
    """Return a CloudProfile with the version of Kubernetes that the sandbox runs."""
    if obj["kind"] != "CloudProfile":
        return obj
    versions = {"spec": {"kubernetes": {"versions": [{"version": _kubernetes()}]}}}
    return apply_merge_patch(obj, versions)


def _name(chart: Path) -> str:
    document = parse(chart.read_bytes())
    return str(document["name"]) if isinstance(document, dict) else ""


def _documents(file: Path) -> Iterator[JsonObject]:
    for document in parse_documents(file.read_text()):
        if isinstance(document.value, dict):
            yield document.value


async def _apply(client: Client, *objects: JsonObject) -> None:
    for obj in objects:
        await client.apply(obj, manager=_MANAGER, force=True)


def _deployment() -> JsonObject:
    return manifest(
        "core.gardener.cloud/v1", "ControllerDeployment", "local", helm={"rawChart": _archive()}
    )


def _archive() -> str:
    """Return the chart as a packed archive, in base64."""
    packed = io.BytesIO()
    with tarfile.open(fileobj=packed, mode="w:gz") as archive:
        for path, text in _CHART.items():
            entry = tarfile.TarInfo(path)
            entry.size = len(text)
            archive.addfile(entry, io.BytesIO(text.encode()))
    return base64.b64encode(packed.getvalue()).decode()


@dataclass(frozen=True)
class Reconciliation:
    """A state of an object.

    Attributes:
        obj: the object; empty while it does not exist.
    """

    obj: JsonObject

    @property
    def state(self) -> str:
        """The state of the last operation; empty before the first one."""
        return str(self._operation.get("state") or "")

    @property
    def percent(self) -> int:
        """The progress of the last operation."""
        return int(self._operation.get("progress") or 0)

    @property
    def description(self) -> str:
        """The task that Gardener is running or waiting for."""
        return str(self._operation.get("description") or "")

    @property
    def errors(self) -> list[str]:
        """The errors of the last operation."""
        return [str(each.get("description")) for each in maps_at(self.obj, "status", "lastErrors")]

    @property
    def unmet(self) -> list[str]:
        """The types of conditions that are not true."""
        conditions = maps_at(self.obj, "status", "conditions")
        return [str(each["type"]) for each in conditions if each.get("status") != "True"]

    @property
    def _operation(self) -> JsonObject:
        return map_at(self.obj, "status", "lastOperation")


def is_reconciled(found: Reconciliation) -> bool:
    """Return whether the current specification is reconciled."""
    observed = map_at(found.obj, "status").get("observedGeneration")
    return observed == generation_of(found.obj) and found.state == "Succeeded"


def succeeded(found: Reconciliation) -> bool:
    """Return whether the current specification is reconciled, and all conditions are true."""
    has_conditions = bool(maps_at(found.obj, "status", "conditions"))
    return is_reconciled(found) and has_conditions and not found.unmet


async def following(
    client: Client, kind: GroupVersionKind, key: Key
) -> AsyncGenerator[Reconciliation]:
    """Yield the states of an object until the current specification is reconciled and healthy.

    Raises:
        KubeError: it cannot be read.
    """
    async with aclosing(states.watched(client, kind, key, _INTERVAL)) as objects:
        async for obj in objects:
            found = Reconciliation(obj or {})
            yield found
            if obj and succeeded(found):
                return
