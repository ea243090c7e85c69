"""An oracle that does not answer is reported with the question; the next one is answered."""

import lzma
import os
import re
import select
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from datetime import date
from pathlib import Path

import msgspec
import pytest

from conformance import facts
from conformance.oracles import (
    AWS,
    GARDENER,
    ORACLES,
    SOURCES,
    Answer,
    Oracle,
    OracleError,
    OracleModule,
)
from conformance.subjects import SUBJECTS
from pergola.api.objects import JsonObject

QUESTION: JsonObject = {"object": {"kind": "Pod"}}
PROGRAM = """
import os, sys, time
for number, line in enumerate(sys.stdin):
    {act}
    print('{{"output": {{"said": 1}}}}', flush=True)
"""


@contextmanager
def oracle(act: str, timeout: float = 30.0) -> Iterator[Oracle]:
    with Oracle([sys.executable, "-c", PROGRAM.format(act=act)], timeout) as started:
        yield started


def test_an_answer_is_read() -> None:
    with oracle("pass") as asked:
        assert asked.ask("health", QUESTION) == Answer("output", {"said": 1})
        assert asked.ask("health", QUESTION).output == {"said": 1}


@pytest.mark.parametrize(
    ("act", "text"),
    [
        ("sys.exit(3)", "ended with return code 3"),
        ("print('panic: runtime error')", "the oracle's answer is not JSON: panic: runtime error"),
        ("print('[]')", "is none of output, error, panic, unanswered: []"),
        ("print('{}')", "is none of"),
        ('print(\'{"output": 1, "error": 2}\')', "is none of"),
    ],
)
def test_a_bad_answer_is_reported_with_the_question(act: str, text: str) -> None:
    with oracle(act) as asked, pytest.raises(OracleError) as error:
        asked.ask("health", QUESTION)

    assert text in str(error.value)
    assert '{"ask":"health","input":{"object":{"kind":"Pod"}}}' in str(error.value)


def test_a_silent_oracle_is_reported_and_ended() -> None:
    with oracle("time.sleep(600)", timeout=0.5) as asked:
        with pytest.raises(OracleError, match=r"did not answer within 0\.5 s; the question was:"):
            asked.ask("health", QUESTION)
        with pytest.raises(OracleError, match="did not answer"):
            asked.ask("health", QUESTION)


def test_an_oracle_that_reads_nothing_is_reported_however_long_the_question_is() -> None:
    command = [sys.executable, "-c", "import time; time.sleep(600)"]
    with Oracle(command, 0.5) as asked, pytest.raises(OracleError, match="did not answer"):
        asked.ask("health", {"text": "x" * 2**20})


def test_an_answer_of_two_lines_is_reported() -> None:
    with oracle("number and os.write(1, b'{\"output\": 2}' + bytes([10]) * 2)") as asked:
        assert asked.ask("health", QUESTION).output == {"said": 1}
        with pytest.raises(OracleError, match="has several lines"):
            asked.ask("health", QUESTION)
        assert asked.ask("health", QUESTION).output == {"said": 1}


def test_a_late_line_is_reported_and_not_taken_for_the_next_answer(tmp_path: Path) -> None:
    go = tmp_path / "go"
    os.mkfifo(go)
    program = f"{PROGRAM.format(act='pass')}    print(open({str(go)!r}).read(), flush=True)\n"
    with Oracle([sys.executable, "-c", program]) as asked:
        assert asked.ask("health", QUESTION).output == {"said": 1}
        go.write_text('{"output": {"said": 2}}')
        select.select([asked._process.stdout or 0], [], [], 30.0)
        with pytest.raises(OracleError, match="answered before it was asked"):
            asked.ask("health", QUESTION)


def test_a_question_ends_when_the_oracle_is_closed() -> None:
    with oracle("time.sleep(600)") as asked, ThreadPoolExecutor(max_workers=1) as thread:
        answer = thread.submit(asked.ask, "health", QUESTION)
        while "_process" not in asked.__dict__:
            pass
        asked.close()
        with pytest.raises(OracleError, match="the oracle was stopped"):
            answer.result()


def test_a_question_may_have_a_limit_of_its_own() -> None:
    with (
        oracle("time.sleep(600)") as asked,
        pytest.raises(OracleError, match=r"did not answer within 0\.5 s"),
    ):
        asked.ask("health", QUESTION, 0.5)


def test_an_oracle_is_started_again_after_it_ended() -> None:
    with oracle("number and sys.exit(1)") as asked:
        assert asked.ask("health", QUESTION).output == {"said": 1}
        with pytest.raises(OracleError):
            asked.ask("health", QUESTION)
        assert asked.ask("health", QUESTION).output == {"said": 1}


def test_a_missing_oracle_is_reported() -> None:
    with (
        Oracle(["/missing"]) as asked,
        pytest.raises(OracleError, match=r"cannot be started.*question was"),
    ):
        asked.ask("health", QUESTION)


def test_facts_of_another_version_are_refused(tmp_path: Path) -> None:
    subject = SUBJECTS[0]
    path = tmp_path / f"{subject.name}.jsonl.xz"
    head = facts.Head({GARDENER.original: "v1.2.3"}, date(2026, 1, 1))
    path.write_bytes(lzma.compress(msgspec.json.encode(head)))

    with pytest.raises(facts.WrongVersion, match=r"are of .*gardener v1\.2\.3, the oracle is of"):
        next(facts.read(subject, tmp_path))


def test_facts_are_read_as_they_were_written(tmp_path: Path) -> None:
    subject = SUBJECTS[0]
    written = [
        facts.Fact({"a": [1, None]}, Answer("output", {"b": True})),
        facts.Fact({}, Answer("panic", "x")),
    ]

    assert facts.write(subject, written, date(2026, 1, 1), tmp_path) == len(written)
    assert [*facts.read(subject, tmp_path)] == written


def test_all_oracles_speak_one_protocol() -> None:
    # Each is a Go module of its own; Go compiles a file that is a link.
    files = [*SOURCES.glob("*/protocol.go")]

    assert len(files) == len(ORACLES)
    assert {file.resolve() for file in files} == {SOURCES / GARDENER.name / "protocol.go"}


@pytest.mark.parametrize("of", ORACLES.values(), ids=lambda of: of.name)
def test_the_key_of_an_oracle_covers_its_local_modules(of: OracleModule) -> None:
    """Folders that are links would be left out of the key, and of copies."""
    folder = of.module.directory
    local = re.findall(r"=> (\./\S+)", (folder / "go.mod").read_text())
    assert bool(local) == (of is AWS)
    covered = {*folder.rglob("*.go")}
    for module in local:
        sources = {*(folder / module).rglob("*.go")}
        assert sources
        assert sources <= covered
