"""`python -m conformance [SUBJECT...] [--seconds N] [--seed N] [--record] [--folder DIR]`.

Prints each undecided difference with the smallest question that shows it. Exits with 1 if there is
one, or if a subject had too few cases.
"""

import argparse
import random
import sys
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final, NamedTuple

from conformance import facts
from conformance.comparison import Decisions
from conformance.oracles import Oracle, OracleError
from conformance.reached import Branches, Reached
from conformance.recording import record
from conformance.search import ENOUGH, Found, Search, write
from conformance.subjects import SUBJECTS
from conformance.subjects.subject import Subject
from pergola.runtime.logging import configure
from pergola.sandbox import SandboxError

_FOLDER: Final = Path(".conformance")


class Result(NamedTuple):
    """What the search found about a subject."""

    subject: Subject
    cases: int
    branches: Branches
    found: Sequence[Found]

    def __str__(self) -> str:
        judged = "" if self.cases >= ENOUGH else f"  not judged: fewer than {ENOUGH} cases"
        reached, every = self.branches
        return (
            f"{self.subject.name:24} {self.cases:8} cases  {reached:5} of {every:5} branches  "
            f"{len(self.found):3} undecided differences{judged}"
        )


def main() -> int:
    """Search, or record."""
    configure(level="error")
    arguments = _parser().parse_args()
    names = arguments.subject or [subject.name for subject in SUBJECTS]
    subjects = [subject for subject in SUBJECTS if subject.name in names]
    try:
        with ExitStack() as stack:
            chosen = {subject.of for subject in subjects}
            oracles = {of: stack.enter_context(Oracle.built(of)) for of in chosen}
            if arguments.record:
                for subject in subjects:
                    count = facts.write(
                        subject, record(subject, oracles[subject.of]), datetime.now(UTC).date()
                    )
                    print(f"{subject.name:24} {count:8} facts")
                return 0
            seed = arguments.seed if arguments.seed is not None else random.randrange(2**32)  # noqa: S311 # no secret
            print(f"seed {seed}, {arguments.seconds:g} s per subject", flush=True)
            decisions = Decisions.read()
            results = []
            for subject in subjects:
                results.append(_searched(subject, oracles[subject.of], decisions, arguments, seed))
                _show(results[-1], arguments.folder)
    except (OracleError, SandboxError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return int(any(result.found or result.cases < ENOUGH for result in results))


def _searched(
    subject: Subject, oracle: Oracle, decisions: Decisions, arguments: argparse.Namespace, seed: int
) -> Result:
    search = Search(subject, oracle, decisions)
    with Reached(subject.code) as reached:
        search.run(arguments.seconds, seed)
    return Result(subject, search.cases, reached.branches(), search.found)


def _show(result: Result, folder: Path) -> None:
    print(result, flush=True)
    paths: Iterator[Path] = write(result.subject, result.found, folder)
    for found, path in zip(result.found, paths, strict=True):
        print(f"\n{found.manifest(result.subject)}kept as {path}\n", flush=True)


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument(
        "subject", nargs="*", help="; ".join(f"{s.name}: {s.title.lower()}" for s in SUBJECTS)
    )
    parser.add_argument("--seconds", type=float, default=60.0, help="for each subject")
    parser.add_argument("--seed", type=int, help="repeats a run")
    parser.add_argument("--record", action="store_true", help="write the recorded facts")
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="for differing cases")
    return parser


if __name__ == "__main__":
    sys.exit(main())
