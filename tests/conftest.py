"""Set up what all tests share: event loops, hypothesis, order, and the deployed resource manager.

`--hypothesis-profile=nightly` gives every property 20,000 examples.
"""

import asyncio
import gc
from collections.abc import Iterator

import pytest
from hypothesis import settings

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.deployed_manager import install, turn
from pergola.testing.shared import in_thread

NIGHTLY_EXAMPLES = 20_000
LONG = 900.0
"""The time limit in seconds from which on a test takes minutes."""

# A slow machine is not a defect: no example has a deadline, the tests have their time limits.
settings.register_profile("default", deadline=None)
settings.register_profile("nightly", deadline=None, max_examples=NIGHTLY_EXAMPLES)
settings.load_profile("default")


def pytest_configure() -> None:
    """Start without an event loop: a left-over one would end a later test as unclosed."""
    asyncio.set_event_loop(None)


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Collect no garbage while tests are collected, and never look at them again.

    They stay until the end; the collector spent a quarter of that time on them.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.collect()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    """Run tests that take minutes first, in their order: other workers would wait for a last one.

    They are together, too, so that one worker runs most of them: others steal from the end.
    """
    items.sort(key=is_short)


def is_short(item: pytest.Item) -> bool:
    """Return whether the time limit of a test is less than `LONG`."""
    limit = item.get_closest_marker("timeout")
    return limit is None or limit.args[0] < LONG


@pytest.fixture(scope="session")
def deployed_manager(node_sandbox: Sandbox) -> Sandbox:
    """A real node with the resource manager, deployed from its chart."""

    async def install_chart() -> None:
        async with Client.connect(load(node_sandbox.kubeconfig)) as client:
            await install(client)

    with turn(node_sandbox, exclusive=False):
        in_thread(install_chart())
    return node_sandbox


@pytest.fixture
def running_manager(deployed_manager: Sandbox) -> Iterator[Sandbox]:
    """The node with the deployed resource manager, and no outage of it by other tests."""
    with turn(deployed_manager, exclusive=False):
        yield deployed_manager


@pytest.fixture
def breakable_manager(deployed_manager: Sandbox) -> Iterator[Sandbox]:
    """The node with the deployed resource manager, which no other test uses meanwhile."""
    with turn(deployed_manager, exclusive=True):
        yield deployed_manager
