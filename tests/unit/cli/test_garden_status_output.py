"""The output of `pergola garden status`: a tree, lines for logs, and JSON."""

from collections.abc import AsyncIterator
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from io import StringIO

import orjson
import pytest
from rich.console import Console

from pergola.cli.garden.status import until_over
from pergola.cli.garden.status_data import print_data
from pergola.cli.garden.status_lines import changes
from pergola.cli.garden.status_live import show
from pergola.cli.garden.status_tree import health, tree
from pergola.cli.safe_console import SafeConsole
from pergola.cli.text import lasting
from pergola.operator.reconcile.picture import Operation, Picture, State, Task, Wait

NOW = datetime(2026, 1, 1, 12, 0, tzinfo=UTC)
WAITS = tuple(Wait(f"Pod garden/{n}", f"it [crashes] {n}", NOW) for n in range(5))
TASKS = (
    Task(name="Deploying a", flow="Setup", state=State.DONE),
    Task(name="Deploying b", flow="Setup", state=State.SKIPPED, why="b is off"),
    Task(name="Deploying c", flow="Main", state=State.RUNNING, waits=WAITS, since=NOW),
    Task(name="Deploying d", flow="Main", state=State.PENDING, after=("Deploying c",)),
)
CONDITION = {
    "type": "RuntimeComponentsHealthy",
    "status": "False",
    "reason": "EtcdUnhealthy",
    "message": "etcd is down",
}
RUNNING = Picture(
    garden="local",
    at=NOW,
    operation=Operation("Reconcile", "Processing", 40, "Deploying c", NOW),
    tasks=TASKS,
)
FAILED = replace(
    RUNNING,
    is_over=True,
    operation=Operation("Reconcile", "Error", 40, "It failed.", NOW),
    tasks=(*TASKS[:2], replace(TASKS[2], state=State.FAILED, why="too slow"), TASKS[3]),
    errors=({"description": "too slow", "codes": ["ERR_CONFIGURATION_PROBLEM"]},),
    conditions=(CONDITION,),
)


def printed(picture: Picture, *, every: bool = False, rows: int = 0) -> str:
    out = StringIO()
    console = Console(file=out, width=100, highlight=False)
    console.print(tree(picture, NOW + timedelta(seconds=41), every=every, rows=rows))
    return out.getvalue()


async def stream(*pictures: Picture) -> AsyncIterator[Picture]:
    for picture in pictures:
        yield picture


def test_the_tree_shows_running_tasks_their_waits_and_durations() -> None:
    text = printed(RUNNING)
    assert "Garden local: Reconcile Processing, 40 % (41 s ago)" in text
    assert "Setup: 1 of 1 done, 1 skipped" in text
    assert "running   Deploying c for 41 s" in text
    assert "Pod garden/0: it [crashes] 0 (41 s)" in text
    assert "and 2 more" in text
    assert "then Deploying d" in text
    assert "Deploying a" not in text


def test_all_shows_every_task_with_its_reason() -> None:
    text = printed(RUNNING, every=True)
    assert "skipped   Deploying b: b is off" in text
    assert "after Deploying c" in text
    assert "Pod garden/4" in text


def test_the_tree_fits_a_small_terminal() -> None:
    tasks = [replace(TASKS[2], name=f"Deploying {n}") for n in range(20)]
    text = printed(replace(RUNNING, tasks=tuple(tasks)), rows=14)
    assert "… more than fit here" in text
    assert len(text.splitlines()) <= 14


def test_changes_are_lines_with_the_time_and_the_first_awaited_object() -> None:
    lines = list(changes(replace(RUNNING, tasks=TASKS[:1]), RUNNING))
    assert lines == [
        "12:00:00 skipped Deploying b: b is off",
        "12:00:00 running Deploying c (Pod garden/0: it [crashes] 0, and 4 more)",
        "12:00:00 pending Deploying d",
    ]
    assert list(changes(RUNNING, RUNNING)) == []
    gone = replace(RUNNING, exists=False)
    assert list(changes(RUNNING, gone)) == ["12:00:00 Garden local is gone"]


async def test_without_a_terminal_changes_are_printed_until_the_operation_ends() -> None:
    out = StringIO()
    pictures = until_over(stream(RUNNING, FAILED, RUNNING), once=False)
    last = await show(pictures, SafeConsole(file=out))
    assert last is FAILED
    assert "12:00:00 failed Deploying c: too slow\n" in out.getvalue()
    assert "12:00:00 Reconcile Error, 40 %\n" in out.getvalue()


async def test_the_last_tree_stays_on_the_terminal() -> None:
    out = StringIO()
    console = Console(file=out, width=100, height=40, force_terminal=True, color_system=None)
    last = await show(stream(RUNNING, FAILED), console)
    assert last is FAILED
    assert "too slow" in out.getvalue().rpartition("Garden local")[2]


def test_the_health_has_the_errors_with_codes_and_the_conditions_with_messages() -> None:
    out = StringIO()
    Console(file=out, width=100, highlight=False).print(health(FAILED))
    text = out.getvalue()
    assert "Reconcile Error, 40 %" in text
    assert "too slow [ERR_CONFIGURATION_PROBLEM]" in text
    assert "RuntimeComponentsHealthy" in text
    assert "False EtcdUnhealthy: etcd is down" in text


async def test_json_is_one_state_per_line(capsys: pytest.CaptureFixture[str]) -> None:
    await print_data(stream(RUNNING, FAILED), "json")
    first, second = map(orjson.loads, capsys.readouterr().out.splitlines())
    assert first["tasks"][2]["waitsFor"][0] == {
        "object": "Pod garden/0",
        "problem": "it [crashes] 0",
        "since": "2026-01-01T12:00:00Z",
        "exists": True,
    }
    assert first["tasks"][1] | {"name": "Deploying b", "why": "b is off"} == first["tasks"][1]
    assert second["isOver"] is True
    assert second["lastErrors"][0]["codes"] == ["ERR_CONFIGURATION_PROBLEM"]


@pytest.mark.parametrize(
    ("seconds", "text"), [(41, "41 s"), (121, "2 min"), (7300, "2 h"), (200000, "2 d")]
)
def test_durations_are_abbreviated(seconds: int, text: str) -> None:
    assert lasting(NOW, NOW + timedelta(seconds=seconds)) == text
