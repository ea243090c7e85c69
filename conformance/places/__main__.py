"""`python -m conformance.places [PLACE...]`."""

import argparse
import asyncio
import io
import sys
from typing import Final

from conformance.oracles import GARDENER, Oracle
from conformance.places.catalogue import PLACES
from conformance.places.deployment import LIMIT
from conformance.places.place import Place
from conformance.places.run import Outcome, run
from pergola.runtime.logging import configure
from pergola.sandbox import SandboxError

_AT_ONCE: Final = 2
"""A place waits more than it computes."""


def main() -> int:
    """Run the places, and print a line for each."""
    configure(level="error", stream=io.StringIO())
    parser = argparse.ArgumentParser(prog="python -m conformance.places", description=__doc__)
    parser.add_argument("place", nargs="*", metavar="PLACE", help="all without one")
    parser.add_argument("--seconds", type=float, default=LIMIT)
    arguments = parser.parse_args()
    known = {place.name: place for place in PLACES}
    for name in arguments.place:
        if name not in known:
            parser.error(f"unknown place {name}: choose from {', '.join(known)}")
    chosen = [known[name] for name in arguments.place or known]
    outcomes = asyncio.run(_run(chosen, arguments.seconds))
    return 0 if all(outcome.is_good for outcome in outcomes) else 1


async def _run(places: list[Place], limit: float) -> list[Outcome]:
    turn = asyncio.Semaphore(_AT_ONCE)

    async def one(place: Place) -> Outcome:
        async with turn:
            with Oracle.built(GARDENER.module) as oracle:
                outcome = await run(place, oracle, limit)
            print(outcome, flush=True)
            return outcome

    return await asyncio.gather(*map(one, places))


if __name__ == "__main__":
    sys.exit(main())
