"""A stand-in for gardener-admission-controller: it admits everything, and authorizes nothing.

Without one, the virtual API server refuses all requests that match its webhooks. The real one is an
image for a real node (`pergola sandbox images`).
Run as `python -m pergola.sandbox.simulated.admission --config=FILE`, with Gardener's file.
"""

import asyncio
import os
import ssl
import sys
from pathlib import Path
from typing import Final

from aiohttp import web

from pergola.api.objects import JsonObject, map_at
from pergola.kube.yaml import parse
from pergola.runtime.logging import configure
from pergola.runtime.process.event_loop import run
from pergola.runtime.process.signals import work_until_signalled

_CONFIG: Final = "--config="
_EVERYTHING: Final = "/{path:.*}"


async def serve(server: JsonObject) -> None:
    """Serve webhooks and probes until cancelled.

    Args:
        server: the field `server` of the configuration.
    """
    webhooks, probes = map_at(server, "webhooks"), map_at(server, "healthProbes")
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
    certificates = Path(map_at(webhooks, "tls")["serverCertDir"])
    context.load_cert_chain(certificates / "tls.crt", certificates / "tls.key")
    runners = [
        await _listen(web.post(_EVERYTHING, _answer), webhooks, context),
        await _listen(web.get(_EVERYTHING, _is_alive), probes),
    ]
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        for runner in runners:
            await runner.cleanup()


def answer(review: JsonObject) -> JsonObject:
    """Return the answer to a review: allowed for admission, no opinion for authorization."""
    if review["kind"] == "SubjectAccessReview":
        return {**review, "status": {"allowed": False}}
    response = {"uid": map_at(review, "request").get("uid", ""), "allowed": True}
    return {"apiVersion": review["apiVersion"], "kind": review["kind"], "response": response}


async def _answer(request: web.Request) -> web.Response:
    return web.json_response(answer(await request.json()))


async def _is_alive(request: web.Request) -> web.Response:
    del request
    return web.Response(text="ok")


async def _listen(
    route: web.RouteDef, address: JsonObject, context: ssl.SSLContext | None = None
) -> web.AppRunner:
    app = web.Application()
    app.add_routes([route])
    runner = web.AppRunner(app)
    await runner.setup()
    await web.TCPSite(runner, address["bindAddress"], address["port"], ssl_context=context).start()
    return runner


def _server() -> JsonObject:
    """Return the field `server` of the configuration that the command line names."""
    file = next(arg for arg in sys.argv if arg.startswith(_CONFIG)).removeprefix(_CONFIG)
    configuration = parse(Path(file).read_bytes())
    return map_at(configuration, "server") if isinstance(configuration, dict) else {}


async def _main() -> None:
    configure("info", "json")
    await work_until_signalled(serve(_server()))


if __name__ == "__main__":
    os.umask(0o077)
    run(_main)
