"""Gardener's own code deploys Pergola's resource manager, on real API servers."""

import sys
from collections.abc import Iterator
from typing import Final

import pytest

from conformance.oracles import GARDENER, Oracle
from conformance.places.catalogue import PLACES
from conformance.places.place import Place
from conformance.places.run import run
from pergola.sandbox.on_demand import GARDENER_RESOURCE_MANAGER
from pergola.sandbox.process_node.programs import Program, Programs

pytestmark = [pytest.mark.soak("places"), pytest.mark.timeout(600)]
SEED: Final = next(place for place in PLACES if place.name == "seed")


@pytest.fixture
def oracle() -> Iterator[Oracle]:
    """Yield a process of the oracle, which is built if it is missing."""
    with Oracle.built(GARDENER.module) as started:
        yield started


def program(act: str) -> Programs:
    """Return a program that does not serve as resource manager."""
    line = (sys.executable, "-c", f"import sys, time; print('not today', flush=True); {act}")
    return {GARDENER_RESOURCE_MANAGER: Program(line, lambda args, *_: args)}


@pytest.mark.parametrize("place", PLACES, ids=lambda place: place.name)
async def test_the_resource_manager_works_with_what_is_rendered(
    oracle: Oracle, place: Place
) -> None:
    outcome = await run(place, oracle)

    assert outcome.is_good, str(outcome)
    assert outcome.held.total() == len(place.checks)
    assert outcome.requests


async def test_a_container_that_is_never_ready_is_reported_with_its_log(oracle: Oracle) -> None:
    outcome = await run(SEED, oracle, 15.0, program("time.sleep(600)"))

    (problem,) = outcome.problems
    assert problem.startswith("gave up waiting for Gardener's code to deploy the resource manager:")
    assert problem.endswith("; the log of its container ends with:\nnot today")


async def test_a_container_that_always_ends_is_reported_at_once(oracle: Oracle) -> None:
    outcome = await run(SEED, oracle, 120.0, program("sys.exit(3)"))

    (problem,) = outcome.problems
    assert "exit code 3" in problem
    assert problem.endswith("not today")
    assert outcome.seconds < 100


async def test_an_oracle_that_ends_is_reported_without_the_credentials_that_it_was_given() -> None:
    with Oracle([sys.executable, "-c", "import sys; sys.exit(3)"]) as ended:
        outcome = await run(SEED, ended)

    assert outcome.problems == ["the oracle ended with return code 3"]
