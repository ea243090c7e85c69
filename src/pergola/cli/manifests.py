"""`pergola manifests`: checks manifests against the house rules."""

import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

from cyclopts import App, Parameter

from pergola.cli.output import ListOutput, ReportOutput, print_table, show
from pergola.cli.text import say

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject, JsonValue

app = App(
    name="manifests",
    help="Check manifests against the house rules.",
)


class ManifestsError(Exception):
    """A file has unexpected content; the text gives the reason."""


@app.command
def lint(
    file: Annotated[list[Path], Parameter(negative="")],
    /,
    *,
    allow: Path | None = None,
    external: Annotated[list[str] | None, Parameter(negative="")] = None,
    output: ReportOutput = "text",
) -> None:
    """Print violations of the house rules in manifests; exits with 1 if there are any.

    All files are checked together: an object in one file may refer to an object in another.

    Parameters
    ----------
    file
        Manifests; `-` for standard input.
    allow
        A YAML file with exceptions: a map from rule and object, such as
        `run-as-non-root DaemonSet kube-system/node`, to the reason. `*` matches anything.
    external
        An object that exists without a manifest, such as `Secret kube-system/ca`; may be given
        several times. `*` matches anything.
    """
    from pergola.bundle import lint as house

    objects = [obj for path in file for obj in _objects(path)]
    found = house.lint(objects, allow=_exceptions(allow), external=external or [])
    fine = f"checked {len(objects)}: all follow the {len(house.RULES)} house rules"
    show(
        output,
        data=[violation._asdict() for violation in found],
        text=lambda: say(*map(str, found) if found else [fine], sep="\n"),
    )
    if found:
        sys.exit(1)


@app.command
def rules(*, output: ListOutput = "table") -> None:
    """Print the house rules: the id and the reason of each."""
    from pergola.bundle.lint import RULES

    rows = [(rule.id, rule.reason) for rule in RULES]
    show(
        output,
        data=[{"id": id_, "reason": reason} for id_, reason in rows],
        names=[id_ for id_, _ in rows],
        text=lambda: print_table(("RULE", "REASON"), rows),
    )


def _objects(path: Path) -> "Iterator[JsonObject]":
    """Yield the objects of a file; those of a List one by one."""
    from pergola.api.objects import maps_at

    for where, value in _documents(path):
        if not isinstance(value, dict):
            raise ManifestsError(f"{where}: is not an object with apiVersion and kind")
        if value.get("kind") == "List":
            yield from maps_at(value, "items")
        else:
            yield value


def _exceptions(path: Path | None) -> dict[str, str]:
    if path is None:
        return {}
    exceptions: dict[str, str] = {}
    for where, value in _documents(path):
        if not isinstance(value, dict):
            raise ManifestsError(f"{where}: must be a map from exceptions to reasons")
        for exception, reason in value.items():
            if not isinstance(reason, str):
                raise ManifestsError(f'{where}: the reason for "{exception}" must be a text')
            exceptions[exception] = reason
    return exceptions


def _documents(path: Path) -> "Iterator[tuple[str, JsonValue]]":
    """Yield each document with content, and its place."""
    from pergola.kube.yaml import parse_documents

    try:
        content = sys.stdin.buffer.read() if str(path) == "-" else path.read_bytes()
    except OSError as error:
        raise ManifestsError(f"cannot read {path}: {error.strerror}") from None
    for document in parse_documents(content):
        where = f"{path}, document {document.index}"
        if document.error is not None:
            raise ManifestsError(f"{where}: {document.error}")
        if document.value is not None:
            yield where, document.value
