"""Rows with long texts, the focused row, and the reasons for an object's state."""

from typing import Any

import orjson
import pytest

from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.cards import card_of
from tests.support.chromium import Tab
from tests.support.dashboard_objects import bad, managed_resource
from tests.support.dashboard_site import DashboardSite

pytestmark = pytest.mark.timeout(300)

DEPLOYMENT = "Deployment demo/web"
PROBLEM = "condition Available is False: it has no replicas that are available"
EXPLAINED = """
import("/assets/js/why.js").then(({ explained }) => {
  const box = document.createElement("div");
  document.body.append(box);
  box.append(...explained(ANSWER).elements);
  return { shown: box.innerText, all: box.textContent };
})
"""
ROWS = """[...document.querySelectorAll('.row .clamped')].map((it) => ({
  lines: it.clientHeight / parseFloat(getComputedStyle(it).lineHeight),
  ends: it.getBoundingClientRect().bottom <= it.closest('.row').getBoundingClientRect().bottom,
}))"""


def statement(
    subject: str, text: str, field: str = "text", causes: list[Any] | None = None
) -> dict[str, Any]:
    return {"object": subject, field: text, "because": "", "since": None, "causes": causes or []}


async def test_each_cause_is_said_once_and_what_is_no_cause_is_folded(tab: Tab) -> None:
    pod = statement("Pod demo/web-0", "it cannot be scheduled on any node", "problem")
    answer = {
        "answer": "ManagedResource demo/web is not as it should be",
        "decisions": [statement("", "1 Secret describes 3 objects")],
        "findings": [
            statement(
                "", f"condition ResourcesHealthy is False: {DEPLOYMENT}: {PROBLEM}", "problem"
            ),
            statement(DEPLOYMENT, PROBLEM, "problem", [pod, pod]),
        ],
        "writers": [statement("manager", "")],
        "nextSteps": ["add a node with more memory", "add a node with more memory"],
    }
    found = await tab.run(EXPLAINED.replace("ANSWER", orjson.dumps(answer).decode()))
    for once in (PROBLEM, "it cannot be scheduled", "add a node"):
        assert found["all"].count(once) == 1, found
        assert once in found["shown"]
    assert found["shown"].index("Pod demo/web-0") < found["shown"].index("add a node")
    for folded in ("1 Secret describes 3 objects", "manager"):
        assert folded in found["all"]
        assert folded not in found["shown"]


@pytest.mark.parametrize(("width", "height", "lines"), [(1440, 900, 2), (390, 844, 3)])
async def test_a_long_problem_takes_several_lines_within_its_row(
    tab: Tab, locked: DashboardSite, width: int, height: int, lines: int
) -> None:
    obj = managed_resource(Key("demo", "web"))
    obj["status"] = {"conditions": bad(f"{PROBLEM} " * 9, minutes=900)}
    await tab.resize(width, height)
    locked.board.feed.put(card_of(MANAGED_RESOURCE, obj))
    await tab.until(f"document.querySelector('.row')?.innerText.includes({PROBLEM!r})")
    first, *_ = await tab.run(ROWS)
    assert first == {"lines": pytest.approx(lines, abs=0.2), "ends": True}


async def test_the_focused_row_is_outlined_and_not_the_whole_list(
    tab: Tab, locked: DashboardSite
) -> None:
    obj = managed_resource(Key("demo", "web"))
    obj["status"] = {"conditions": bad(PROBLEM, minutes=900)}
    locked.board.feed.put(card_of(MANAGED_RESOURCE, obj))
    await tab.until("document.querySelector('.row')")
    await tab.press("1")
    await tab.press("ArrowDown")
    row = "document.querySelector('#list:focus-visible .row.active')"  # drawn again at changes
    await tab.until(f"{row} && getComputedStyle({row}).outlineStyle === 'solid'")
    list_style = "getComputedStyle(document.querySelector('#list')).outlineStyle"
    assert await tab.run(list_style) == "none"
