"""Signing in and out of a shared dashboard in a real browser."""

import pytest

from pergola.api.objects import Key
from pergola.dashboard.access.permissions import NOTHING
from tests.support.chromium import Tab
from tests.support.dashboard_cluster import ClusterSite
from tests.support.dashboard_objects import create_managed_resource, good

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built


async def test_a_person_signs_in_with_a_token_and_out_again(
    browser: Tab, shared: ClusterSite
) -> None:
    await browser.call("Security.setIgnoreCertificateErrors", ignore=True)
    await browser.open(shared.url)
    await browser.until("document.querySelector('#enter')?.disabled === false")
    await enter(browser, "guessed")
    await browser.until("document.querySelector('#problem')?.innerText.includes('not accept')")

    await enter(browser, await shared.person("ann"))
    await browser.until("document.querySelector('#live')?.className === 'on'")
    await browser.until("document.querySelector('#user')?.innerText.endsWith(':ann')")
    assert await browser.run("document.cookie") == ""

    await browser.run("document.querySelector('#sign-out').click()")
    await browser.until("document.querySelector('#token')")
    assert browser.complaints == []


@pytest.mark.soak("pages")
async def test_a_person_who_may_list_nothing_sees_one_sentence_about_it(
    browser: Tab, shared: ClusterSite
) -> None:
    await create_managed_resource(shared.admin, Key(shared.namespace, "hidden"), good())
    await browser.call("Security.setIgnoreCertificateErrors", ignore=True)
    await browser.open(shared.url)
    await browser.until("document.querySelector('#enter')?.disabled === false")
    await enter(browser, await shared.person("ann"))

    await browser.until("document.querySelector('#problems')?.innerText.includes('may not list')")
    assert await browser.run("document.querySelector('#problems').innerText") == (
        f"Permissions: {NOTHING}"
    )
    await browser.until("document.querySelector('#empty').hidden")
    assert browser.complaints == []


async def enter(browser: Tab, token: str) -> None:
    await browser.run("document.querySelector('#token').value = ''")
    await browser.run("document.querySelector('#token').focus()")
    await browser.type(token)
    await browser.press("Enter")
