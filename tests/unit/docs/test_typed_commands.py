"""A reader notices when a command does not do what its page says."""

import os
import signal
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from tests.support.documented.pages import Block
from tests.support.documented.reader import Guide, Reader, Shows, Until
from tests.support.documented.terminal import CommandFailed, Terminal

SCRIPT = """\
for number in 1 2; do
  echo "line $number" \\
    | tr a-z A-Z
done
cat <<'EOF'
here
EOF
sleep 1000 &
kill %1
"""


class Page(Guide):
    """A guide with one block."""

    def blocks(self) -> Iterator[Block]:
        """Yield the block, which is the only place."""
        yield Block("page.md", "", 1, "sh", *self.places)


@pytest.fixture
def reader(tmp_path: Path) -> Reader:
    return Reader(tmp_path / "work", {"PATH": os.environ["PATH"]})


@pytest.fixture
def restored_handler() -> Iterator[None]:
    before = signal.getsignal(signal.SIGINT)
    yield
    signal.signal(signal.SIGINT, before)


def test_lines_are_typed_as_they_are_written(reader: Reader) -> None:
    with reader.terminal() as terminal:
        shown = terminal.type(SCRIPT)
    assert shown.split("\n")[:3] == ["LINE 1", "LINE 2", "here"]


@pytest.mark.parametrize("handler", [signal.default_int_handler, signal.SIG_IGN])
def test_a_command_that_runs_on_is_interrupted_once_it_has_displayed_its_text(
    reader: Reader, restored_handler: None, handler: Callable[..., object] | signal.Handlers
) -> None:
    """Tests that run in the background ignore Ctrl-C; what they type does not."""
    signal.signal(signal.SIGINT, handler)
    reader.follow(Page(("sh -c 'echo begun; exec sleep 1000'\n",), {"sh": Until("begun")}))


def test_a_command_that_reads_is_repeated_until_it_displays_its_text(reader: Reader) -> None:
    script = "(sleep 0.5; echo done > result) &\ncat result\n"
    reader.follow(Page((script,), {"cat": Shows("done")}))


@pytest.mark.parametrize(
    ("script", "expected"),
    [
        ("true\nfalse\n", {}),
        ("echo begun\n", {"echo": Until("never")}),
        ("nonsense --help\n", {}),
        ("true\n", {"true": Shows("", 1)}),
        ("true\n", {"echo": Shows("")}),
    ],
    ids=["fails", "ends", "unknown", "succeeds", "not typed"],
)
def test_a_page_that_is_wrong_fails(
    reader: Reader,
    monkeypatch: pytest.MonkeyPatch,
    script: str,
    expected: dict[str, Shows | Until],
) -> None:
    monkeypatch.setattr("tests.support.documented.reader._SECONDS", 0)
    with pytest.raises(AssertionError):
        reader.follow(Page((script,), expected))


def test_the_jobs_of_a_terminal_end_with_it(tmp_path: Path) -> None:
    with Terminal(tmp_path, {"PATH": os.environ["PATH"]}) as terminal:
        number = terminal.type("sleep 1000 &\necho job $!\n").split("job ")[1].split()[0]
    assert not Path(f"/proc/{number}").exists()


def test_a_failure_shows_the_command_and_its_output(reader: Reader) -> None:
    with pytest.raises(CommandFailed, match=r"ls missing\n[^\n]*missing[^\n]*\n\nended with 2"):
        reader.follow(Page(("ls missing\n",)))
