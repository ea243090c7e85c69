"""Proxies from the environment, as programs in Go use them."""

import asyncio
from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import RawTestServer

from pergola.kube.environment_proxy import environment_proxy
from pergola.kube.errors import ConfigurationError, Unreachable
from pergola.kube.transport import Transport
from tests.support.cluster_config import cluster_config

PROXY = "http://proxy.example:3128"
API = "https://api.example.com:6443"
PROXIES = {"HTTPS_PROXY": PROXY, "HTTP_PROXY": "http://plain.example"}


@pytest.mark.parametrize(
    ("server", "environ", "proxy"),
    [
        (API, {}, None),
        (API, {"HTTPS_PROXY": PROXY}, PROXY),
        (API, {"https_proxy": PROXY}, PROXY),
        (API, {"HTTPS_PROXY": PROXY, "https_proxy": "http://other"}, PROXY),
        (API, {"HTTPS_PROXY": "", "https_proxy": PROXY}, PROXY),
        (API, {"HTTPS_PROXY": "proxy.example:3128"}, PROXY),
        (API, {"HTTPS_PROXY": "https://u:p@proxy:1"}, "https://u:p@proxy:1"),
        (API, {"HTTP_PROXY": PROXY}, None),
        (API, {"ALL_PROXY": PROXY}, None),
        ("http://api.example.com", PROXIES, "http://plain.example"),
        # a pod's own cluster has a proxy, this machine has none
        ("https://10.0.0.1:443", PROXIES, PROXY),
        ("https://kubernetes.default.svc", PROXIES, PROXY),
        ("https://localhost:6443", PROXIES, None),
        ("https://127.0.0.1:6443", PROXIES, None),
        ("https://127.9.9.9", PROXIES, None),
        ("https://[::1]:6443", PROXIES, None),
        ("https://[::ffff:127.0.0.1]:6443", PROXIES, None),
        ("https://localhost.example.com", PROXIES, PROXY),
    ],
)
def test_the_proxy_is_chosen_by_the_scheme_of_the_server(
    server: str, environ: Mapping[str, str], proxy: str | None
) -> None:
    assert environment_proxy(server, environ) == proxy


@pytest.mark.parametrize(
    ("server", "excluded", "direct"),
    [
        (API, "*", True),
        (API, "a, * ,b", True),
        (API, "example.com", True),
        (API, " EXAMPLE.com ", True),
        (API, ".example.com", True),
        (API, "*.example.com", True),
        (API, "api.example.com", True),
        (API, "api.example.com:6443", True),
        (API, "api.example.com:", True),
        (API, "api.example.com:443", False),
        (API, "example.com:6443", True),
        (API, "ple.com", False),
        (API, "*example.com", False),
        (API, ":6443", False),
        (API, "https://api.example.com", False),
        ("https://example.com", ".example.com", False),
        ("https://example.com", "*.example.com", False),
        ("https://example.com", "example.com:443", True),
        ("https://10.1.2.3", "10.0.0.0/8", True),
        ("https://10.1.2.3", "10.1.2.9/8", True),
        ("https://10.1.2.3", "10.0.0.0/255.0.0.0", False),
        ("https://10.1.2.3", "10.1.2.3", True),
        ("https://10.1.2.3", "10.1.2.3:443", True),
        ("https://10.1.2.3", "10.1.2.3:80", False),
        ("https://10.1.2.3", "10.1.2", False),
        ("https://10.1.2.3", "::ffff:10.1.2.3", True),
        ("https://11.1.2.3", "10.0.0.0/8,x", False),
        ("https://[fd00::1]:6443", "fd00::/8", True),
        ("https://[fd00::1]:6443", "fd00::1", True),
        ("https://[fd00::1]:6443", "[fd00::1]:6443", True),
        ("https://[fd00::1]:6443", "[fd00::1]:443", False),
        ("https://api.example.com", "10.0.0.0/8,/,x/8,10.0.0.0/99", False),
    ],
)
@pytest.mark.parametrize("variable", ["NO_PROXY", "no_proxy"])
def test_no_proxy_excludes_names_with_subdomains_addresses_and_networks(
    server: str, excluded: str, variable: str, *, direct: bool
) -> None:
    proxy = environment_proxy(server, {"HTTPS_PROXY": PROXY, variable: excluded})
    assert (proxy is None) is direct


@pytest.mark.parametrize("proxy", ["socks5://proxy:1080", "ftp://proxy", "http://"])
def test_another_proxy_is_an_error(proxy: str) -> None:
    with pytest.raises(ConfigurationError, match="HTTPS_PROXY is not an http or https URL"):
        environment_proxy(API, {"HTTPS_PROXY": proxy})


async def test_requests_to_a_server_elsewhere_use_the_proxy(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    asked: list[str] = []

    async def proxy(request: web.BaseRequest) -> web.Response:
        asked.append(f"{request.method} {request.raw_path}")
        return web.Response(body=b"{}", status=502 if request.method == "CONNECT" else 200)

    async with RawTestServer(proxy) as server:
        for variable in ("HTTP_PROXY", "HTTPS_PROXY"):
            monkeypatch.setenv(variable, str(server.make_url("")))
        monkeypatch.delenv("NO_PROXY", raising=False)
        plain = Transport(cluster_config("http://api.example:8080"))
        secure = Transport(cluster_config("https://api.example:6443"))
        assert await plain.request("GET", "/x") == b"{}"
        with pytest.raises(Unreachable):
            await secure.request("GET", "/x")
        await asyncio.gather(plain.close(), secure.close())
    assert asked == ["GET http://api.example:8080/x", "CONNECT api.example:6443"]
