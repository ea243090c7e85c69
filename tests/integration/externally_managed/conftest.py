"""Fixtures for tests of InfraClusters."""

import secrets
from collections.abc import AsyncIterator, Generator
from pathlib import Path

import pytest
import pytest_asyncio

from pergola.kube.kubeconfig import load
from pergola.sandbox import API_ONLY, Sandbox, start
from pergola.testing.world import RecordingClient
from tests.support.capi import CoreManager, core_manager
from tests.support.cluster_api import NEW, OLD, cluster_crd, infra_cluster_crd, install

_CORE = pytest.StashKey[CoreManager]()


@pytest.fixture
async def infra_client(kubeconfig: Path) -> AsyncIterator[RecordingClient]:
    """Yield a client of a cluster that serves InfraClusters of both contracts."""
    async with RecordingClient.connect(load(kubeconfig)) as client:
        await install(client, cluster_crd(), infra_cluster_crd(OLD), infra_cluster_crd(NEW))
        yield client


# Cluster API's real core manager, with a separate control plane


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def core_sandbox() -> AsyncIterator[Sandbox]:
    sandbox = await start(f"core-manager-{secrets.token_hex(3)}", components=API_ONLY)
    yield sandbox
    await sandbox.stop()


@pytest_asyncio.fixture(scope="session", loop_scope="session")
async def core(
    core_sandbox: Sandbox, tmp_path_factory: pytest.TempPathFactory, request: pytest.FixtureRequest
) -> AsyncIterator[CoreManager]:
    """Yield the core manager in a cluster with both kinds of InfraClusters."""
    async with RecordingClient.connect(load(core_sandbox.kubeconfig)) as client:
        await install(client, infra_cluster_crd(OLD), infra_cluster_crd(NEW))
    directory = tmp_path_factory.mktemp("core")
    # By default it reconciles each object at most once a second; nothing else depends on that.
    quick = ("--feature-gates=ReconcilerRateLimiting=false",)
    async with core_manager(core_sandbox.kubeconfig, directory, flags=quick) as manager:
        request.config.stash[_CORE] = manager
        yield manager


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Append the end of the core manager's log to the report of a failed test."""
    report = yield
    manager = item.config.stash.get(_CORE, None)
    if report.failed and manager is not None and "core" in getattr(item, "fixturenames", ()):
        report.sections.append(("Cluster API core manager", manager.last_words()))
    return report
