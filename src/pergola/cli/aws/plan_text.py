"""A plan of steps in AWS for people, in the form of `pergola garden plan`."""

from collections import Counter
from collections.abc import Iterator, Sequence
from typing import Final, NamedTuple

from pergola.flow import Graph
from pergola.flow.picture import Fate, Note, Notes
from pergola.providers.aws.preflight import Finding

_SIGNS: Final = {
    Fate.CREATE: ("+", "green"),
    Fate.CHANGE: ("~", "yellow"),
    Fate.DELETE: ("-", "red"),
    Fate.FAILED: ("!", "bold red"),
}
_VERBS: Final = {Fate.CREATE: "create", Fate.CHANGE: "change", Fate.DELETE: "delete"}
_DIM: Final = "dim"


class Line(NamedTuple):
    """A line, with its indentation and its style in rich."""

    text: str
    indent: int = 0
    style: str = ""


def lines(
    graph: Graph, notes: Notes, findings: Sequence[Finding], *, everything: bool
) -> Iterator[Line]:
    """Yield a plan line by line.

    Args:
        everything: Whether to include steps without changes.
    """
    yield Line(graph.name, 0, "bold")
    if not len(graph):
        yield Line("nothing was ever created, so there is nothing to do", 2)
    for task in graph.order():
        note = notes[task.name]
        if everything or note.fate in _SIGNS:
            yield from _step(task.name, note)
    if not everything:
        yield from _others(notes)
    yield Line("")
    for finding in findings:
        style = "red" if finding.blocks else "yellow"
        yield Line(f"{'error' if finding.blocks else 'hint'}: {finding}", 0, style)
        yield Line(str(finding.fix), 2)
    yield Line(_summary(notes, findings), 0, "bold")


def _step(name: str, note: Note) -> Iterator[Line]:
    sign, style = _SIGNS.get(note.fate, (" ", _DIM))
    fate = "" if note.fate in _SIGNS else f"{note.fate}, "
    about = note.subject or note.why
    yield Line(f"{sign} {name}{f': {fate}{about}' if about or fate else ''}", 2, style)
    for change in note.changes:
        yield Line(change, 6)


def _others(notes: Notes) -> Iterator[Line]:
    kept, skipped = (
        sum(note.fate is fate for note in notes.values()) for fate in (Fate.KEEP, Fate.SKIP)
    )
    parts = [f"{kept} change{'s' * (kept == 1)} nothing"] if kept else []
    if skipped:
        parts.append(f"{skipped} {'is' if skipped == 1 else 'are'} skipped")
    if parts:
        yield Line(f"of the other steps, {', '.join(parts)}", 2, _DIM)


def _summary(notes: Notes, findings: Sequence[Finding]) -> str:
    if any(finding.blocks for finding in findings):
        return "nothing would be done until the errors are fixed"
    counts = Counter(note.fate for note in notes.values())
    parts = [f"{counts[fate]} to {verb}" for fate, verb in _VERBS.items() if counts[fate]]
    if counts[Fate.FAILED]:
        parts.append(f"{counts[Fate.FAILED]} would fail")
    return f"steps: {', '.join(parts)}" if parts else "nothing would change"
