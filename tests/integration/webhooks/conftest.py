"""Fixtures: a control plane whose API server calls webhooks, for one test at a time.

Without scheduler and nodes, pods stay as they were admitted. A registration affects the whole
cluster, so every worker of pytest-xdist has its own, in which tests run one after another.
"""

from collections.abc import AsyncIterator, Iterator

import pytest

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import API_ONLY, Sandbox
from pergola.sandbox.components import CONTROLLER_MANAGER
from pergola.testing.shared import in_thread, private
from tests.support.ports import held_port
from tests.support.webhook_site import HOME, WebhookSite, definitions


@pytest.fixture(scope="session")
def webhook_sandbox() -> Iterator[Sandbox]:
    """Yield etcd, the API server, and the controllers that delete objects and issue tokens."""
    with private((*API_ONLY, CONTROLLER_MANAGER)) as own:
        in_thread(_prepare(own))
        yield own


@pytest.fixture(scope="session")
def webhook_port() -> Iterator[int]:
    """Yield the port that the servers of all tests use in turn."""
    with held_port() as port:
        yield port


@pytest.fixture
async def site(webhook_sandbox: Sandbox, webhook_port: int) -> AsyncIterator[WebhookSite]:
    """Yield the cluster; nothing is registered before and after the test."""
    async with Client.connect(load(webhook_sandbox.kubeconfig)) as client:
        found = WebhookSite(webhook_sandbox, client, webhook_port)
        yield found
        await found.unregister("runtime")
        await found.unregister("target")
        await found.forgotten()


@pytest.fixture
async def runtime(site: WebhookSite) -> AsyncIterator[WebhookSite]:
    """Yield the cluster while a runtime installation is registered and served."""
    async with site.serving("runtime"):
        await site.effective(lambda: site.mutates(HOME))
        await site.effective(lambda: site.validates(HOME))
        yield site


@pytest.fixture
async def target(site: WebhookSite) -> AsyncIterator[WebhookSite]:
    """Yield the cluster while a target installation is registered and served."""
    async with site.serving("target"):
        await site.effective(lambda: site.mutates("kube-system"))
        yield site


async def _prepare(sandbox: Sandbox) -> None:
    """Add permanent objects: all definitions, and the resource manager's namespace."""
    async with Client.connect(load(sandbox.kubeconfig)) as client:
        site = WebhookSite(sandbox, client, 0)
        await site.add_definitions(definitions())
        await site.add_namespace(HOME, **{"gardener.cloud/role": "garden"})
