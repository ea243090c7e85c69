"""Recorded facts: questions with the originals' answers, a file per subject.

A file is compressed JSON lines. The first names the versions of the original and the date, each
other has a `question` and the `answer`.
"""

import lzma
from collections.abc import Iterable, Iterator, Mapping
from datetime import date
from pathlib import Path
from typing import Final

import msgspec
import orjson
from msgspec import Struct

from conformance.oracles import Answer
from conformance.subjects.subject import Subject
from pergola.api.objects import JsonObject

FACTS: Final = Path(__file__).parent / "facts"


class Head(Struct, frozen=True):
    """The first line of a file.

    Attributes:
        versions: by Go module.
        date: when the questions were asked.
    """

    versions: dict[str, str]
    date: date


class Fact(Struct, frozen=True):
    """A question with its answer."""

    question: JsonObject
    answer: Answer


class WrongVersion(Exception):
    """Facts of another version of the original than the one in the oracle's go.mod."""


def read(subject: Subject, folder: Path = FACTS) -> Iterator[Fact]:
    """Yield the facts of a subject.

    Raises:
        WrongVersion: they were recorded with another version; the text names both.
    """
    with lzma.open(_path(subject, folder)) as lines:
        recorded = msgspec.json.decode(next(lines), type=Head).versions
        if recorded != subject.of.versions:
            raise WrongVersion(
                f"the facts about {subject.name} are of {_listed(recorded)}, the oracle is of "
                f"{_listed(subject.of.versions)}: record them again with `make conformance "
                f'ARGS="{subject.name} --record"`'
            )
        for line in lines:
            value = orjson.loads(line)
            yield Fact(value["question"], Answer(*value["answer"].popitem()))


def write(subject: Subject, facts: Iterable[Fact], today: date, folder: Path = FACTS) -> int:
    """Write the facts of a subject, and return their number."""
    lines = [msgspec.json.encode(Head(subject.of.versions, today))]
    for fact in facts:
        row = {"question": fact.question, "answer": {fact.answer.outcome: fact.answer.value}}
        lines.append(orjson.dumps(row, option=orjson.OPT_SORT_KEYS))
    _path(subject, folder).write_bytes(lzma.compress(b"".join(line + b"\n" for line in lines)))
    return len(lines) - 1


def _path(subject: Subject, folder: Path) -> Path:
    return folder / f"{subject.name}.jsonl.xz"


def _listed(versions: Mapping[str, str]) -> str:
    return ", ".join(f"{name} {version}" for name, version in versions.items())
