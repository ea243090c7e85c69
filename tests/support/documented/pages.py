"""Pages of the documentation and their code blocks."""

import re
import textwrap
from collections.abc import Iterator
from pathlib import Path
from typing import Final, NamedTuple

ROOT: Final = Path(__file__).parents[3]
PAGES: Final = ROOT / "docs"
_FENCE: Final = re.compile(
    r"^#+ +(?P<heading>.*)$|^(?P<indent> *)```(?P<language>.*)\n(?P<text>(?s:.*?))^ *```$",
    flags=re.MULTILINE,
)


class Block(NamedTuple):
    """A fenced block of code.

    Attributes:
        page: The path of its page below `docs`.
        heading: The heading above it.
        line: The line of its fence, from 1.
        language: The word after the fence; empty if none follows.
        text: Its content, without the indentation of the fence.
    """

    page: str
    heading: str
    line: int
    language: str
    text: str

    @property
    def place(self) -> str:
        """The page and the heading, which survive a change of lines."""
        return f"{self.page}: {self.heading}"


def pages() -> list[str]:
    """Return all pages whose code is checked: READMEs and the documentation of users."""
    found = [path.relative_to(PAGES) for path in PAGES.rglob("*.md")]
    examples = [path.relative_to(ROOT) for path in (ROOT / "examples").rglob("*.md")]
    return [
        "../README.md",
        *sorted(str(path) for path in found if path.parts[0] != "decisions"),
        *sorted(f"../{path}" for path in examples),
    ]


def blocks(page: str) -> Iterator[Block]:
    """Yield the code blocks of a page."""
    text, heading = (PAGES / page).read_text(), ""
    for match in _FENCE.finditer(text):
        if match["heading"] is not None:
            heading = match["heading"].strip()
            continue
        line = text.count("\n", 0, match.start()) + 1
        code = textwrap.dedent(match["text"]) if match["indent"] else match["text"]
        yield Block(page, heading, line, match["language"], code)


def output(page: str) -> str:
    """Return a regular expression for the only block of output on a page; spaces may vary."""
    (text,) = (block.text for block in blocks(page) if block.language == "text")
    return r"\s+".join(re.escape(word) for word in text.split())


def commands(page: str, heading: str) -> list[str]:
    """Return the commands below a heading of a page, one per line.

    Raises:
        ValueError: There are none.
    """
    found = [each for each in blocks(page) if each.heading == heading and each.language == "sh"]
    if not found:
        raise ValueError(f"{page} has no commands below {heading}")
    joined = "".join(block.text for block in found).replace("\\\n", " ")
    return [line for line in joined.splitlines() if line.strip()]
