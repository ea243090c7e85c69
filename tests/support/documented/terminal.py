"""A terminal in which the commands of a page are typed as they are written."""

import fcntl
import os
import pty
import re
import select
import signal
import struct
import termios
import time
from collections.abc import Mapping, Sequence
from pathlib import Path
from types import TracebackType
from typing import Final, Self

_STATUS: Final = re.compile("\x02([0-9]+)\x03")
_ASKED: Final = re.compile("\x02([0-9]*)\x03")
_CONTROL: Final = re.compile(r"\x1b\[[0-9;?]*[A-Za-z]|\x1b[=>]|\r")
_SIZE: Final = (40, 200)
_CHUNK: Final = 65536
_INTERRUPTED: Final = 130
_SECONDS: Final = 600


class CommandFailed(AssertionError):
    """A command did not do what its page says."""


class Terminal:
    """An interactive bash on a pseudo-terminal.

    Lines are typed one after another, each once the shell asks for it. So jobs in the background,
    `kill %1`, here-documents and Ctrl-C work as they do for a reader.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], within: Sequence[str] = ()
    ) -> None:
        """Prepare a shell.

        Args:
            folder: its working directory.
            environment: its variables.
            within: a program and its arguments that run the shell, such as `nsenter`.
        """
        self._folder = folder
        self._line = (*within, "bash", "--norc", "--noprofile", "--noediting", "-i")
        prompts = {"PS1": "\x02$?\x03", "PS2": "\x02\x03"}
        self._environment = {**environment, **prompts, "TERM": "xterm", "HISTFILE": "/dev/null"}
        self._process = self._terminal = -1
        self._unread = ""
        self._asks = False

    def __enter__(self) -> Self:
        self._process, self._terminal = pty.fork()
        if self._process == 0:
            # A program in the background ignores Ctrl-C, and so would all that it starts.
            for each in signal.valid_signals() - {signal.SIGKILL, signal.SIGSTOP}:
                signal.signal(each, signal.SIG_DFL)
            os.chdir(self._folder)
            os.execvpe(self._line[0], self._line, self._environment)  # noqa: S606
        fcntl.ioctl(self._terminal, termios.TIOCSWINSZ, struct.pack("HHHH", *_SIZE, 0, 0))
        self._wait_for(_STATUS, _SECONDS)
        self.type("stty -echo")
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        """End what still runs, and the shell.

        Do not send Ctrl-C to a shell that waits for a command: bash loses one that arrives between
        its prompt and its read, and never prompts again.
        """
        try:
            if not self._asks:
                self._write("\x03")
                self._wait_for(_STATUS, _SECONDS)
            self.type_line("jobs -p | xargs -r kill; wait")
        finally:
            os.close(self._terminal)
            os.kill(self._process, signal.SIGKILL)
            os.waitpid(self._process, 0)

    def type(self, text: str) -> str:
        """Type complete commands, and return what they display.

        Raises:
            CommandFailed: one of them ends with another status than 0, or not in time.
        """
        displayed = ""
        for line in text.splitlines():
            status, output = self.type_line(line)
            displayed += output
            if status:
                raise CommandFailed(f"{line}\n{output}\nended with {status}")
        return displayed

    def type_line(self, line: str) -> tuple[int | None, str]:
        """Type a line, and return the exit status of its command and what it displayed.

        The status is None if the command continues on the next line.
        """
        self._write(f"{line}\n")
        match, output = self._wait_for(_ASKED, _SECONDS)
        return int(match[1]) if match[1] else None, output

    def begin(self, line: str, until: str) -> str:
        """Type a command that never ends, and return what it displays up to a text.

        Args:
            until: a regular expression.

        Raises:
            CommandFailed: the text does not appear.
        """
        self._write(f"{line}\n")
        match, seen = self._wait_for(re.compile(f"{until}|{_STATUS.pattern}", re.DOTALL), _SECONDS)
        if match.group().startswith("\x02"):
            raise CommandFailed(f"{line}\n{seen}\nended before it displayed {until}")
        return seen

    def watch(self, line: str, until: str) -> str:
        """Do the same, press Ctrl-C afterwards, and return all that the command displays.

        Raises:
            CommandFailed: the text does not appear, or Ctrl-C is reported as a failure.
        """
        seen = self.begin(line, until)
        self._write("\x03")
        match, rest = self._wait_for(_STATUS, _SECONDS)
        is_ours = line.startswith(("pergola ", "python "))
        if is_ours and int(match[1]) not in {0, _INTERRUPTED}:
            raise CommandFailed(f"{line}\n{seen}{rest}\nended with {match[1]} after Ctrl-C")
        return seen + rest

    def _write(self, text: str) -> None:
        self._asks = False
        os.write(self._terminal, text.encode())

    def _wait_for(self, pattern: re.Pattern[str], seconds: float) -> tuple[re.Match[str], str]:
        """Return the first match, and the text up to its end without prompts."""
        deadline = time.monotonic() + seconds
        while not (match := pattern.search(self._unread)):
            ready, _, _ = select.select(
                [self._terminal], [], [], max(deadline - time.monotonic(), 0)
            )
            if not ready:
                raise CommandFailed(f"{self._unread}\nshowed no {pattern.pattern!r} in time")
            data = os.read(self._terminal, _CHUNK)
            self._unread += _CONTROL.sub("", data.decode(errors="replace"))
        text, self._unread = self._unread[: match.end()], self._unread[match.end() :]
        self._asks = _STATUS.fullmatch(match.group()) is not None
        return match, _ASKED.sub("", text)
