"""Access to the dashboard on loopback."""

import pytest

from tests.support.dashboard_site import DashboardSite


async def test_without_a_session_the_page_only_says_how_to_sign_in(locked: DashboardSite) -> None:
    status, page = await locked.get("/")
    assert status == 200
    assert "pergola dashboard" in page
    assert "main.js" not in page

    for path in ("/api/stream", "/api/cluster", "/api/object", "/api/why", "/api/network.svg"):
        status, text = await locked.get(path)
        assert (status, text) == (401, "you are not signed in\n")


async def test_a_link_opens_one_session_and_is_then_replaced(locked: DashboardSite) -> None:
    [link] = locked.links
    async with locked.session.head(link) as answer:  # as programs do that preview links
        assert answer.status == 405
    await locked.sign_in()
    found = await locked.json("/api/cluster")
    assert found.items() >= {"cluster": "test", "user": "", "session": False}.items()
    _, page = await locked.get("/")
    assert "main.js" in page

    locked.session.cookie_jar.clear()
    async with locked.session.get(link) as answer:
        assert answer.status == 401
        assert "used before" in await answer.text()
    assert len(locked.links) == 2
    await locked.sign_in()
    assert await locked.json("/api/cluster")


async def test_a_wrong_token_opens_no_session(locked: DashboardSite) -> None:
    for query in ({"token": "guessed"}, {"token": ""}, {}):
        status, _ = await locked.get("/sign-in", **query)
        assert status == 401
    assert len(locked.links) == 1


async def test_scripts_and_other_sites_cannot_use_the_cookie(
    locked: DashboardSite,
) -> None:
    async with locked.session.get(locked.links[-1]) as answer:
        cookie = answer.headers["Set-Cookie"]
    assert "HttpOnly" in cookie
    assert "SameSite=Strict" in cookie
    assert cookie.startswith(f"pergola-dashboard-{locked.url.rpartition(':')[2]}=")


@pytest.mark.parametrize("host", ["rebound.example.org", "127.0.0.1", "localhost:1"])
async def test_requests_to_other_host_names_are_refused(site: DashboardSite, host: str) -> None:
    for path in ("/", "/assets/js/main.js", "/api/cluster"):
        async with site.session.get(f"{site.url}{path}", headers={"Host": host}) as answer:
            assert answer.status == 421


async def test_requests_from_other_sites_are_refused(site: DashboardSite) -> None:
    for origin in ("cross-site", "same-site"):
        headers = {"Sec-Fetch-Site": origin}
        async with site.session.get(f"{site.url}/api/cluster", headers=headers) as answer:
            assert answer.status == 403


async def test_every_answer_forbids_what_the_page_does_not_need(site: DashboardSite) -> None:
    for path in ("/", "/assets/js/main.js", "/api/cluster", "/api/object", "/absent"):
        async with site.session.get(f"{site.url}{path}") as answer:
            policy = answer.headers["Content-Security-Policy"]
            assert policy.startswith("default-src 'none'; script-src 'self'; style-src 'self'")
            assert "unsafe" not in policy
            assert answer.headers["X-Content-Type-Options"] == "nosniff"
            assert answer.headers["Referrer-Policy"] == "no-referrer"
            assert answer.headers["Cross-Origin-Resource-Policy"] == "same-origin"


async def test_a_file_in_the_cache_of_the_browser_is_not_sent_again(site: DashboardSite) -> None:
    url = f"{site.url}/assets/css/tokens.css"
    async with site.session.get(url) as answer:
        tag = answer.headers["ETag"]
    async with site.session.get(url, headers={"If-None-Match": tag}) as answer:
        assert answer.status == 304


async def test_only_files_of_the_page_are_served(site: DashboardSite) -> None:
    for path in ("/assets/..%2f__init__.py", "/assets/%2fetc%2fpasswd", "/assets/none.js"):
        async with site.session.get(f"{site.url}{path}") as answer:
            assert answer.status == 404
