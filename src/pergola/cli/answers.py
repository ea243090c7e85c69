"""The output of `pergola why` and `pergola garden why`."""

from collections.abc import Iterator
from datetime import UTC, datetime
from typing import TYPE_CHECKING, Final

from rich.text import Text
from rich.tree import Tree

from pergola.cli.output import show
from pergola.cli.text import lasting, plain_console
from pergola.why import Kind, Topic, data_of

if TYPE_CHECKING:
    from rich.console import Console

    from pergola.why import Answer, Statement

_CALM: Final = ("ok", "done", "skipped")
_LABELS: Final = {
    Topic.WANTED: "wanted by ",
    Topic.DECIDED: "decision: ",
    Topic.PROBLEM: "",
    Topic.WAITS: "waits for ",
    Topic.BLOCKED: "deletion waits for ",
    Topic.FINALIZER: "finalizer ",
    Topic.WRITTEN: "last writer ",
}
_CAUSES: Final = (Topic.PROBLEM, Topic.WAITS, Topic.BLOCKED)
"""What explains that an object is not as it should be; people read this first."""
_JOINTS: Final = {Topic.WANTED: ", ", Topic.BLOCKED: " ", Topic.FINALIZER: " "}
_EVIDENCE: Final = {
    Kind.SOURCE: "from ",
    Kind.EVENT: "last event: ",
    Kind.LOG: "last log line: ",
    Kind.FIELD: "field ",
}
_STEPS: Final = ("Next: ", "Then: ", "Then: ")


def print_text(answer: "Answer", out: "Console | None" = None) -> None:
    """Print for people: the answer, the known facts as a tree, and what to do next."""
    out = out or plain_console()
    style = "bold" if answer.state in _CALM else "bold yellow"
    root = Tree(Text(f"{_capital(answer.sentence)}.", style=style))
    now = datetime.now(UTC)
    causes_first = sorted(answer.statements, key=lambda each: each.topic not in _CAUSES)
    for statement in causes_first:
        _add(root, statement, _LABELS[statement.topic], now)
    out.print(root)
    for label, step in zip(_STEPS, answer.next_steps, strict=False):
        out.print(Text.assemble((label, "bold"), step))
    for sentence in answer.unread:
        out.print(Text.assemble(("Not read: ", "dim"), sentence))


def print_answer(answer: "Answer", output: str, name: str = "") -> None:
    """Print in a format of `-o`.

    Args:
        name: The object, as kubectl names it.
    """
    show(output, data=data_of(answer), text=lambda: print_text(answer), names=[name])


def _add(tree: Tree, statement: "Statement", label: str, now: datetime) -> None:
    branch = tree.add(_line(statement, label, now))
    for line in _evidence(statement):
        branch.add(line)
    for each in statement.below:
        _add(branch, each, _LABELS[each.topic] if each.topic is Topic.WANTED else "", now)


def _line(statement: "Statement", label: str, now: datetime) -> Text:
    text = Text.assemble((label, "dim"), (statement.subject, "yellow"))
    if statement.text:
        joint = _JOINTS.get(statement.topic, ": ") if statement.subject else ""
        text.append(f"{joint}{' '.join(statement.text.split())}")
    if statement.because:
        text.append(f", because {statement.because}")
    time = lasting(statement.since, now)
    ago = " ago" if statement.topic is Topic.WRITTEN else ""
    return text.append(f" ({time}{ago})", style="dim") if time else text


def _evidence(statement: "Statement") -> Iterator[Text]:
    for evidence in statement.evidence:
        yield Text.assemble((_EVIDENCE[evidence.kind], "dim"), evidence.text)


def _capital(sentence: str) -> str:
    return sentence[:1].upper() + sentence[1:].removesuffix(".")
