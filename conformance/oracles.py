"""The oracles: programs that answer questions with the originals' code.

One line of JSON asks, and one answers:

    {"ask": "health", "input": {"object": {...}, "pods": []}}
    {"output": {"checked": true, "healthy": false, "progressing": false}}

Instead of `output`, an answer has `error` (the original returned an error), `panic` (it crashed),
or `unanswered` (the oracle cannot put the question to it; the text says why).
"""

import os
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from functools import cached_property
from pathlib import Path
from threading import RLock
from typing import Final, NamedTuple, Self

import orjson
from msgspec import Struct

from pergola.api.objects import JsonObject, JsonValue
from pergola.sandbox import build
from pergola.sandbox.binaries import place
from pergola.sandbox.module import Folder, Module

SOURCES: Final = Path(__file__).parent / "oracle"
"""The folder of all oracles."""
_Process = subprocess.Popen[bytes]
_CHUNK: Final = 1 << 20  # bytes
OUTCOMES: Final = ("output", "error", "panic", "unanswered")
"""The possible outcomes of a question."""


class OracleModule(Struct, frozen=True):
    """An oracle's Go module.

    Attributes:
        original: the module whose code answers.
        parts: modules of the original that have the same version.
        folders: folders of the original's files that the oracle reads, by name.
    """

    name: str
    original: str
    parts: tuple[str, ...] = ()
    folders: tuple[tuple[str, Folder], ...] = ()

    @property
    def module(self) -> Module:
        """The module to build."""
        return self.at(SOURCES / self.name)

    @property
    def versions(self) -> dict[str, str]:
        """The version of the original that go.mod requires, by module."""
        return {self.original: self.module.version}

    def at(self, folder: Path) -> Module:
        """Return the module to build from a folder."""
        program = {f"oracle-{self.name}": "."}
        return Module(folder, program, versioned=self.original, folders=dict(self.folders))


GARDENER: Final = OracleModule(
    "gardener",
    "github.com/gardener/gardener",
    ("github.com/gardener/gardener/pkg/apis",),
    (
        (
            "gardener-crds",
            Folder("github.com/gardener/gardener", "charts/gardener/operator/files"),
        ),
        (
            "gardener-resource-crds",
            Folder("github.com/gardener/gardener", "pkg/component/gardener/resourcemanager/assets"),
        ),
    ),
)
"""The oracle for Gardener."""
AWS: Final = OracleModule("aws", "github.com/gardener/gardener-extension-provider-aws")
"""The oracle for Gardener's extension for AWS."""
CALICO: Final = OracleModule("calico", "github.com/gardener/gardener-extension-networking-calico")
"""The oracle for Gardener's extension for Calico."""
FLUX: Final = OracleModule("flux", "github.com/fluxcd/pkg/runtime")
"""The oracle for the health checks of Flux."""
ARGOCD: Final = OracleModule("argocd", "github.com/argoproj/argo-cd/v3")
"""The oracle for the health checks of Argo CD."""
ORACLES: Final = {of.name: of for of in (GARDENER, AWS, CALICO, FLUX, ARGOCD)}
"""All oracles by name."""


class OracleError(Exception):
    """An oracle cannot be built, or does not answer; the text contains the question."""


class Answer(NamedTuple):
    """An answer.

    Attributes:
        outcome: one of `OUTCOMES`.
        value: for the outcome "output" the original's result, otherwise a text.
    """

    outcome: str
    value: JsonValue

    @property
    def output(self) -> JsonObject:
        """The original's result; empty if it is not an object."""
        found = self.value if self.outcome == "output" else None
        return found if isinstance(found, dict) else {}


class Oracle:
    """A running oracle.

    Args:
        timeout: seconds for one answer.
    """

    def __init__(self, command: list[str], timeout: float = 60.0) -> None:
        self._asking = RLock()
        self._command = command
        self._timeout = timeout

    @classmethod
    def built(cls, module: Module, environ: Mapping[str, str] = os.environ) -> Self:
        """Build an oracle unless that was done before, which takes a minute.

        Raises:
            SandboxError: it cannot be built.
        """
        (program,) = module.packages
        target = place(module, environ)
        parts = build.build(module, module.parts, target, _report, environ)
        return cls([str(parts[program])])

    def another(self) -> Self:
        """Return another process of the same program, for questions at the same time."""
        return type(self)(self._command, self._timeout)

    def ask(self, ask: str, question: JsonObject, timeout: float | None = None) -> Answer:
        """Ask one question.

        Args:
            timeout: seconds for this answer.

        Raises:
            OracleError: the oracle ended, was silent for too long, or answered with something else
                than one of the four fields. It is started again for the next question.
        """
        # Originals compare parts of objects as bytes: the order of keys must not depend on how a
        # question was made.
        asked = {"ask": ask, "input": question}
        line = orjson.dumps(asked, option=orjson.OPT_SORT_KEYS) + b"\n"
        try:
            with self._asking:
                return _answer(self._exchange(line, timeout or self._timeout))
        except OracleError as error:
            self.close()
            raise OracleError(f"{error}; the question was:\n{line.decode().strip()}") from None

    def close(self) -> None:
        """End the process; it starts again with the next question.

        Another thread may call this, which ends the current question.
        """
        process = self.__dict__.pop("_process", None)
        if process is not None:
            process.kill()
            with self._asking:  # the question has let go of the pipes
                process.communicate()

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.close()

    @cached_property
    def _process(self) -> _Process:
        try:
            process = subprocess.Popen(
                self._command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, bufsize=0
            )
        except OSError as error:
            raise OracleError(f"the oracle cannot be started: {error}") from None
        if process.stdin is None:
            raise AssertionError("it is a pipe")
        # A write must not block: a question may be longer than the pipe's buffer.
        os.set_blocking(process.stdin.fileno(), False)
        return process

    def _exchange(self, line: bytes, timeout: float) -> bytes:
        process = self._process
        stdin, stdout = _pipes(process)
        if select.select([stdout], [], [], 0)[0]:
            said = _short(self._read(process, stdout))
            raise OracleError(f"the oracle answered before it was asked: {said}")
        until = time.monotonic() + timeout
        answer = b""
        while b"\n" not in answer:
            left = max(0.0, until - time.monotonic())
            readable, writable, _ = select.select([stdout], [stdin] if line else [], [], left)
            if not readable and not writable:
                raise OracleError(f"the oracle did not answer within {timeout:g} s")
            if readable:
                answer += self._read(process, stdout)
            if writable:
                line = line[self._write(process, stdin, line) :]
        return answer

    def _read(self, process: _Process, stdout: int) -> bytes:
        chunk = os.read(stdout, _CHUNK)
        if not chunk:
            raise self._ended(process)
        return chunk

    def _write(self, process: _Process, stdin: int, line: bytes) -> int:
        try:
            return os.write(stdin, line)
        except BrokenPipeError:
            raise self._ended(process) from None

    def _ended(self, process: _Process) -> OracleError:
        if self.__dict__.get("_process") is not process:
            return OracleError("the oracle was stopped")
        return OracleError(f"the oracle ended with return code {process.wait()}")


def _pipes(process: _Process) -> tuple[int, int]:
    if process.stdin is None or process.stdout is None:
        raise AssertionError("both are pipes")
    return process.stdin.fileno(), process.stdout.fileno()


def _answer(text: bytes) -> Answer:
    line, rest = text.split(b"\n", 1)
    try:
        value = orjson.loads(line)
    except orjson.JSONDecodeError:
        raise OracleError(f"the oracle's answer is not JSON: {_short(line)}") from None
    if not isinstance(value, dict) or len(value) != 1 or not value.keys() <= set(OUTCOMES):
        raise OracleError(f"the oracle's answer is none of {', '.join(OUTCOMES)}: {_short(line)}")
    if rest:
        raise OracleError(f"the oracle's answer has several lines: {_short(text)}")
    return Answer(*value.popitem())


def _short(line: bytes) -> str:
    return line[:200].decode(errors="replace")


def _report(line: str) -> None:
    print(line, file=sys.stderr, flush=True)
