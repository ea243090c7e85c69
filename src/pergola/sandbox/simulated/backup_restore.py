"""A stand-in for etcd-backup-restore: it answers requests for snapshots, and takes none.

Run as `python -m pergola.sandbox.simulated.backup_restore --address=HOST --port=PORT
--certificate=FILE --key=FILE --ca=FILE`.
"""

import argparse
import asyncio
import os
import ssl

from aiohttp import web

from pergola.runtime.logging import configure, get_logger
from pergola.runtime.process.event_loop import run
from pergola.runtime.process.signals import work_until_signalled

log = get_logger("backup-restore")


def application() -> web.Application:
    """Return the application: clients need a certificate, probes do not."""
    app = web.Application()
    app.add_routes([web.get("/snapshot/full", _snapshot), web.get("/healthz", _is_alive)])
    return app


async def _snapshot(request: web.Request) -> web.Response:
    certificate = request.transport and request.transport.get_extra_info("peercert")
    if not certificate:
        return web.Response(status=401, text="a snapshot requires a client certificate\n")
    log.info("snapshot requested", query=request.query_string)
    return web.json_response({"kind": "Full", "isFinal": request.query.get("final") == "true"})


async def _is_alive(request: web.Request) -> web.Response:
    del request
    return web.json_response({"health": True})


async def _serve(given: argparse.Namespace) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH, cafile=given.ca)
    context.load_cert_chain(given.certificate, given.key)
    context.verify_mode = ssl.CERT_OPTIONAL
    runner = web.AppRunner(application())
    await runner.setup()
    await web.TCPSite(runner, given.address, given.port, ssl_context=context).start()
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await runner.cleanup()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    for name in ("address", "certificate", "key", "ca"):
        parser.add_argument(f"--{name}", required=True)
    return parser.parse_args()


async def _main() -> None:
    configure("info", "json")
    await work_until_signalled(_serve(_arguments()))


if __name__ == "__main__":
    os.umask(0o077)
    run(_main)
