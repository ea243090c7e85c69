"""`python -m conformance [SUBJECT...] [--seconds N] [--seed N] [--record] [--save]`.

Prints each undecided difference with the smallest question that shows it. Exits with 1 if there is
one, or if a subject had too few cases.
"""

import argparse
import io
import random
import sys
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from typing import Final

from conformance import facts
from conformance.comparison import Decisions
from conformance.oracles import Oracle, OracleError, OracleModule
from conformance.reached import Reached
from conformance.recording import record
from conformance.results import Result, save
from conformance.search import ENOUGH, Search, write
from conformance.subjects import SUBJECTS
from conformance.subjects.subject import Subject
from pergola.runtime.logging import configure
from pergola.sandbox import SandboxError

_FOLDER: Final = Path(".conformance")
_Oracles = dict[OracleModule, Oracle]


def main() -> int:
    """Search, or record."""
    configure(level="error", stream=io.StringIO())  # refusals are expected
    parser = _parser()
    arguments = parser.parse_args()
    known = {subject.name: subject for subject in SUBJECTS}
    for name in arguments.subject:
        if name not in known:
            parser.error(f"unknown subject {name}: choose from {', '.join(known)}")
    chosen = [known[name] for name in arguments.subject or known]
    try:
        with ExitStack() as stack:
            modules = {subject.of for subject in chosen}
            oracles = {of: stack.enter_context(Oracle.built(of.module)) for of in modules}
            if arguments.record:
                return _record(chosen, oracles)
            return _search(chosen, oracles, arguments)
    except (OracleError, SandboxError) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1


def _record(subjects: list[Subject], oracles: _Oracles) -> int:
    today = datetime.now(UTC).date()
    for subject in subjects:
        count = facts.write(subject, record(subject, oracles[subject.of]), today)
        print(f"{subject.name:24} {count:8} facts", flush=True)
    return 0


def _search(subjects: list[Subject], oracles: _Oracles, arguments: argparse.Namespace) -> int:
    seed = arguments.seed
    if seed is None:
        seed = random.randrange(2**32)  # noqa: S311 # no secret
    print(f"seed {seed}, {arguments.seconds:g} s per subject", flush=True)
    decisions, is_clean = Decisions.read(), True
    for subject in subjects:
        search = Search(subject, oracles[subject.of], decisions)
        with Reached(subject.code) as reached:
            search.run(arguments.seconds, seed)
        count, branches = len(search.found), reached.branches()
        judged = "" if search.cases >= ENOUGH else f"  not judged: fewer than {ENOUGH} cases"
        print(
            f"{subject.name:24} {search.cases:8} cases  {branches.reached:5} of "
            f"{branches.all:5} branches  {count:3} undecided differences{judged}",
            flush=True,
        )
        for found, path in zip(
            search.found, write(subject, search.found, arguments.folder), strict=True
        ):
            print(f"\n{found.manifest(subject)}kept as {path}\n", flush=True)
        is_clean = is_clean and not search.found and search.cases >= ENOUGH
        if arguments.save:
            today = datetime.now(UTC).date()
            save(
                subject.name,
                Result(subject.of.versions, today, seed, search.cases, count, *branches),
            )
    return 0 if is_clean else 1


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m conformance", description=__doc__)
    parser.add_argument("subject", nargs="*", metavar="SUBJECT", help="all without one")
    parser.epilog = "; ".join(f"{s.name}: {s.title}" for s in SUBJECTS)
    parser.add_argument("--seconds", type=float, default=60.0, help="for each subject")
    parser.add_argument("--seed", type=int, help="repeats a run")
    parser.add_argument("--record", action="store_true", help="write the recorded facts")
    parser.add_argument("--save", action="store_true", help="put the figures into the page")
    parser.add_argument("--folder", type=Path, default=_FOLDER, help="for differing cases")
    return parser


if __name__ == "__main__":
    sys.exit(main())
