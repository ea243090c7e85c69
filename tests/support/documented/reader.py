"""A reader of the documentation, who types each block as it is written."""

import re
import time
from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.support.documented.pages import Block, blocks
from tests.support.documented.terminal import CommandFailed, Terminal

_SECONDS: Final = 90
_PAUSE: Final = 0.3


@dataclass(frozen=True)
class Shows:
    """A command displays a text. The reader repeats it until it does, for a minute and a half.

    Attributes:
        text: a regular expression.
        status: the exit status.
    """

    text: str
    status: int = 0


@dataclass(frozen=True)
class Until:
    """A command runs on, and the reader presses Ctrl-C once it has displayed a text.

    Attributes:
        text: a regular expression.
    """

    text: str


@dataclass(frozen=True)
class Guide:
    """Blocks that a reader types into one terminal.

    Attributes:
        places: pages and their headings, as `PAGE: HEADING`; a page alone means all of its blocks.
        expected: what commands do, by their beginnings; several entries belong to the first, second
            and so on of these commands. All other commands end with 0.
        before: lines for what the page presupposes.
        after: lines that remove what others would notice.
    """

    places: tuple[str, ...]
    expected: Mapping[str, Shows | Until | tuple[Shows | Until, ...]] = field(default_factory=dict)
    before: str = ""
    after: str = ""

    def blocks(self) -> Iterator[Block]:
        """Yield the shell blocks."""
        for place in self.places:
            page, _, heading = place.partition(": ")
            found = [
                block
                for block in blocks(page)
                if block.language == "sh" and heading in {"", block.heading}
            ]
            assert found, f"{place} has no commands"
            yield from found


class Reader:
    """A reader with an installed wheel.

    Attributes:
        folder: their working directory, with the unpacked files.
        environment: the variables of their shells.
    """

    def __init__(
        self, folder: Path, environment: Mapping[str, str], within: Sequence[str] = ()
    ) -> None:
        folder.mkdir()
        self.folder = folder
        self.environment = environment
        self._within = within

    def terminal(self) -> Terminal:
        """Open a terminal."""
        return Terminal(self.folder, self.environment, self._within)

    def follow(self, guide: Guide, but: Collection[str] = ()) -> None:
        """Type the blocks of a guide.

        Args:
            but: the beginnings of blocks to leave out.

        Raises:
            CommandFailed: a command does not do what is expected.
        """
        expected = {
            begin: [each] if isinstance(each, Shows | Until) else [*each]
            for begin, each in guide.expected.items()
        }
        with self.terminal() as terminal:
            terminal.type(guide.before)
            try:
                for block in guide.blocks():
                    if block.text.startswith(tuple(but)):
                        continue
                    for command in _commands(block.text):
                        found = [
                            begin
                            for begin, left in expected.items()
                            if left and command.startswith(begin)
                        ]
                        _enter(terminal, command, expected[found[0]].pop(0) if found else None)
            finally:
                terminal.type(guide.after)
        assert not any(expected.values()), f"these did not occur: {expected}"


def _commands(text: str) -> Iterator[str]:
    """Yield a script's lines; lines that belong together are one."""
    lines = iter(text.splitlines())
    for line in lines:
        command = line
        while command.endswith("\\"):
            command = f"{command}\n{next(lines)}"
        if command.strip():
            yield command


def _enter(terminal: Terminal, command: str, expected: Shows | Until | None) -> None:
    if expected is None:
        terminal.type(command)
        return
    if isinstance(expected, Until):
        terminal.watch(command, expected.text)
        return
    deadline = time.monotonic() + _SECONDS
    while True:
        *first, last = command.splitlines()
        for line in first:
            terminal.type_line(line)
        status, output = terminal.type_line(last)
        if status == expected.status and re.search(expected.text, output, re.DOTALL):
            return
        if time.monotonic() > deadline:
            raise CommandFailed(f"{command}\n{output}\nended with {status}; expected: {expected}")
        time.sleep(_PAUSE)
