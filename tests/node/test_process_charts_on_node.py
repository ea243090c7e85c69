"""Helm installs, upgrades, rolls back and removes the other processes on a real node.

One test runs all of them side by side, because they mostly wait for probes.
"""

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pergola.admission.configurations import configuration_keys
from pergola.api.kinds import (
    CONFIG_MAP,
    LEASE,
    NAMESPACE,
    NETWORK_POLICY,
    POD,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
)
from pergola.api.objects import GroupVersionKind, JsonObject, Key, name_of
from pergola.kube.client import Client
from pergola.kube.errors import ApiError
from pergola.manifests import manifest
from pergola.operator.extension.runtime import PRIORITY_CLASS
from pergola.runtime.task_group import TaskGroup
from pergola.sandbox import Sandbox
from pergola.sandbox.helm import helm, render
from pergola.testing.crds import install_extension_crds, install_garden_extension_crds
from pergola.testing.namespaces import clear_namespace, create_namespace
from pergola.testing.waiting import PATIENCE, until, until_gone
from tests.support import cluster_api
from tests.support.admission_site import write_pair
from tests.support.charts import ALL_CHARTS, ChartCase, with_image
from tests.support.previous_chart import previous_chart

pytestmark = [
    pytest.mark.soak("node"),
    pytest.mark.node,
    pytest.mark.timeout(900),
]  # Helm and the image may have to be built

PRIORITY: Final = "gardener-system-900"
"""The PriorityClass of extensions, which exists on every Seed."""
CERTIFICATE: Final = "pergola-dashboard-tls"
VALUES: Final = with_image({"replicas": 1, "networkPolicy": {"enabled": True}})
STAYS: Final = (CONFIG_MAP, LEASE, SECRET, SERVICE, SERVICE_ACCOUNT)
"""Kinds of objects that could be left in a namespace."""


class Case(NamedTuple):
    """A chart.

    Attributes:
        change: values of another configuration.
        argument: the argument of the process with these values.
        lease: the Lease of the leader; empty if all replicas work.
        left: objects of the process that Helm does not know; the notes of the chart name them.
    """

    chart: ChartCase
    change: JsonObject
    argument: str
    lease: str = ""
    left: frozenset[tuple[str, str]] = frozenset()


def process(chart: str, argument: str, change: JsonObject, *, lease: str = "") -> Case:
    """Return a process that only writes the Lease of its leader."""
    (found,) = (each for each in ALL_CHARTS if each.name == chart)
    return Case(found, change, argument, lease, frozenset({("Lease", lease)} if lease else ()))


def extension(chart: str, name: str, *secrets: str) -> Case:
    """Return an extension, which also has a heartbeat and perhaps certificates."""
    argument = "--log-level=debug"
    case = process(chart, argument, {"extraArgs": [argument]}, lease=f"{name}-leader-election")
    more = {("Lease", "gardener-extension-heartbeat"), *(("Secret", each) for each in secrets)}
    return case._replace(left=case.left | more)


CASES: Final = (
    process("dashboard", "--name=another", {"clusterName": "another"}),
    process(
        "infra-manager",
        "--name=another",
        {"managerName": "another"},
        lease="pergola-infra-manager",
    ),
    extension("networking-calico", "networking-calico"),
    extension(
        "networking-cilium", "networking-cilium", "gardener-extension-networking-cilium-webhooks"
    ),
    extension("extension-aws", "provider-aws"),
)


@pytest.fixture
async def cluster(node_client: Client) -> AsyncIterator[Client]:
    """Yield the node's cluster with the kinds that the processes read and a Seed's priority."""
    await install_extension_crds(node_client)
    await install_garden_extension_crds(node_client)
    definitions = await cluster_api.aws_provider_crds()
    await cluster_api.install(node_client, cluster_api.cluster_crd(), *definitions)
    priority = manifest(PRIORITY_CLASS.api_version, PRIORITY_CLASS.kind, PRIORITY, value=900)
    await node_client.create(priority)
    yield node_client
    await node_client.delete(PRIORITY_CLASS, Key("", PRIORITY))


async def test_helm_installs_upgrades_and_removes_each_process(
    cluster: Client, node_sandbox: Sandbox, tmp_path: Path
) -> None:
    async with TaskGroup() as group:
        for case in CASES:
            group.create_task(
                check_life(cluster, node_sandbox, case, tmp_path), name=case.chart.name
            )


async def check_life(client: Client, sandbox: Sandbox, case: Case, folder: Path) -> None:
    """Upgrade a release of the previous chart, roll it back and forth, and remove it."""
    async with isolated(client, case.chart.name) as namespace:
        await create_certificate(client, namespace, folder / case.chart.name)
        release = Release(client, sandbox.kubeconfig, case, namespace)
        before = await release.there()
        previous = await asyncio.to_thread(
            previous_chart, case.chart.name, folder / case.chart.name
        )
        await release.install(previous, VALUES)

        await release.upgrade({**VALUES, **case.change})
        upgraded = await release.works()
        found = await client.get(POD, upgraded)
        assert case.argument in found["spec"]["containers"][0]["args"]

        await release.roll_back(to=1)
        await until_gone(client, POD, upgraded)
        await release.roll_back("--wait", to=2)
        await release.works()

        await release.remove()
        assert await release.there() - before == case.left
        for gvk, key in configuration_keys(f"gardener-extension-{case.chart.name}"):
            await until_gone(client, gvk, key)


@asynccontextmanager
async def isolated(client: Client, chart: str) -> AsyncGenerator[str]:
    """Yield a namespace that admits only pods without privileges and denies all traffic."""
    name = await create_namespace(client, chart)
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    await client.patch(NAMESPACE, Key("", name), {"metadata": {"labels": labels}})
    spec = {"podSelector": {}, "policyTypes": ["Ingress", "Egress"]}
    await client.create(
        manifest(
            NETWORK_POLICY.api_version, NETWORK_POLICY.kind, "deny-all", namespace=name, spec=spec
        )
    )
    yield name
    await clear_namespace(client, name)


async def create_certificate(client: Client, namespace: str, folder: Path) -> None:
    """Create the Secret that an administrator provides for the dashboard; the others ignore it."""
    await asyncio.to_thread(folder.mkdir)
    await asyncio.to_thread(write_pair, folder)
    data = {name: (folder / name).read_text() for name in ("tls.crt", "tls.key")}
    secret = manifest("v1", "Secret", CERTIFICATE, namespace=namespace, stringData=data)
    await client.create(secret)


class Release(NamedTuple):
    """The installation of a chart in a separate namespace."""

    client: Client
    kubeconfig: Path
    case: Case
    namespace: str

    async def upgrade(self, values: JsonObject) -> None:
        """Upgrade to the chart with these values, and return when its pod is ready."""
        chart = str(self.case.chart.folder)
        await self._helm("upgrade", "it", chart, "--wait", "--timeout", "5m", values=values)

    async def install(self, chart: Path, values: JsonObject) -> None:
        """Install another chart; its pods need not become ready."""
        await self._helm("install", "it", str(chart), values=values)

    async def roll_back(self, *options: str, to: int) -> None:
        """Return to a revision of the release."""
        await self._helm("rollback", "it", str(to), "--timeout", "5m", *options)

    async def works(self) -> Key:
        """Wait until the pod leads and has read everything that it watches, and return its key."""
        pods = await self.client.list(POD, self.namespace, metadata_only=True)
        (pod,) = (Key.of(each) for each in pods if "deletionTimestamp" not in each["metadata"])
        if self.case.lease:
            lease = Key(self.namespace, self.case.lease)
            await until(self.client, LEASE, lease, lambda obj: is_held_by(obj, pod.name))
        path = f"/api/v1/namespaces/{self.namespace}/pods/{pod.name}"
        async with asyncio.timeout(PATIENCE):
            while b"controllers start" not in await self.client.get_raw(f"{path}/log"):
                await self.client.get_raw("/version")
            while not await self._is_ready(f"{path}:8081/proxy/readyz"):
                await self.client.get_raw("/version")
        assert b"orbidden" not in await self.client.get_raw(f"{path}/log")
        return pod

    async def remove(self) -> None:
        """Uninstall the chart, and return when its objects are gone."""
        await self._helm("uninstall", "it", "--wait")
        chart, namespace = self.case.chart.folder, self.namespace
        for obj in await asyncio.to_thread(render, chart, VALUES, namespace=namespace):
            await until_gone(self.client, GroupVersionKind.of(obj), Key.of(obj))

    async def there(self) -> set[tuple[str, str]]:
        """Return the kinds and names of objects that could be left in the namespace."""
        return {
            (gvk.kind, name_of(obj))
            for gvk in STAYS
            for obj in await self.client.list(gvk, self.namespace, metadata_only=True)
        }

    async def _helm(self, *arguments: str, values: JsonObject | None = None) -> None:
        where = ("--namespace", self.namespace, "--kubeconfig", str(self.kubeconfig))
        await asyncio.to_thread(helm, *arguments, *where, values=values)

    async def _is_ready(self, path: str) -> bool:
        try:
            await self.client.get_raw(path)
        except ApiError:
            return False
        return True


def is_held_by(lease: JsonObject, pod: str) -> bool:
    return str(lease["spec"].get("holderIdentity")).startswith(f"{pod}_")
