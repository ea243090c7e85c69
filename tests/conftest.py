"""Setup of all tests: event loops, hypothesis, selection, order, the deployed resource manager.

By default, the tests of `make test` run; `--soak=PART` runs a part of the soak (`tools.soak`).
"""

import asyncio
import gc
import random
from collections.abc import Generator, Iterator
from pathlib import Path

import pytest
from hypothesis import settings

from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from pergola.testing.shared import in_thread
from tests.support.deployed_manager import install, turn
from tools.soak import PARTS

FEW_EXAMPLES, MANY_EXAMPLES = 40, 1_000
"""Examples of each property in `make test` and in the soak."""
UNIT = Path(__file__).parent / "unit"
LONG = 900.0
"""Tests with at least this time limit, in seconds, take minutes."""
REPORTED_LINES = 40
"""Lines of each captured output that the report of a failed test contains."""

# A slow machine is not a defect: examples have no deadline, only tests have time limits.
settings.register_profile("default", deadline=None, max_examples=FEW_EXAMPLES)
settings.register_profile("soak", deadline=None, max_examples=MANY_EXAMPLES)
settings.load_profile("default")


def pytest_addoption(parser: pytest.Parser) -> None:
    """Add the option that selects a part of the soak."""
    parser.addoption("--soak", metavar="PART", choices=[*PARTS], help="run a part of the soak")


def pytest_configure(config: pytest.Config) -> None:
    """Start without an event loop: a leftover one would fail a later test as unclosed."""
    asyncio.set_event_loop(None)
    if config.getoption("soak"):
        settings.load_profile("soak")


@pytest.hookimpl(wrapper=True)
def pytest_collection() -> Iterator[None]:
    """Disable garbage collection while tests are collected, and exclude them from it afterwards.

    Tests live until the end, and scanning them again and again took a quarter of the collection.
    """
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(trylast=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    """Select the tests of `make test` or of a part of the soak, and sort them.

    Each module runs on one worker, in this order. The modules that take minutes come first and
    those without a server last, so that no worker waits for a long one at the end.
    """
    part = config.getoption("soak")
    selected = [item for item in items if is_selected(item, part)]
    if len(selected) < len(items):
        kept = {*selected}
        config.hook.pytest_deselected(items=[item for item in items if item not in kept])
        items[:] = selected
    long = {item.path for item in items if is_long(item)}
    items.sort(key=lambda item: (item.path not in long, UNIT in item.path.parents))


def is_selected(item: pytest.Item, part: str | None) -> bool:
    """Return whether a test belongs to a part of the soak, or without one to `make test`.

    Raises:
        UsageError: a mark names a part that does not exist.
    """
    only = {mark.args[0] for mark in item.iter_markers("soak")}
    parts = only | {mark.args[0] for mark in item.iter_markers("thorough")}
    if unknown := parts - PARTS.keys():
        raise pytest.UsageError(f"{item.nodeid}: the soak has no part {', '.join(unknown)}")
    if part == "fuzz" and item.get_closest_marker("hypothesis"):
        return True
    return part in parts if part else not only


def is_long(item: pytest.Item) -> bool:
    """Return whether the time limit of a test is at least `LONG`."""
    limit = item.get_closest_marker("timeout")
    return limit is not None and limit.args[0] >= LONG


@pytest.hookimpl(wrapper=True)
def pytest_runtest_makereport(
    item: pytest.Item,
) -> Generator[None, pytest.TestReport, pytest.TestReport]:
    """Report only the last lines of the output of a failed test, unless asked by `-vv`.

    A Garden logs thousands of lines, which would hide the assertion that failed.
    """
    report = yield
    if item.config.get_verbosity() < 2:
        report.sections = [(title, last_lines(text)) for title, text in report.sections]
    return report


def last_lines(text: str) -> str:
    """Return the last lines of a text, below the number of the others."""
    lines = text.splitlines(keepends=True)
    if len(lines) <= REPORTED_LINES:
        return text
    omitted = len(lines) - REPORTED_LINES
    return f"[{omitted} lines omitted; -vv shows them]\n{''.join(lines[omitted:])}"


@pytest.fixture
def is_thorough(request: pytest.FixtureRequest) -> bool:
    """Return whether a test runs in the soak, and may take minutes to cover every case."""
    return request.config.getoption("soak") is not None


@pytest.fixture(scope="session")
def deployed_manager(node_sandbox: Sandbox) -> Sandbox:
    """Yield a real node with the resource manager, deployed from its chart."""

    async def install_chart() -> None:
        async with Client.connect(load(node_sandbox.kubeconfig)) as client:
            await install(client)

    with turn(node_sandbox, exclusive=False):
        in_thread(install_chart())
    return node_sandbox


@pytest.fixture
def running_manager(deployed_manager: Sandbox) -> Iterator[Sandbox]:
    """Yield the node with the resource manager, which other tests may use but not break."""
    with turn(deployed_manager, exclusive=False):
        yield deployed_manager


@pytest.fixture
def breakable_manager(deployed_manager: Sandbox) -> Iterator[Sandbox]:
    """Yield the node with the resource manager, which no other test uses."""
    with turn(deployed_manager, exclusive=True):
        yield deployed_manager


@pytest.fixture
def chance() -> random.Random:
    """Return a random source with a printed seed, so that a failure can be repeated."""
    seed = random.SystemRandom().randrange(1 << 32)
    print(f"seed {seed}")  # noqa: T201 - shown with a failure
    return random.Random(seed)  # noqa: S311
