"""Which tasks of a flow are drawn, and which lines between them."""

from typing import Any

import orjson
import pytest

from tests.support.chromium import Tab

pytestmark = pytest.mark.timeout(300)

DRAWN = """import("/assets/js/graph.js").then(({ drawn }) => Object.fromEntries(
  drawn(TASKS, OPTIONS).map(({ name, after }) => [name, after.sort()]),
))"""


def task(name: str, state: str, *after: str) -> dict[str, Any]:
    return {"name": name, "state": state, "flow": "setup", "after": after}


TASKS = [
    *(task(name, "done") for name in "abc"),
    task("d", "done", "a", "b"),
    task("e", "running", "a", "d", "c"),
    task("f", "skipped", "e"),
    task("g", "done", "e"),
    task("h", "pending", "e", "g"),
    task("i", "failed", "h"),
]


async def drawn(tab: Tab, *, only_active: bool, folded: bool) -> Any:
    options = {"isActiveOnly": only_active, "isFolded": folded}
    script = DRAWN.replace("TASKS", orjson.dumps(TASKS).decode())
    return await tab.run(script.replace("OPTIONS", orjson.dumps(options).decode()))


async def test_lines_that_others_imply_are_not_drawn(tab: Tab) -> None:
    assert await drawn(tab, only_active=False, folded=False) == {
        **{name: [] for name in "abc"},
        "d": ["a", "b"],
        "e": ["c", "d"],
        "g": ["e"],
        "h": ["g"],
        "i": ["h"],
    }


async def test_finished_tasks_are_one_unless_they_come_after_an_unfinished_one(tab: Tab) -> None:
    one = "4 finished tasks of setup"
    found = await drawn(tab, only_active=False, folded=True)
    assert found == {one: [], "e": [one], "g": ["e"], "h": ["g"], "i": ["h"]}


async def test_only_active_tasks_are_connected_through_those_that_are_hidden(tab: Tab) -> None:
    assert await drawn(tab, only_active=True, folded=True) == {"e": [], "i": ["e"]}


async def test_each_warning_is_a_point_below_the_line(tab: Tab) -> None:
    found = await tab.run(
        """import("/assets/js/timeline.js").then(({ bars }) => {
          const time = new Date(Date.now() - 90_000).toISOString();
          const [picture] = bars([{ time, state: "trouble" }, { time, state: "healthy" }]);
          return [picture.querySelectorAll("path.warning").length,
                  picture.querySelectorAll("rect.normal").length];
        })"""
    )
    assert found == [1, 1]
