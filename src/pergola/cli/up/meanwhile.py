"""What `pergola up` shows before programs are built: commands that need no cluster."""

import asyncio
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Final, NamedTuple

from rich.markup import escape

from pergola.cli.up.story import path_of, within
from pergola.shipped import EXAMPLES

if TYPE_CHECKING:
    from pergola.cli.up.story import Story

_SECONDS: Final = 60.0
_LINES: Final = 5


class _Example(NamedTuple):
    """A command with a file of the examples.

    Attributes:
        says: What the output answers.
    """

    command: tuple[str, ...]
    file: Path
    says: str


_WITHOUT_CLUSTER: Final = (
    _Example(("explain",), EXAMPLES / "explain", "What webhooks would do to a pod, and why:"),
    _Example(
        ("garden", "check"),
        EXAMPLES / "garden" / "garden.yaml",
        "What admission would say of a Garden:",
    ),
    _Example(
        ("aws", "validate"),
        EXAMPLES / "aws" / "pattern-2-byo.yaml",
        "Whether a user's AWS network is described correctly:",
    ),
)


async def show_without_cluster(story: "Story") -> None:
    """Run commands that need no cluster, and show the beginning of their outputs.

    Raises:
        UpError: A command takes too long.
    """
    story.say("Some commands need no cluster. Try these while the programs are built:")
    for example in _WITHOUT_CLUSTER:
        lines = await _output(*example.command, "-f", str(example.file))
        typed = " ".join(("pergola", *example.command, "-f", path_of(example.file)))
        story.say(example.says)
        story.say(f"  [cyan]{escape(typed)}[/]")
        for line in lines[:_LINES]:
            story.line(f"  {line}")
        if len(lines) > _LINES:
            story.line("  …")


async def _output(*arguments: str) -> list[str]:
    """Return what a command prints, warnings included."""
    command = str(Path(sys.executable).with_name("pergola"))
    async with within(_SECONDS, f"pergola {arguments[0]}"):
        process = await asyncio.create_subprocess_exec(
            command,
            *arguments,
            stdin=asyncio.subprocess.DEVNULL,
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.STDOUT,
        )
        out, _ = await process.communicate()
    return out.decode(errors="replace").splitlines()
