"""Whatever a cluster contains, a terminal gets none of its control characters and no markup."""

import ast
import io
from pathlib import Path
from typing import Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rich.table import Table
from rich.text import Text
from rich.tree import Tree

from pergola.api.visible_text import visible
from pergola.cli.safe_console import SafeConsole
from pergola.cli.text import say

CLI: Final = Path(__file__).parents[3] / "src/pergola/cli"
HOSTILE: Final = (
    "fine\x1b]0;TITLE\x07\x1b[2J\x1b[1;1H\x1b[32mhealthy.\r\x9b2J\x1b]52;c;ZXZpbA==\x07\x7f\u202etxt"
    " [/x] [link=https://evil.example]here[/link] [bold]:warning:"
)
CONTROLS: Final = "".join(map(chr, [*range(0x20), *range(0x7F, 0xA0)])) + "\u202e\u2066\u200f\ud800"
ALLOWED: Final = {"\n", "\t"}


def is_harmless(printed: str) -> bool:
    return not {*printed} & ({*CONTROLS} - ALLOWED)


@given(st.text(st.sampled_from(CONTROLS + "ab \u00e9\u4e2d\U0001f600")))
def test_no_text_keeps_a_control_character(text: str) -> None:
    shown = visible(text)
    assert is_harmless(shown)
    assert visible(shown) == shown
    assert visible("né 中 😀\ttab\n") == "né 中 😀\ttab\n"


@given(st.text())
def test_json_keeps_its_meaning(text: str) -> None:
    try:
        document = orjson.dumps({"message": text}).decode()
    except TypeError:
        return  # a lone surrogate
    assert orjson.loads(visible(document)) == {"message": text}


def test_printing_shows_control_characters(capsys: pytest.CaptureFixture[str]) -> None:
    say("state:", HOSTILE, 5, end="!\n")
    printed = capsys.readouterr().out
    assert printed.startswith(r"state: fine\x1b]0;TITLE\x07\x1b[2J")
    assert printed.endswith(" 5!\n")
    assert is_harmless(printed)


@pytest.mark.parametrize("is_terminal", [True, False])
def test_a_console_sends_only_its_own_sequences(*, is_terminal: bool) -> None:
    class Terminal(io.StringIO):
        def isatty(self) -> bool:
            return is_terminal

    out = Terminal()
    console = SafeConsole(file=out, width=2000)
    table = Table(title=HOSTILE)
    table.add_column(HOSTILE)
    table.add_row(HOSTILE)
    tree = Tree(Text(HOSTILE, style="bold"))
    tree.add(HOSTILE)
    for each in (HOSTILE, Text(HOSTILE), table, tree):
        console.print(each)
    printed = out.getvalue()
    assert "\\x1b[2J" in printed
    assert "[/x] [link=https://evil.example]here[/link] [bold]:warning:" in printed
    # rich's own sequences set styles only
    for sequence in printed.split("\x1b")[1:]:
        assert sequence.startswith("[")
        assert sequence[1:].lstrip("0123456789;").startswith("m")
    assert is_harmless(printed.replace("\x1b[", ""))


def test_commands_print_only_through_the_functions_that_show_control_characters() -> None:
    found = []
    for path in sorted(CLI.rglob("*.py")):
        source = path.read_text()
        for node in ast.walk(ast.parse(source)):
            if not isinstance(node, ast.Call) or not isinstance(node.func, ast.Name):
                continue
            if node.func.id in ("print", "Console"):
                found.append(str(path.relative_to(CLI)))
    assert {*found} == {"text.py"}  # the function itself
