"""The page in a real browser: keys, live changes, a phone, thousands of objects."""

import orjson
import pytest

from pergola.api import marks
from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.cards import card_id, card_of
from pergola.kube.client import Client
from tests.support.chromium import Tab
from tests.support.dashboard_objects import (
    bad,
    create_managed_resource,
    good,
    managed_resource,
    report,
)
from tests.support.dashboard_site import DashboardSite

pytestmark = pytest.mark.timeout(300)

MANY = 5_000
PROBLEM = "Deployment web has no replicas"


def text(selector: str) -> str:
    return f"(document.querySelector({selector!r})?.innerText ?? '')"


def row(key: Key) -> str:
    return f"document.querySelector('[data-id=\"{card_id(MANAGED_RESOURCE, key)}\"]')"


async def test_the_keyboard_leads_to_an_object_its_problem_and_its_repair(
    tab: Tab, cluster_client: Client, namespace: str
) -> None:
    key = Key(namespace, "web")
    await create_managed_resource(cluster_client, key, bad(PROBLEM))

    await tab.press("/")
    await tab.type(namespace)
    await tab.until(f"{row(key)}?.querySelector('.mark.trouble')")
    for name in ("ArrowDown", "ArrowDown", "Enter"):
        await tab.press(name)
    await tab.until(f"{text('.why')}.includes({PROBLEM!r})")
    await tab.until("[...document.querySelectorAll('#details h3')].length >= 2")

    await report(cluster_client, key, good())
    await tab.until(f"{row(key)}?.querySelector('.mark.healthy')")
    await tab.until("document.querySelector('#details h2 .mark.healthy')")

    await tab.press("Escape")
    await tab.until("document.querySelector('#search').value === ''")
    await tab.press("Escape")
    await tab.until("document.querySelector('#details').hidden")
    await tab.press("3")
    await tab.until(f"{text('#heading')} === 'The last hour'")
    assert tab.complaints == []


TOO_WIDE = """document.documentElement.scrollWidth <= 390 ? [] :
  [...document.querySelectorAll("*")]
    .filter((each) => each.getBoundingClientRect().right > 390)
    .map((each) => `${each.tagName} ${each.id} ${each.className}`)"""
"""The elements that make a phone scroll sideways."""


@pytest.mark.soak("pages")
async def test_a_phone_shows_every_view_without_scrolling_sideways(
    tab: Tab, cluster_client: Client, namespace: str
) -> None:
    key = Key(namespace, "a-long-name-of-a-managed-resource-on-a-narrow-screen")
    await create_managed_resource(cluster_client, key, bad(f"{PROBLEM} " * 9))
    owned = {"metadata": {"annotations": {marks.ORIGIN: f"garden/{'long-' * 40}"}}}
    await cluster_client.patch(MANAGED_RESOURCE, key, owned)
    await tab.resize(390, 844)
    mine = "encodeURIComponent(" + orjson.dumps(card_id(MANAGED_RESOURCE, key)).decode() + ")"
    for view in ("'#/attention'", "'#/objects'", "'#/timeline'", f"'#/attention/' + {mine}"):
        await tab.run(f"location.hash = {view}")
        await tab.until("document.querySelector('.row, .why p')")
        # The list measures its rows anew in the frame after the resize.
        await tab.until(f"({TOO_WIDE}).length === 0")
    await tab.until(f"{text('.why')}.includes({PROBLEM!r})")
    assert await tab.run("getComputedStyle(document.querySelector('#listing')).display") == "none"
    assert tab.complaints == []


@pytest.mark.soak("pages")
async def test_only_the_visible_of_thousands_of_objects_are_elements(
    tab: Tab, locked: DashboardSite
) -> None:
    for number in range(MANY):
        obj = managed_resource(Key("many", f"resource-{number:04}"))
        obj["status"] = {"conditions": bad(PROBLEM, minutes=90)}
        locked.board.feed.put(card_of(MANAGED_RESOURCE, obj))
    await tab.press("/")
    await tab.type("many/resource")
    await tab.until(f"{text('#heading')} === '{MANY} found'")
    await tab.until("document.querySelectorAll('.row').length >= 5")
    assert await tab.run("document.querySelectorAll('.row').length") <= 60

    await tab.press("ArrowDown")
    await tab.press("End")
    last = Key("many", f"resource-{MANY - 1:04}")
    await tab.until(f"{row(last)}?.classList.contains('active')")
    await tab.until("document.querySelectorAll('.row').length >= 5")
    assert await tab.run("document.querySelectorAll('.row').length") <= 60
    assert tab.complaints == []
