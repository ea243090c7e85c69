"""docs/reference/conformance.md: the comparisons with the originals, and the differences."""

from collections.abc import Iterable, Iterator, Mapping

from conformance import facts
from conformance.comparison import MOST, Decided, Decisions
from conformance.oracles import GARDENER
from conformance.places import results as outcomes
from conformance.places.catalogue import PLACES
from conformance.places.place import SORTS, Place
from conformance.results import Result, saved
from conformance.subjects import SUBJECTS
from conformance.subjects.subject import Subject, cases

_REPEAT = """\
## Repeat it

Everything is built from the Go modules of the originals; Go itself is downloaded if it is missing.
No root, no cluster. One thing stands in for an original: Go's module proxy does not serve
machine-controller-manager's driver for AWS, so `conformance/oracle/aws/driver` declares the types
that the extension fills in.

- `make conformance` asks about every subject, for a minute each.
- `make conformance ARGS="workloads --seconds 600 --seed 7"` asks about one subject for ten minutes;
  the seed repeats the questions.
- `make places ARGS="seed shoot"` runs two of the places; without arguments it runs all.
- `make test ARGS=tests/unit/conformance` compares with the recorded facts only, without Go.

A difference that is not in the table above is printed as YAML: the smallest question that shows it,
with both answers. It is kept in the folder `.conformance`.
"""
_PLACES = """\
## The places

Gardener's own code deploys a resource manager in nine places. There, its constructors deploy
Pergola in real API servers, and its waits decide when Pergola is ready. The container runs with the
arguments, files and permissions that they render. Checks then show what is applied, mutated,
approved and refused; those of a kind that the original does not configure in a place are absent.
An audit log counts the requests of the resource manager, and those that are forbidden.
"""
_HEAD = """\
# Conformance

Pergola replaces parts of Gardener, so Gardener's own code judges it. Programs in Go call the
exported functions of the original with the same objects, settings and clusters that Pergola gets,
and each answer is compared: the object after a webhook's patch, a refusal, a verdict about health.

- **Recorded**: questions whose answers are part of the repository; every run of `make test`
  compares Pergola with them.
- **Random**: questions of the last long run, with odd values of every field. A subject counts as
  judged from 1,000 cases on. Each object of a Garden is a case.
- **Branches**: how much of Pergola's code for the subject the random questions reach.
"""


def page() -> str:
    """Return the page."""
    decisions = Decisions.read()
    counts = {subject.name: _compared(subject, decisions) for subject in SUBJECTS}
    comparisons = _table(_subjects(counts)), _differences(decisions)
    parts = [_HEAD, *comparisons, _PLACES, _table(_places()), _REPEAT]
    return "\n".join(parts)


def _compared(subject: Subject, decisions: Decisions) -> int:
    """Compare all facts of a subject, and return their number."""
    recorded = [*facts.read(subject)]
    for fact in recorded:
        decisions.undecided(subject.name, subject.compare(fact.question, fact.answer))
    return sum(cases(fact.answer) for fact in recorded)


def _subjects(counts: Mapping[str, int]) -> Iterator[Iterable[str]]:
    yield "Subject", "Original", "Recorded", "Random", "Undecided", "Branches"
    results = saved()
    for subject in SUBJECTS:
        figures = _figures(results.get(subject.name))
        yield subject.title, _original(subject), f"{counts[subject.name]:,}", *figures


def _places() -> Iterator[Iterable[str]]:
    yield (
        "Place",
        "Original",
        "Date",
        *(sort.capitalize() for sort in SORTS),
        "Requests",
        "Forbidden",
    )
    results = outcomes.saved()
    for place in PLACES:
        title = f"{place.name}: {place.title}"
        if place.name in results:
            yield title, *_outcome(place, results[place.name])


def _outcome(place: Place, result: outcomes.Result) -> Iterator[str]:
    version = result.versions[GARDENER.original]
    yield f"{GARDENER.name} {version}"
    yield str(result.date)
    for sort in SORTS:
        checks = sum(check.sort == sort for check in place.checks)
        yield f"{result.held.get(sort, 0)} of {checks}" if checks else ""
    yield str(result.requests)
    yield str(result.refused)


def _figures(result: Result | None) -> tuple[str, str, str]:
    if result is None:
        return "none yet", "", ""
    reached = f"{100 * result.reached // max(1, result.branches)} %"
    return f"{result.cases:,} on {result.date}", str(result.undecided), reached


def _original(subject: Subject) -> str:
    versions = subject.of.versions
    return ", ".join(f"{name.rpartition('/')[2]} {version}" for name, version in versions.items())


def _differences(decisions: Decisions) -> str:
    titles = {subject.name: subject.title for subject in SUBJECTS}
    rows = [(titles[each.subject], *_row(each, decisions.met[each])) for each in decisions.listed]
    head = ("Where", "Why", "Recorded cases", "Decision")
    count = f"{len(rows)} places, of {MOST} that are permitted"
    text = (
        f"## Decided differences\n\nPergola differs on purpose in {count}. A line that no recorded "
        "case needs fails the tests.\n"
    )
    of_gardens = [_row(each, decisions.met[each]) for each in decisions.explained]
    gardens = (
        f"## Decided differences in the objects of a Garden\n\nThese are {len(of_gardens)} fields "
        "and objects. `pergola garden compare` prints the same reasons for a landscape of yours.\n"
    )
    tables = _table([("Subject", *head), *rows]), _table([head, *of_gardens])
    return f"{text}\n{tables[0]}\n{gardens}\n{tables[1]}"


def _row(decided: Decided, met: int) -> tuple[str, ...]:
    record = f"[{decided.record}](../decisions/{_file(decided.record)})"
    return f"`{decided.path}`", decided.reason, str(met), record


def _file(record: int) -> str:
    folder = facts.FACTS.parents[1] / "docs" / "decisions"
    return next(folder.glob(f"{record:04}-*.md")).name


def _table(rows: Iterable[Iterable[str]]) -> str:
    head, *rest = [list(row) for row in rows]
    lines = [head, ["---"] * len(head), *rest]
    return "".join(f"| {' | '.join(line)} |\n" for line in lines)
