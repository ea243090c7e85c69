"""The output of `pergola explain`."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final

import orjson

from pergola.admission.review import Edit
from pergola.api.objects import JsonObject, Key, name_of
from pergola.cli.output import object_name, show
from pergola.cli.safe_console import SafeConsole
from pergola.cli.text import plain_console
from pergola.resource_manager.webhooks.explanation import Explanation, Outcome, Question

_SUFFIX: Final = ".resources.gardener.cloud"
_SAID: Final[dict[Outcome, tuple[str, str]]] = {
    "changed": ("bold green", "changes it"),
    "unchanged": ("bold", "leaves it unchanged"),
    "allowed": ("bold", "allows it"),
    "refused": ("bold red", "refuses it"),
    "not asked": ("dim", "is not called"),
    "unknown": ("bold yellow", "cannot say"),
}


@dataclass(frozen=True, slots=True)
class Answer:
    """The explanation for one object."""

    question: Question
    explanations: Sequence[Explanation]


def print_answers(answers: Sequence[Answer], output: str) -> None:
    """Print in a format of `-o`; programs get one list, with an entry for each object."""
    show(
        output,
        data=[_data(answer) for answer in answers],
        text=lambda: _print_text(answers),
        names=[_object(answer.question) for answer in answers],
    )


def _object(question: Question) -> str:
    gvk = question.kind.gvk
    return object_name(gvk.kind, gvk.group, name_of(question.obj))


def _print_text(answers: Iterable[Answer]) -> None:
    """Print for people; webhooks for other kinds are only counted."""
    console = plain_console()
    for number, answer in enumerate(answers):
        if number:
            console.print()
        console.print_line(_title(answer.question), 0, "bold")
        others = 0
        for said in answer.explanations:
            if said.about:
                _print_one(console, said)
            else:
                others += 1
        if others:
            rest = f"{others} more are not about {answer.question.kind.plural}"
            console.print_line(rest, 2, "dim")


def _title(question: Question) -> str:
    kind = question.kind.gvk.kind
    return f"{kind} {_key(question)}, when it is {_DONE[question.operation]}"


_DONE: Final = {
    "CREATE": "created",
    "UPDATE": "updated",
    "DELETE": "deleted",
    "CONNECT": "connected to",
}


def _key(question: Question) -> Key:
    return Key(question.namespace, name_of(question.obj) or "(without a name)")


def _print_one(console: SafeConsole, said: Explanation) -> None:
    style, verb = _SAID[said.outcome]
    console.print_line(f"{said.webhook.removesuffix(_SUFFIX)} {verb}", 2, style)
    for edit in said.edits:
        console.print_line(_change(edit), 4, "cyan")
        console.print_line(f"because {edit.because}", 6, "dim")
    if said.because:
        console.print_line(said.because, 4, "dim" if said.outcome == "not asked" else "")
    if said.assuming:
        console.print_line(f"assuming that {said.assuming}", 4, "yellow")
    for warning in said.warnings:
        console.print_line(f"warning: {warning}", 4, "yellow")


def _change(edit: Edit) -> str:
    if edit.op == "remove":
        return f"remove {edit.path}"
    return f"{edit.op} {edit.path} = {orjson.dumps(edit.value).decode()}"


def _data(answer: Answer) -> JsonObject:
    question = answer.question
    return {
        "apiVersion": question.kind.gvk.api_version,
        "kind": question.kind.gvk.kind,
        "namespace": question.namespace,
        "name": name_of(question.obj),
        "operation": question.operation,
        "webhooks": [_said(said) for said in answer.explanations],
    }


def _said(said: Explanation) -> JsonObject:
    entry: JsonObject = {"name": said.webhook, "outcome": said.outcome}
    if said.because:
        entry["because"] = said.because
    if said.edits:
        entry["changes"] = [{**edit.operation(), "because": edit.because} for edit in said.edits]
    if said.outcome == "refused":
        entry["code"] = said.code
    if said.assuming:
        entry["assuming"] = said.assuming
    if said.warnings:
        entry["warnings"] = list(said.warnings)
    return entry
