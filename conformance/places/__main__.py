"""`python -m conformance.places [PLACE...] [--seconds N] [--save]`.

Prints one line for each place: what held, the requests of the resource manager, how many of them
were forbidden, and the time. Exits with 1 if a check did not hold, or a request was forbidden.
"""

import argparse
import asyncio
import io
import sys
from collections.abc import Iterable
from datetime import UTC, datetime
from typing import Final

from conformance.oracles import GARDENER, Oracle
from conformance.places.catalogue import PLACES
from conformance.places.deployment import LIMIT
from conformance.places.place import Place
from conformance.places.results import Result, save
from conformance.places.run import Outcome, run
from pergola.runtime.logging import configure
from pergola.runtime.task_group import gathered
from pergola.sandbox import SandboxError

# A place waits more than it computes.
_AT_ONCE: Final = 3


def main(argv: list[str] | None = None) -> int:
    """Run places."""
    configure(level="error", stream=io.StringIO())  # kinds that are defined later
    parser = _parser()
    arguments = parser.parse_args(argv)
    known = {place.name: place for place in PLACES}
    for name in arguments.place:
        if name not in known:
            parser.error(f"unknown place {name}: choose from {', '.join(known)}")
    chosen = [known[name] for name in arguments.place or known]
    try:
        oracle = Oracle.built(GARDENER.module)
    except SandboxError as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    outcomes = asyncio.run(_run(chosen, oracle, arguments.seconds))
    if arguments.save:
        save(dict(_results(outcomes)))
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance.places", description=__doc__)
    parser.add_argument("place", nargs="*", metavar="PLACE", help="all without one")
    parser.epilog = "; ".join(f"{place.name}: {place.title}" for place in PLACES)
    parser.add_argument(
        "--seconds", type=float, default=LIMIT, help="for each step of a deployment"
    )
    parser.add_argument("--save", action="store_true", help="put the outcomes into the page")
    return parser


async def _run(places: list[Place], built: Oracle, limit: float) -> list[Outcome]:
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(place: Place) -> Outcome:
        async with turn:
            with built.another() as oracle:
                outcome = await run(place, oracle, limit)
            print(outcome, flush=True)
            return outcome

    return list(await gathered(one(place) for place in places))


def _results(outcomes: Iterable[Outcome]) -> Iterable[tuple[str, Result]]:
    today = datetime.now(UTC).date()
    for outcome in outcomes:
        yield (
            outcome.place.name,
            Result(
                GARDENER.versions,
                today,
                dict(outcome.held),
                len(outcome.place.checks) - outcome.held.total(),
                outcome.requests,
                len(outcome.refused),
            ),
        )


if __name__ == "__main__":
    sys.exit(main())
