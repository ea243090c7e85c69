"""The layout of `pergola up`: it fits into 80 columns, with and without a terminal."""

import asyncio
import io
import re
import shlex
import sys
from pathlib import Path

import pytest
from rich.console import Console

from pergola.cli.up import chapters, progress
from pergola.cli.up.journal import journal
from pergola.cli.up.meanwhile import show_without_cluster
from pergola.cli.up.story import WIDTH, Story, UpError, broken, console, path_of, within
from pergola.runtime.logging import configure
from pergola.shipped import EXAMPLES

LONG = "a sentence about something that happens here " * 6
COMMAND = (
    "pergola aws show infrastructure/created -n shoot--up--created "
    "--endpoint-url http://127.0.0.1:36549"
)

TITLES = (
    chapters.CONTROL_PLANE,
    chapters.RESOURCES,
    chapters.EXTENSIONS,
    chapters.GARDEN,
    chapters.AROUND,
)


def story(*, terminal: bool = False) -> tuple[Story, io.StringIO]:
    stream = io.StringIO()
    plain = Console(
        file=stream, width=WIDTH, highlight=False, force_terminal=terminal, no_color=terminal
    )
    return Story(plain, chapters=2), stream


@pytest.fixture
def installed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Run as if installed in a folder with a short name that is not in the PATH."""
    monkeypatch.setattr(sys, "executable", "/opt/pergola/bin/python")
    monkeypatch.setenv("PATH", "/usr/bin")


async def test_while_programs_are_built_commands_without_a_cluster_are_shown() -> None:
    told, stream = story()
    await show_without_cluster(told)

    shown = stream.getvalue()
    assert "pergola explain -f examples/explain\n" in shown
    assert "pod-scheduler-name changes it" in shown
    assert "Garden local is valid" in shown
    assert "Infrastructure shoot--demo--byo/byo is valid" in shown
    assert max(map(len, shown.splitlines())) <= WIDTH


@pytest.mark.usefixtures("installed")
def test_all_lines_fit_into_the_page_without_trailing_spaces() -> None:
    told, stream = story()
    told.chapter("A title", LONG)
    told.say(LONG)
    told.line(LONG)
    told.try_it(
        Path("/run/user/1000/pergola-1000/sandbox-up/kubeconfig"), COMMAND, "kubectl get nodes"
    )
    with told.working() as show:
        show(LONG)
    lines = stream.getvalue().splitlines()
    assert max(map(len, lines)) <= WIDTH
    assert [line for line in lines if line != line.rstrip()] == []
    assert lines[1] == "1/2 A title"


def test_a_wrapped_command_is_still_one_command_for_a_shell() -> None:
    lines = broken(COMMAND, 74)
    assert len(lines) > 1
    assert max(map(len, lines)) <= 74
    joined = "".join(line.removesuffix("\\") for line in lines)
    assert shlex.split(joined) == shlex.split(COMMAND)


def test_an_example_is_shown_with_the_path_where_it_is_unpacked() -> None:
    assert path_of(EXAMPLES / "garden" / "garden.yaml") == "examples/garden/garden.yaml"
    assert path_of(Path("/srv/mine")) == "/srv/mine"


def test_a_short_command_stays_on_one_line() -> None:
    assert broken("kubectl get nodes", 74) == ["kubectl get nodes"]


@pytest.mark.usefixtures("installed")
def test_commands_of_pergola_are_printed_with_its_path() -> None:
    told, stream = story()
    told.try_it(Path("/kubeconfig"), "pergola tokens")
    assert "export PATH=/opt/pergola/bin:$PATH" in stream.getvalue()


def test_commands_of_kubectl_need_a_kubeconfig_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("PATH", "/usr/bin")
    told, stream = story()
    told.try_it(Path("/kubeconfig"), "kubectl get nodes")
    assert [line.strip() for line in stream.getvalue().splitlines()[1:]] == [
        "export KUBECONFIG=/kubeconfig",
        "kubectl get nodes",
    ]


def test_markup_in_progress_texts_is_printed_literally() -> None:
    told, stream = story()
    with told.working() as show:
        show("[1/5] etcd: 3 packages compiled, 5 s")
    assert stream.getvalue() == "    [1/5] etcd: 3 packages compiled, 5 s\n"


def test_a_long_step_prints_few_lines_without_a_terminal(monkeypatch: pytest.MonkeyPatch) -> None:
    now = 0.0
    monkeypatch.setattr(progress, "monotonic", lambda: now)
    told, stream = story()
    with told.working() as show:
        for _ in range(13):
            show(f"[1/2] etcd: {now:.0f} packages compiled, {now:.0f} s")
            now += 5
        show("[1/2] etcd: done in 65 s")
        show("[2/2] kwok: in progress, 5 s")
    assert [line.strip() for line in stream.getvalue().splitlines()] == [
        "[1/2] etcd: 0 packages compiled, 0 s",
        "[1/2] etcd: 30 packages compiled, 30 s",
        "[1/2] etcd: 60 packages compiled, 60 s",
        "[1/2] etcd: done in 65 s",
        "[2/2] kwok: in progress, 5 s",
    ]


def test_a_terminal_keeps_only_completed_steps() -> None:
    told, stream = story(terminal=True)
    with told.working() as show:
        show("[1/2] etcd: in progress, 5 s")
        show("[1/2] etcd: done in 65 s")
    text = re.sub(r"\x1b\[[0-9;?]*[A-Za-z]", "", stream.getvalue())
    assert "[1/2] etcd: done in 65 s\n" in text
    assert "in progress, 5 s\n" not in text


def test_a_build_that_outlives_the_story_is_interrupted() -> None:
    told, stream = story()
    with told.working() as show:
        show("[1/2] etcd: in progress, 5 s")
    with pytest.raises(progress.Interrupted):
        show("[1/2] etcd: in progress, 10 s")
    assert "10 s" not in stream.getvalue()


def test_no_color_is_respected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    assert console().no_color


def test_text_is_at_most_80_columns_wide_on_a_wide_terminal(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("COLUMNS", "200")
    assert console().width == WIDTH


async def test_a_timeout_names_the_awaited_object() -> None:
    with pytest.raises(UpError, match="waited 0 s for the moon"):
        async with within(0.0, "the moon"):
            await asyncio.Event().wait()


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    return tmp_path / "pergola"


def test_the_log_is_removed_after_success(cache: Path) -> None:
    with journal("up"):
        assert (cache / "up.log").exists()
    configure()
    assert not (cache / "up.log").exists()


def test_the_log_is_kept_after_a_failure_and_has_the_reason(cache: Path) -> None:
    with pytest.raises(ValueError, match="the reason"), journal("up") as path:
        raise ValueError("the reason")
    configure()
    assert path == cache / "up.log"
    assert "the demonstration failed" in path.read_text()
    assert "ValueError: the reason" in path.read_text()


@pytest.mark.parametrize("page", ["README.md", "docs/tutorials/first-steps.md"])
def test_a_page_lists_all_chapters(page: str) -> None:
    text = (Path(__file__).parents[3] / page).read_text()
    assert [title for title in TITLES if title not in text] == []
