"""pytest fixtures over the sandbox.

| fixture | scope | value |
| --- | --- | --- |
| `sandbox` | session | one control plane, shared by all workers of pytest-xdist |
| `second_sandbox` | session | another one, etcd and API server only: a target cluster |
| `node_sandbox` | session | one with a real node, shared likewise; skips where there can be none |
| `private_sandbox` | function | a private one, to break |
| `kubeconfig` | session | of `sandbox`, or the cluster of `PERGOLA_TEST_KUBECONFIG` |
| `cluster_client` | function | a `pergola.kube.client.Client` of that cluster |
| `namespace` | function | the name of a fresh namespace there |

Sandboxes end with the pytest process (with xdist: the controller), however it ends. This module is
loaded in every run of pytest where Pergola is installed, hence the imports inside the functions.
"""

from __future__ import annotations

import os
import sys
from collections.abc import AsyncIterator, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pytest

if TYPE_CHECKING:
    from pergola.kube.client import Client
    from pergola.sandbox import Sandbox

try:
    import pytest_asyncio
except ImportError:  # then only the synchronous fixtures can be used
    async_fixture = pytest.fixture
else:
    # Other projects may run pytest-asyncio in its strict mode. (Used alike, typed differently.)
    async_fixture = pytest_asyncio.fixture  # type: ignore[assignment]

KUBECONFIG_VARIABLE = "PERGOLA_TEST_KUBECONFIG"
_WORKERS = pytest.StashKey[bool]()


@pytest.fixture(scope="session")
def sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Return the control plane that all tests of this run share; the first one starts it."""
    from pergola.sandbox import ALL
    from pergola.testing.shared import shared_sandbox

    return shared_sandbox("tests", _owner(request.config), ALL)


@pytest.fixture(scope="session")
def second_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Return a second shared control plane, without controllers: nothing changes by itself."""
    from pergola.sandbox import API_ONLY
    from pergola.testing.shared import shared_sandbox

    return shared_sandbox("second", _owner(request.config), API_ONLY)


@pytest.fixture(scope="session")
def node_sandbox(request: pytest.FixtureRequest) -> Sandbox:
    """Return a sandbox with a real node, shared by all tests of this run that need containers.

    Skips where the machine cannot run one; with `CI=true` that is a failure.
    """
    from pergola.sandbox import WITH_NODE
    from pergola.testing.shared import require_node, shared_sandbox

    require_node()
    return shared_sandbox("node", _owner(request.config), WITH_NODE)


@pytest.fixture
def private_sandbox() -> Iterator[Sandbox]:
    """Yield a control plane for this test alone, which may restart, pause and kill its parts."""
    from pergola.testing.shared import private

    with private() as own:
        yield own


@pytest.fixture(scope="session")
def kubeconfig(request: pytest.FixtureRequest) -> Path:
    """Return the kubeconfig of the test cluster: `PERGOLA_TEST_KUBECONFIG`, else the sandbox's."""
    existing = os.environ.get(KUBECONFIG_VARIABLE)
    if existing:
        return Path(existing)
    shared: Sandbox = request.getfixturevalue("sandbox")
    return shared.kubeconfig


@async_fixture
async def cluster_client(kubeconfig: Path) -> AsyncIterator[Client]:
    """Yield an administrator's client of the cluster."""
    from pergola.kube.client import Client
    from pergola.kube.kubeconfig import load

    async with Client.connect(load(kubeconfig)) as client:
        yield client


@async_fixture
async def namespace(cluster_client: Client, request: pytest.FixtureRequest) -> AsyncIterator[str]:
    """Yield a new namespace in which pods can be created; it is cleared afterwards."""
    from pergola.testing.namespaces import clear_namespace, create_namespace

    name = await create_namespace(cluster_client, request.node.name)
    yield name
    await clear_namespace(cluster_client, name)


def pytest_configure(config: pytest.Config) -> None:
    """Register the marker of tests that need a real node."""
    config.addinivalue_line("markers", "node: needs a real node: root, and Linux")


@pytest.hookimpl(optionalhook=True)
def pytest_configure_node(node: Any) -> None:
    """Pass the owner of the sandboxes to a worker of pytest-xdist."""
    node.workerinput["pergola_owner"] = os.getpid()
    node.config.stash[_WORKERS] = True


def pytest_sessionfinish(session: pytest.Session) -> None:
    """Stop the shared sandboxes, in the process that owns them."""
    owner = _owner(session.config)
    if owner == os.getpid() and (session.config.stash.get(_WORKERS, False) or _was_used()):
        from pergola.testing.shared import stop_shared

        stop_shared(owner)


def _was_used() -> bool:
    return "pergola.testing.shared" in sys.modules


def _owner(config: pytest.Config) -> int:
    worker = getattr(config, "workerinput", {})
    return int(worker.get("pergola_owner", os.getpid()))
