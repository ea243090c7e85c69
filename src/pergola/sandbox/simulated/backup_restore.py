"""A stand-in for etcd-backup-restore: a snapshot is a copy of the data.

Run as `python -m pergola.sandbox.simulated.backup_restore --address=HOST --port=PORT
--certificate=FILE --key=FILE [--data=FOLDER --snapshots=FOLDER]`. Without folders, it answers
requests for snapshots, and takes none. Like the original, it serves clients without a certificate.
"""

import argparse
import asyncio
import os
import ssl
from pathlib import Path
from typing import Final, NamedTuple

from aiohttp import web

from pergola.runtime.logging import configure, get_logger
from pergola.runtime.process.event_loop import run
from pergola.runtime.process.signals import work_until_signalled
from pergola.sandbox.simulated.backups import replace

log = get_logger("backup-restore")


class Folders(NamedTuple):
    """The folders of an etcd's data and of its latest snapshot."""

    data: Path
    snapshots: Path


_FOLDERS: Final = web.AppKey("folders", Folders)


def application(folders: Folders | None = None) -> web.Application:
    """Return the application; without folders, it takes no snapshots."""
    app = web.Application()
    if folders:
        app[_FOLDERS] = folders
    app.add_routes([web.get("/snapshot/full", _snapshot), web.get("/healthz", _is_alive)])
    return app


async def _snapshot(request: web.Request) -> web.Response:
    log.info("snapshot requested", query=request.query_string)
    folders = request.app.get(_FOLDERS)
    if folders:
        await asyncio.to_thread(replace, folders.data, folders.snapshots)
    return web.json_response({"kind": "Full", "isFinal": request.query.get("final") == "true"})


async def _is_alive(request: web.Request) -> web.Response:
    del request
    return web.json_response({"health": True})


async def _serve(given: argparse.Namespace) -> None:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(given.certificate, given.key)
    folders = Folders(given.data, given.snapshots) if given.data and given.snapshots else None
    runner = web.AppRunner(application(folders))
    await runner.setup()
    await web.TCPSite(runner, given.address, given.port, ssl_context=context).start()
    try:
        await asyncio.get_running_loop().create_future()
    finally:
        await runner.cleanup()


def _arguments() -> argparse.Namespace:
    parser = argparse.ArgumentParser()
    parser.add_argument("--port", type=int, required=True)
    for name in ("address", "certificate", "key"):
        parser.add_argument(f"--{name}", required=True)
    for name in ("data", "snapshots"):
        parser.add_argument(f"--{name}", type=Path)
    return parser.parse_args()


async def _main() -> None:
    configure("info", "json")
    await work_until_signalled(_serve(_arguments()))


if __name__ == "__main__":
    os.umask(0o077)
    run(_main)
