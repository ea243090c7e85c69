"""Checks that every request must pass, and headers that every answer has.

A page of another origin can neither read answers nor send requests that change anything: the Host
header defeats DNS rebinding, the cookie is never sent across sites, and browsers report where a
request comes from.
"""

from typing import Final

from aiohttp import hdrs, web
from aiohttp.typedefs import Handler, Middleware

from pergola.dashboard.access.viewer import Door, Viewer
from pergola.kube.errors import ApiError, KubeError

VIEWER: Final = web.RequestKey("viewer", Viewer)
_POLICY: Final = "; ".join(
    [
        "default-src 'none'",
        "script-src 'self'",
        "style-src 'self'",
        "img-src 'self'",
        "connect-src 'self'",
        "base-uri 'none'",
        "form-action 'none'",
        "frame-ancestors 'none'",
        "require-trusted-types-for 'script'",
    ]
)
HEADERS: Final = {
    "Content-Security-Policy": _POLICY,
    "Cross-Origin-Opener-Policy": "same-origin",
    "Cross-Origin-Resource-Policy": "same-origin",
    "Permissions-Policy": "camera=(), geolocation=(), microphone=()",
    "Referrer-Policy": "no-referrer",
    "X-Content-Type-Options": "nosniff",
    "X-Frame-Options": "DENY",
}
_OWN_SITES: Final = ("same-origin", "none")
_READING: Final = ("GET", "HEAD")


def guards(door: Door) -> list[Middleware]:
    """Return the middlewares of a server, outermost first."""

    @web.middleware
    async def checked_host(request: web.Request, handler: Handler) -> web.StreamResponse:
        if not door.serves(request.headers.get(hdrs.HOST, "")):
            raise web.HTTPMisdirectedRequest(text="this server does not serve that host name\n")
        return await handler(request)

    @web.middleware
    async def signed_in(request: web.Request, handler: Handler) -> web.StreamResponse:
        if request.method not in _READING:
            _check_site(request)
        if request.path.startswith("/api/"):
            _check_site(request)
            viewer = await door.viewer(request)
            if viewer is None:
                raise web.HTTPUnauthorized(text="you are not signed in\n")
            request[VIEWER] = viewer
        return await handler(request)

    return [checked_host, _explained, signed_in]


def _check_site(request: web.Request) -> None:
    """Reject requests from pages of other sites; old browsers reveal them only in Origin."""
    origin = request.headers.get(hdrs.ORIGIN)
    own = f"{request.scheme}://{request.host}"
    if request.headers.get("Sec-Fetch-Site", "none") not in _OWN_SITES or origin not in (None, own):
        raise web.HTTPForbidden(text="requests of other sites are refused\n")


async def add_headers(request: web.Request, response: web.StreamResponse) -> None:
    """Add the headers of every answer, including errors."""
    response.headers.update(HEADERS)
    if not request.path.startswith("/assets/"):
        response.headers.setdefault(hdrs.CACHE_CONTROL, "no-store")


@web.middleware
async def _explained(request: web.Request, handler: Handler) -> web.StreamResponse:
    """Answer with the message of an API server error."""
    try:
        return await handler(request)
    except ApiError as error:
        status = error.code if error.code in (403, 404) else 502
        return web.Response(text=f"{error}\n", status=status)
    except KubeError as error:
        return web.Response(text=f"{error}\n", status=502)
