"""The list of what needs attention: filters, causes, commands, and its text when it is empty."""

from collections.abc import Mapping
from typing import Any

import orjson
import pytest

from pergola import __version__
from pergola.api.objects import Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.cards import card_id, card_of
from tests.support.chromium import Tab
from tests.support.dashboard_objects import bad, good, managed_resource
from tests.support.dashboard_site import DashboardSite

pytestmark = pytest.mark.timeout(300)

MINE = "filter-tests"
CAUSE = "the CustomResourceDefinition is not established"
NAMES = "[...document.querySelectorAll('.row .name')].map((it) => it.innerText)"
CHOOSE = """(() => {{
  const field = document.querySelector({selector!r});
  field.value = {value!r};
  field.dispatchEvent(new Event("change"));
}})()"""


def put(site: DashboardSite, name: str, problem: str = "", **metadata: Mapping[str, Any]) -> None:
    """Put the card of a ManagedResource with a problem, or of a good one, into the feed."""
    obj = managed_resource(Key(MINE, name))
    obj["metadata"] |= metadata
    obj["status"] = {"conditions": bad(problem, minutes=900) if problem else good()}
    site.board.feed.put(card_of(MANAGED_RESOURCE, obj))


async def test_filters_are_kept_in_the_address(tab: Tab, locked: DashboardSite) -> None:
    origin = {"resources.gardener.cloud/origin": "runtime:garden/system"}
    put(locked, "one", "it is broken", annotations=origin)
    put(locked, "two", "it is broken too", labels={"origin": "gardener"})
    await tab.until(f"{NAMES}.includes('two')")

    await tab.run(CHOOSE.format(selector="#by-namespace", value=MINE))
    await tab.until(f"{NAMES}.length === 2")
    await tab.run(CHOOSE.format(selector="#by-owner", value="ManagedResource garden/system"))
    await tab.until(f"{NAMES}.length === 1")
    assert await tab.run(NAMES) == ["one"]
    await tab.run("document.querySelector('.row').click()")
    await tab.until("document.querySelector('#details h2')")
    assert "?namespace=filter-tests&owner=" in await tab.run("location.hash")

    await tab.run("location.hash = '#/attention?owner=gardener'")
    await tab.until(f"{NAMES}.join() === 'two'")
    assert await tab.run("document.querySelector('#by-owner').value") == "gardener"
    await tab.run("location.hash = '#/attention?kind=Garden'")
    await tab.until("document.querySelector('#empty').innerText.includes('matches the filters')")
    await tab.run("document.querySelector('#empty a').click()")
    await tab.until(f"{NAMES}.includes('one')")
    assert tab.complaints == []


async def test_objects_with_the_same_cause_are_one_row_until_it_is_unfolded(
    tab: Tab, locked: DashboardSite
) -> None:
    for name in ("csi", "snapshots", "volumes"):
        put(locked, name, CAUSE)
    put(locked, "web", "it has no replicas")
    await tab.run(f"location.hash = '#/attention?namespace={MINE}'")
    await tab.until(f"{NAMES}.length === 2")
    assert sorted(await tab.run(NAMES)) == ["3 ManagedResources", "web"]

    await tab.press("1")
    await tab.press("Home")
    await tab.until("document.querySelector('.row.active[aria-expanded=\"false\"]')")
    await tab.press("ArrowRight")
    await tab.until(f"{NAMES}.length === 5")
    await tab.press("ArrowLeft")
    await tab.until(f"{NAMES}.length === 2")
    await tab.run("document.querySelector('#grouping').click()")
    await tab.until(f"{NAMES}.join() === 'csi,snapshots,volumes,web'")
    assert "grouped=no" in await tab.run("location.hash")
    assert tab.complaints == []


async def test_when_nothing_needs_attention_the_page_says_what_was_checked(tab: Tab) -> None:
    cards = []
    for name in ("one", "two"):
        obj = managed_resource(Key(MINE, name))
        obj["status"] = {"conditions": good()}
        cards.append(card_of(MANAGED_RESOURCE, obj).data())
    script = """
    Promise.all(["attention", "nothing", "store"].map((it) => import(`/assets/js/${it}.js`)))
      .then(([{ ATTENTION }, { nothing }, { Store }]) => {
        const store = new Store();
        const said = () => nothing(ATTENTION, store, 0).map((it) => it.textContent).join(" ");
        store.apply({ items: ITEMS, gone: [] }, true);
        const before = said();
        store.apply({ items: [], gone: [ITEMS[0].id] }, false);
        return [before, said()];
      })
    """
    before, after = await tab.run(script.replace("ITEMS", orjson.dumps(cards).decode()))
    assert before.startswith("Nothing needs attention. Checked: 2 ManagedResources. No change was")
    assert "Checked: 1 ManagedResource. The last change was seen at" in after


async def test_commands_about_an_object_are_copied(tab: Tab, locked: DashboardSite) -> None:
    put(locked, "web", "it has no replicas")
    # The clipboard of a browser without a window waits for an answer of its user.
    await tab.run("void (navigator.clipboard.writeText = async (it) => { window.copied = it; })")
    script = """import("/assets/js/commands.js").then(({ commands }) => {
      document.body.append(commands(ID));
      return [...document.querySelectorAll(".commands code")].map((it) => it.innerText);
    })"""
    identity = card_id(MANAGED_RESOURCE, Key(MINE, "web"))
    shown = await tab.run(script.replace("ID", orjson.dumps(identity).decode()))
    named = f"managedresource.resources.gardener.cloud/web -n {MINE}"
    assert shown[:2] == [f"pergola why {named}", f"kubectl get {named} -o yaml"]
    await tab.run("document.querySelector('.commands button').click()")
    await tab.until("document.querySelector('.commands button').innerText === 'Copied'")
    assert await tab.run("window.copied") == shown[0]


async def test_the_page_names_its_version_and_links_to_the_documentation(tab: Tab) -> None:
    await tab.until(f"document.querySelector('#version').innerText === {__version__!r}")
    assert (await tab.run("document.querySelector('#documentation').href")).startswith("https://")
