"""Who may sign in to a shared dashboard, and for how long."""

import asyncio
import base64
from collections.abc import AsyncIterator
from datetime import UTC, datetime, timedelta
from pathlib import Path

import aiohttp
import orjson
import pytest
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.asymmetric import ec
from cryptography.hazmat.primitives.asymmetric.utils import decode_dss_signature
from cryptography.hazmat.primitives.serialization import load_pem_private_key

from pergola.api.kinds import SERVICE_ACCOUNT
from pergola.api.objects import Key
from pergola.cli.dashboard.answers import answers
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.testing.crds import install_extension_crds
from pergola.testing.waiting import PATIENCE
from tests.support.admission_site import write_pair
from tests.support.dashboard_cluster import ClusterSite, cluster_site, sign_in
from tests.support.dashboard_site import DashboardSite
from tests.support.proxy import CuttableProxy

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

REFUSED = "the API server does not accept this token"


async def until_out(browser: DashboardSite) -> None:
    """Wait until a session has ended; the API server caches a token for ten seconds."""
    async with asyncio.timeout(PATIENCE):
        while (await browser.get("/api/cluster"))[0] != 401:  # noqa: ASYNC110 - it is elsewhere
            await asyncio.sleep(0.2)


async def test_a_token_is_exchanged_for_a_cookie_that_only_this_page_sends(
    shared: ClusterSite,
) -> None:
    token = await shared.person("ann")
    async with shared.browser() as browser:
        _, page = await browser.get("/")
        assert "kubectl create token" in page
        assert "main.js" not in page
        assert await browser.get("/api/cluster") == (401, "you are not signed in\n")

        url = f"{shared.url}/sign-in"
        async with browser.session.post(url, json={"token": f" {token}\n"}) as answer:
            assert answer.status == 204
            cookie = answer.headers["Set-Cookie"]
        assert cookie.startswith("__Host-pergola-dashboard=")
        assert {"HttpOnly", "Secure", "SameSite=Strict", "Path=/"} <= set(cookie.split("; "))
        assert token not in cookie
        found = await browser.json("/api/cluster")
        user = f"system:serviceaccount:{shared.namespace}:ann"
        assert found.items() >= {"cluster": "test", "user": user, "session": True}.items()


async def test_the_authorization_header_of_a_proxy_takes_precedence(shared: ClusterSite) -> None:
    ann, bob = await shared.person("ann"), await shared.person("bob")
    async with shared.browser({"Authorization": f"Bearer {ann}"}) as browser:
        assert await sign_in(browser, bob) == (204, "")
        found = await browser.json("/api/cluster")
        assert (found["user"].rpartition(":")[2], found["session"]) == ("ann", False)


async def test_signing_out_ends_a_session(shared: ClusterSite) -> None:
    token = await shared.person("ann")
    async with shared.signed_in(token) as browser:
        [stolen] = [f"{it.key}={it.value}" for it in browser.session.cookie_jar]
        async with browser.session.post(f"{shared.url}/sign-out") as answer:
            assert answer.status == 204
        assert (await browser.get("/api/cluster"))[0] == 401
        async with shared.browser({"Cookie": stolen}) as thief:
            assert (await thief.get("/api/cluster"))[0] == 401


async def test_a_revoked_token_ends_the_session_and_the_stream(
    shared: ClusterSite, namespace: str
) -> None:
    token = await shared.person("ann")
    async with shared.signed_in(token) as browser:
        async with browser.stream() as messages:
            await anext(messages)
            await shared.admin.delete(SERVICE_ACCOUNT, Key(namespace, "ann"))
            async for _ in messages:  # ends with the session
                pass
        await until_out(browser)
        status, text = await sign_in(browser, token)
        assert status == 401
        assert REFUSED in text


async def test_an_expired_token_opens_no_session(shared: ClusterSite, kubeconfig: Path) -> None:
    key_file = kubeconfig.parent / "service-account.key"
    if not key_file.exists():
        pytest.skip("only the sandbox's key can sign tokens that have expired")
    key = load_pem_private_key(key_file.read_bytes(), None)
    assert isinstance(key, ec.EllipticCurvePrivateKey)
    token = expired(await shared.person("ann"), key)
    async with shared.browser() as browser:
        status, text = await sign_in(browser, token)
        assert status == 401
        assert REFUSED in text
    async with shared.browser({"Authorization": f"Bearer {token}"}) as browser:
        assert (await browser.get("/api/stream"))[0] == 401


def expired(token: str, key: ec.EllipticCurvePrivateKey) -> str:
    """Return a token of the same account that expired an hour ago."""
    head, body, _ = token.split(".")
    claims = orjson.loads(base64.urlsafe_b64decode(body + "=="))
    now = datetime.now(UTC)
    began, ended = (now - timedelta(hours=hours) for hours in (2, 1))
    claims |= {"exp": int(ended.timestamp())}
    claims |= dict.fromkeys(("iat", "nbf"), int(began.timestamp()))
    signed = f"{head}.{_encoded(orjson.dumps(claims))}"
    numbers = decode_dss_signature(key.sign(signed.encode(), ec.ECDSA(hashes.SHA256())))
    return f"{signed}.{_encoded(b''.join(number.to_bytes(32) for number in numbers))}"


def _encoded(content: bytes) -> str:
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


@pytest.mark.parametrize(
    "token", ["", "guessed", "two words", "a\r\nImpersonate-User: system:admin", "ü", "a" * 20_000]
)
async def test_text_that_is_not_a_token_opens_no_session(shared: ClusterSite, token: str) -> None:
    async with shared.browser() as browser:
        status, text = await sign_in(browser, token)
    assert status == 401
    assert REFUSED in text


async def test_impersonation_and_proxy_headers_are_ignored(shared: ClusterSite) -> None:
    claims = {
        "Impersonate-User": "kubernetes-admin",
        "Impersonate-Group": "system:masters",
        "X-Remote-User": "kubernetes-admin",
        "X-Remote-Group": "system:masters",
        "X-Forwarded-User": "kubernetes-admin",
    }
    async with shared.browser(claims) as browser:
        assert (await browser.get("/api/cluster"))[0] == 401
    token = await shared.person("ann")
    async with shared.browser({**claims, "Authorization": f"Bearer {token}"}) as browser:
        assert (await browser.json("/api/cluster"))["user"].endswith(":ann")
        node = {"apiVersion": "v1", "kind": "Namespace", "name": "default"}
        assert (await browser.get("/api/object", **node))[0] == 403
    for wrong in (token, f"Basic {token}", f"Bearer {token} {token}", "Bearer "):
        async with shared.browser({"Authorization": wrong}) as browser:
            assert (await browser.get("/api/cluster"))[0] == 401


async def test_two_authorization_headers_are_refused(shared: ClusterSite) -> None:
    ann, bob = await shared.person("ann"), await shared.person("bob")
    headers = [("Authorization", f"Bearer {ann}"), ("Authorization", f"Bearer {bob}")]
    async with shared.browser() as browser:
        url = f"{shared.url}/api/cluster"
        async with browser.session.get(url, headers=headers) as answer:
            assert answer.status in (400, 401)


async def test_another_site_can_neither_open_nor_end_a_session(shared: ClusterSite) -> None:
    ann, bob = await shared.person("ann"), await shared.person("bob")
    async with shared.signed_in(ann) as browser:
        for headers in (
            {"Sec-Fetch-Site": "cross-site"},
            {"Sec-Fetch-Site": "same-site"},
            {"Origin": "https://elsewhere.example"},
            {"Origin": "null"},
        ):
            status, text = await sign_in(browser, bob, **headers)
            assert (status, text) == (403, "requests of other sites are refused\n")
            url = f"{shared.url}/sign-out"
            async with browser.session.post(url, headers=headers) as answer:
                assert answer.status == 403
        form = aiohttp.FormData({"token": bob})
        async with browser.session.post(f"{shared.url}/sign-in", data=form) as answer:
            assert answer.status == 415
        assert (await browser.json("/api/cluster"))["user"].endswith(":ann")


async def test_requests_to_other_host_names_are_refused_but_other_ports_are_accepted(
    shared: ClusterSite,
) -> None:
    async with shared.browser() as browser:
        for host, status in (("localhost:1", 200), ("LOCALHOST", 200), ("example.org", 421)):
            async with browser.session.get(shared.url, headers={"Host": host}) as answer:
                assert answer.status == status


@pytest.fixture
async def proxy(kubeconfig: Path) -> AsyncIterator[CuttableProxy]:
    """Yield a proxy to the API server that can be cut off."""
    async with CuttableProxy(load(kubeconfig)) as way:
        yield way


async def test_while_the_api_server_is_unreachable_everyone_is_refused_with_a_reason(
    cluster_client: Client,
    kubeconfig: Path,
    namespace: str,
    tmp_path: Path,
    proxy: CuttableProxy,
) -> None:
    await install_extension_crds(cluster_client)
    config = load(kubeconfig)
    async with cluster_site(
        cluster_client, config, namespace, tmp_path, answers(), path=proxy.config
    ) as site:
        token = await site.person("ann")
        async with site.signed_in(token) as browser:
            async with browser.stream() as messages:
                await anext(messages)
                proxy.refuse()
                proxy.cut()
                async for _ in messages:  # the stream ends: the token cannot be checked
                    pass
            for path in ("/", "/api/cluster", "/api/stream"):
                status, text = await browser.get(path)
                assert status == 502
                assert text.startswith("the API server cannot be asked who you are: ")
            status, _ = await sign_in(browser, await site.person("bob"))
            assert status == 502
            proxy.accept()
            assert (await browser.json("/api/cluster"))["user"].endswith(":ann")


async def test_nothing_is_served_without_tls(shared: ClusterSite) -> None:
    address = shared.url.replace("https://", "http://")
    async with aiohttp.ClientSession() as session:
        with pytest.raises(aiohttp.ClientError):
            await session.get(address)


async def test_a_new_certificate_is_served_without_a_restart(shared: ClusterSite) -> None:
    shared.authority = write_pair(shared.folder)
    async with shared.browser() as browser:
        with pytest.raises(aiohttp.ClientConnectorCertificateError):
            await browser.get("/")
        shared.certificates.observe()
        status, _ = await browser.get("/")
    assert status == 200
