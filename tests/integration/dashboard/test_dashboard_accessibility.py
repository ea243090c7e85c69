"""axe-core finds no problems in any view, light or dark."""

from collections.abc import AsyncIterator
from contextlib import suppress
from typing import Final

import orjson
import pytest

from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.objects import Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.dashboard.state.cards import card_id
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from tests.support.aws.steps import TECHNICAL_ID, StepsOf
from tests.support.axe import load_axe, needs_axe, violations
from tests.support.chromium import Tab
from tests.support.dashboard_cluster import ClusterSite
from tests.support.dashboard_objects import bad, create_managed_resource
from tests.support.dashboard_site import DashboardSite
from tests.support.garden import GARDEN as WITH_UID

pytestmark = [pytest.mark.timeout(900), needs_axe]

PATIENCE: Final = 240.0  # deriving the tasks of a Garden takes seconds
RESOURCE: Final = Key("default", "accessible")
LOCAL: Final = Key("", "accessible")


@pytest.fixture
async def filled(lone_client: Client, lone_tab: Tab) -> AsyncIterator[Tab]:
    """Yield the page of a cluster with a broken ManagedResource and a Garden."""
    await create_managed_resource(lone_client, RESOURCE, bad("Deployment web has no replicas"))
    await lone_client.create({**WITH_UID, "metadata": {"name": LOCAL.name}})
    for view in ("attention", "objects", "timeline"):
        await show(lone_tab, f"#/{view}", "document.querySelector('.row')")
    yield lone_tab
    for kind, key in ((MANAGED_RESOURCE, RESOURCE), (GARDEN, LOCAL)):
        with suppress(NotFound):
            await lone_client.delete(kind, key)


async def show(tab: Tab, address: str, condition: str, patience: float = 60.0) -> None:
    await tab.run(f"location.hash = {orjson.dumps(address).decode()}")
    await tab.until(condition, patience)


def of(kind_and_key: str, part: str = "") -> str:
    return f"#/objects/{kind_and_key.replace('/', '%2F')}{part}"


async def test_axe_finds_no_problems_in_the_lists_and_the_details(filled: Tab) -> None:
    await load_axe(filled)
    for view in ("attention", "objects", "timeline"):
        await show(filled, f"#/{view}", "document.querySelector('.row')")
        assert await violations(filled) == [], view

    details = of(card_id(MANAGED_RESOURCE, RESOURCE))
    await show(filled, details, "document.querySelector('.why p')")
    await filled.run("document.querySelector('#details details').open = true")
    assert await violations(filled) == []

    await filled.press("?")
    await filled.until("document.querySelector('#keys').open")
    assert await violations(filled) == []


@pytest.mark.soak("pages")
async def test_axe_finds_no_problems_in_the_flow_of_a_garden(filled: Tab) -> None:
    flow = of(card_id(GARDEN, LOCAL), "/flow")
    await show(filled, flow, "document.querySelectorAll('.task').length > 50", PATIENCE)
    await load_axe(filled)
    await filled.run("document.querySelector('.task').click()")
    assert await violations(filled) == []


@pytest.mark.soak("pages")
async def test_axe_finds_no_problems_in_the_network_and_the_flow_of_an_infrastructure(
    lone_tab: Tab, cluster: StepsOf
) -> None:
    identity = card_id(INFRASTRUCTURE, Key(TECHNICAL_ID, "web"))
    drawn = "document.querySelector('img.network')?.naturalWidth > 100"
    await show(lone_tab, of(identity, "/network"), drawn)
    await lone_tab.until("!document.body.innerText.includes('asking AWS')")
    await load_axe(lone_tab)
    assert await violations(lone_tab) == []

    await show(lone_tab, of(identity, "/flow"), "document.querySelectorAll('.task').length > 5")
    await lone_tab.run("document.querySelector('.task').click()")
    assert await violations(lone_tab) == []


@pytest.mark.soak("pages")
async def test_axe_finds_no_problems_on_the_page_that_asks_for_the_link(
    browser: Tab, locked: DashboardSite
) -> None:
    await browser.open(locked.url)
    await browser.until("document.querySelector('main.notice')")
    await load_axe(browser)
    assert await violations(browser) == []


@pytest.mark.soak("pages")
async def test_axe_finds_no_problems_on_the_sign_in_page(browser: Tab, shared: ClusterSite) -> None:
    await browser.call("Security.setIgnoreCertificateErrors", ignore=True)
    await browser.open(shared.url)
    await browser.until("document.querySelector('#enter')?.disabled === false")
    await load_axe(browser)
    assert await violations(browser) == []
    await browser.run("document.querySelector('#problem').textContent = 'it is refused'")
    assert await violations(browser) == []
