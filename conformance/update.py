"""`python -m conformance.update ORACLE VERSION [--write]`: show the changes of another version.

Raises the module in a copy of the oracle, asks all recorded questions again, and prints which
answers the original changed. With `--write`, the oracle in this folder is raised.
"""

import argparse
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections import Counter
from collections.abc import Iterable
from pathlib import Path
from typing import Final

from conformance import facts
from conformance.comparison import differences, without_indexes
from conformance.oracles import ORACLES, SOURCES, Answer, Oracle, OracleError, OracleModule
from conformance.subjects import SUBJECTS
from conformance.subjects.subject import Subject
from pergola.api.objects import JsonObject
from pergola.kube.yaml import dump
from pergola.sandbox import SandboxError
from pergola.sandbox.binaries import cache
from pergola.sandbox.build import environment, explain
from pergola.sandbox.module import Module
from pergola.sandbox.toolchain import find_go

_LINES: Final = ("go.mod", "go.sum")
_REQUIRED: Final = re.compile(r"^require (\([^)]*\)|\S+ \S+.*)$", re.MULTILINE)


class CannotRaise(Exception):
    """The module cannot be raised; the text is Go's."""


def main() -> int:
    """Compare two versions of an original."""
    parser = argparse.ArgumentParser(prog="python -m conformance.update", description=__doc__)
    parser.add_argument("oracle", choices=sorted(ORACLES))
    parser.add_argument("version", help="of the original's module, such as v1.150.0")
    parser.add_argument("--write", action="store_true", help="raise the oracle in this folder")
    arguments = parser.parse_args()
    of = ORACLES[arguments.oracle]
    try:
        with tempfile.TemporaryDirectory() as folder:
            # Links to files of other folders become files of the copy.
            copied = shutil.copytree(SOURCES, Path(folder) / "oracle")
            module = raised(of, copied / of.name, arguments.version)
            with Oracle.built(module) as oracle:
                for subject in SUBJECTS:
                    if subject.of == of:
                        print(compared(subject, oracle), flush=True)
            if arguments.write:
                for name in _LINES:
                    shutil.copyfile(module.directory / name, SOURCES / of.name / name)
    except (CannotRaise, OracleError, SandboxError, facts.WrongVersion) as error:
        print(f"error: {error}", file=sys.stderr)
        return 1
    return 0


def raised(of: OracleModule, folder: Path, version: str) -> Module:
    """Give the original another version in a copy of an oracle, with everything it requires.

    Raises:
        CannotRaise: the version does not exist, or the oracle's code does not compile with it.
        SandboxError: Go cannot be found or downloaded.
    """
    go = find_go(of.module.go_version, cache(), print, os.environ)
    environ = {**environment(of.module, cache(), os.environ), "GOFLAGS": "-mod=mod"}
    # Without earlier requirements, the libraries have the versions that the original requires.
    pins = folder / "go.mod"
    pins.write_text(_REQUIRED.sub("", pins.read_text()))
    edits = [f"-require={of.original}@{version}"]
    edits += [f"-replace={part}={part}@{version}" for part in of.parts]
    for command in (["mod", "edit", *edits], ["mod", "tidy"], ["vet", "."]):
        done = subprocess.run(
            [go, *command], check=False, cwd=folder, env=environ, capture_output=True, text=True
        )
        if done.returncode:
            said = explain(done.stderr)
            raise CannotRaise(f"cannot raise {of.original} to {version}: {said}")
    return of.at(folder)


def compared(subject: Subject, oracle: Oracle) -> str:
    """Return a report of the changed answers to a subject's recorded questions."""
    changed: Counter[str] = Counter()
    examples: dict[str, JsonObject] = {}
    count = 0
    for count, fact in enumerate(facts.read(subject), 1):  # noqa: B007 # the last is the number
        now = oracle.ask(subject.ask, fact.question)
        before, after = (_meant(subject, answer) for answer in (fact.answer, now))
        for path in {without_indexes(each.path) for each in differences(before, after)}:
            changed[path] += 1
            examples.setdefault(path, fact.question)
    lines = [f"{subject.name}: {count} questions, {sum(changed.values())} answers changed"]
    lines += _details(changed.most_common(), examples)
    return "\n".join(lines)


def _meant(subject: Subject, answer: Answer) -> JsonObject:
    meaning = subject.meaning(answer) if answer.outcome == "output" else answer.value
    return {answer.outcome: meaning}


def _details(changed: Iterable[tuple[str, int]], examples: dict[str, JsonObject]) -> Iterable[str]:
    for path, times in changed:
        yield f"  {path}: {times} times, first for"
        yield from (f"    {line}" for line in dump(examples[path]).splitlines())


if __name__ == "__main__":
    sys.exit(main())
