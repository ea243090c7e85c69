"""The operator's process on a cluster in which a Garden comes up without root."""

import asyncio
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, SECRET, SERVICE, SERVICE_ACCOUNT
from pergola.api.objects import (
    JsonObject,
    JsonValue,
    labels_of,
    maps_at,
    name_of,
)
from pergola.api.operator_config import API_VERSION, KIND, configuration_from
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.resource_manager.virtual import BOOTSTRAP
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.operator.app import serve
from pergola.operator.virtual_cluster import Reach
from pergola.resource_manager.registration import garden_webhooks
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup
from pergola.sandbox.directory import write
from pergola.sandbox.simulated import Site
from pergola.shipped import CHARTS, EXAMPLES
from pergola.testing.crds import install_operator_crds
from tests.support.operator_chart import ACCOUNT, OperatorChart
from tests.support.service_accounts import request_token, until_allowed

MANAGED: Final = "managed-by=secrets-manager,manager-identity=gardener-operator"
"""The labels of the Secrets of the operator's secrets manager."""
CONFIRMED: Final[JsonObject] = {
    "metadata": {"annotations": {"confirmation.gardener.cloud/deletion": "true"}}
}
"""The patch that confirms the deletion of a Garden."""
RECONCILE: Final[JsonObject] = {
    "metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}
}
"""The patch that requests the reconciliation of a Garden."""

_LOOPBACK: Final[JsonValue] = {"bindAddress": "127.0.0.1", "port": 0}
_CHART: Final = CHARTS / "operator"
_PERMISSIONS: Final = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
_MANAGER: Final = "pergola-testing"
_KINDS: Final = (CONFIG_MAP, DEPLOYMENT, ETCD, MANAGED_RESOURCE, SECRET, SERVICE, SERVICE_ACCOUNT)
_EXAMPLE: Final = EXAMPLES / "garden" / "garden.yaml"


@asynccontextmanager
async def operating(
    site: Site, *, reach: Reach | None = None, metrics: Metrics | None = None
) -> AsyncGenerator[None]:
    """Run the operator on a site while the block lasts; fail if it ends before.

    It has the permissions of its chart, and no others.

    Args:
        reach: How it reaches the virtual cluster, if not as the site says.
        metrics: Where it counts.
    """
    kubeconfig = await install_operator(site)
    environment, reach = site.operator_environment, reach or site.reach
    async with operator(kubeconfig, environment, reach=reach, metrics=metrics):
        yield


@asynccontextmanager
async def operator(
    kubeconfig: Path,
    environment: Mapping[str, str],
    *,
    reach: Reach | None = None,
    metrics: Metrics | None = None,
) -> AsyncGenerator[None]:
    """Run the operator on a cluster that serves its kinds, as `operating` does."""
    config = configuration_from(configuration(kubeconfig)).config
    async with TaskGroup() as group:
        serving = serve(config, garden_webhooks, environment, reach=reach, metrics=metrics)
        process = group.create_task(serving)
        yield
        process.cancel()
        with suppress(asyncio.CancelledError):
            await process


def configuration(kubeconfig: Path) -> JsonObject:
    """Return the configuration file of an operator on a cluster."""
    return {
        "apiVersion": API_VERSION,
        "kind": KIND,
        "runtimeClientConnection": {"kubeconfig": str(kubeconfig)},
        "leaderElection": {"leaderElect": False},
        "server": dict.fromkeys(("webhooks", "healthProbes", "metrics"), _LOOPBACK),
        "controllers": {
            "networkPolicy": {"concurrentSyncs": 5},
            "vpaEvictionRequirements": {"concurrentSyncs": 5},
        },
    }


async def install_operator(site: Site) -> Path:
    """Install the kinds and the permissions of the operator; return its kubeconfig."""
    await install_operator_crds(site.client)
    return await _kubeconfig(site)


async def _kubeconfig(site: Site) -> Path:
    """Return a kubeconfig of the operator's ServiceAccount, which gets the chart's permissions."""
    chart = await asyncio.to_thread(OperatorChart.rendered, _CHART)
    for kind in _PERMISSIONS:
        for obj in chart.of(kind):
            await site.client.apply(obj, manager=_MANAGER, force=True)
    admin = load(site.sandbox.kubeconfig)
    token = await request_token(admin, ACCOUNT.namespace, ACCOUNT.name)
    async with Client.connect(replace(admin, credentials=StaticToken(token))) as operator:
        await until_allowed(operator, SECRET, ACCOUNT.namespace)
        await until_allowed(operator, GARDEN)
    found = parse(site.sandbox.kubeconfig.read_text())
    assert isinstance(found, dict)
    path = site.directory / "operator.kubeconfig"
    users: list[JsonValue] = [
        {**user, "user": {"token": token}} for user in maps_at(found, "users")
    ]
    write(path, dump({**found, "users": users}))
    return path


def example() -> JsonObject:
    """Return the Garden of the examples."""
    garden = parse(_EXAMPLE.read_text())
    assert isinstance(garden, dict)
    return garden


async def contents(client: Client) -> dict[str, object]:
    """Return all objects of the garden without their status."""
    found: dict[str, object] = {}
    for kind in _KINDS:
        for obj in await client.list(kind, "garden"):
            metadata = {"labels": labels_of(obj), "uid": obj["metadata"]["uid"]}
            parts = {name: obj.get(name) for name in ("spec", "data")}
            found[f"{kind.kind} {name_of(obj)}"] = {**metadata, **parts}
    # The certificate of the bootstrap goes with the next reconciliation.
    return {name: each for name, each in found.items() if BOOTSTRAP not in name}


async def managed_secrets(client: Client) -> list[str]:
    """Return the names of all Secrets of the operator's secrets manager."""
    return [name_of(secret) for secret in await client.list(SECRET, "garden", labels=MANAGED)]
