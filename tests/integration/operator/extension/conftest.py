"""Fixtures: a runtime and a virtual cluster per test process; tests run one after another."""

from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import NamedTuple

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.sandbox import API_ONLY, Sandbox
from pergola.sandbox.components import APISERVER, CONTROLLER_MANAGER, ETCD
from pergola.sandbox.registry import Registry, registry
from pergola.testing.crds import install_garden_extension_crds, install_operator_crds
from pergola.testing.shared import in_thread, private
from tests.support.extension_garden import (
    ExtensionGarden,
    connect_virtual,
    prepare,
    resource_managers,
)
from tests.support.operator_chart import ACCOUNT, OperatorChart
from tests.support.service_accounts import service_account_config, until_granted

CHART = Path(__file__).parents[4] / "charts" / "operator"
GRANTS = ("ServiceAccount", "ClusterRole", "Role", "ClusterRoleBinding", "RoleBinding")


class Sandboxes(NamedTuple):
    """The control planes of both clusters."""

    runtime: Sandbox
    virtual: Sandbox


@pytest.fixture(scope="session")
def sandboxes() -> Iterator[Sandboxes]:
    """Yield both control planes; the runtime cluster has Kubernetes controllers, but no nodes."""
    with private((ETCD, APISERVER, CONTROLLER_MANAGER)) as runtime, private(API_ONLY) as virtual:
        found = Sandboxes(runtime, virtual)
        in_thread(_prepare(found))
        yield found


async def _prepare(found: Sandboxes) -> None:
    async with (
        Client.connect(load(found.runtime.kubeconfig)) as runtime,
        Client.connect(load(found.virtual.kubeconfig)) as virtual,
    ):
        await install_operator_crds(runtime)
        await install_garden_extension_crds(runtime)
        await prepare(runtime, virtual)
        chart = OperatorChart.rendered(CHART)
        for kind in GRANTS:
            for obj in chart.of(kind):
                await runtime.apply(obj, manager="test", force=True)


@pytest.fixture
async def garden(sandboxes: Sandboxes) -> AsyncIterator[ExtensionGarden]:
    """Yield both clusters with their resource managers, without a Garden."""
    async with (
        Client.connect(load(sandboxes.runtime.kubeconfig)) as runtime,
        Client.connect(load(sandboxes.virtual.kubeconfig)) as virtual,
    ):
        found = ExtensionGarden(runtime, virtual)
        await connect_virtual(found, sandboxes.virtual.kubeconfig)
        async with resource_managers(found):
            yield found
        await found.clean()


@pytest.fixture
async def operator(sandboxes: Sandboxes) -> ClusterConfig:
    """Return the operator's access to the runtime cluster, with the permissions of its chart."""
    admin = load(sandboxes.runtime.kubeconfig)
    async with Client.connect(admin) as client:
        await until_granted(client, ACCOUNT)
    return await service_account_config(admin, ACCOUNT.namespace, ACCOUNT.name)


@pytest.fixture
async def charts(tmp_path: Path) -> AsyncIterator[Registry]:
    """Yield a registry for charts."""
    directory = tmp_path / "registry"
    directory.mkdir()
    async with registry(directory) as found:
        yield found
