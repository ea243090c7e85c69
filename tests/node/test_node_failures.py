"""Starts of nodes that fail or are interrupted: one sentence, and no leftovers."""

import asyncio
import os
import secrets
import signal
import subprocess
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import Iterator
from pathlib import Path

import pytest

from pergola.sandbox import binaries
from pergola.sandbox.components import ETCD
from pergola.sandbox.directory import directory_of
from pergola.testing.shared import require_node
from pergola.testing.waiting import PATIENCE
from tests.support.machine import cgroups_of, traces

pytestmark = [pytest.mark.soak("node"), pytest.mark.node]

PERGOLA = Path(sys.executable).with_name("pergola")
# Mount a small disk that only this command sees; without -n, this would leave /run/mount behind.
ON_A_SMALL_DISK = 'mount -n -t tmpfs -o "size=$1" small "$2" && shift 2 && exec "$@"'
OWNER = """
import asyncio
import signal
from pergola.sandbox import WITH_NODE, start
from pergola.cli.sandbox.errors import plain_errors, report

async def main():
    await start({name!r}, components=WITH_NODE, progress=report)
    report("ready")
    await asyncio.Event().wait()

# A run of tests in the background ignores SIGINT, and so would this process.
signal.signal(signal.SIGINT, signal.default_int_handler)
with plain_errors():
    asyncio.run(main())
"""


@pytest.fixture(autouse=True)
def unchanged_machine() -> Iterator[None]:
    """Check that a test leaves the machine as it found it."""
    require_node()
    before = traces()
    yield
    assert traces() == before


def on_a_small_disk(folder: Path, size: str, *words: str, **variables: str) -> str:
    """Run a command that fails with a disk of this size at the folder, and return its last line."""
    done = subprocess.run(
        ["unshare", "--mount", "sh", "-c", ON_A_SMALL_DISK, "-", size, folder, PERGOLA, *words],
        check=False,
        capture_output=True,
        text=True,
        env={**os.environ, **variables},
    )
    assert done.returncode == 1
    return done.stderr.strip().splitlines()[-1]


def test_a_full_disk_for_the_image_store_is_reported(tmp_path: Path) -> None:
    programs = binaries.find((ETCD,))[ETCD].parent

    complaint = on_a_small_disk(
        tmp_path,
        "4m",
        *("sandbox", "images", "build", "etcd"),
        XDG_CACHE_HOME=str(tmp_path),
        PERGOLA_SANDBOX_BIN=str(programs),
    )

    assert complaint.startswith(f"error: the disk of {tmp_path}/pergola/sandbox/images is full: ")
    assert complaint.endswith("or set XDG_CACHE_HOME to a folder on another disk")


def test_a_full_disk_of_the_node_is_reported() -> None:
    folder = directory_of("full").parent / f"disk-{secrets.token_hex(3)}"
    folder.mkdir()
    try:
        complaint = on_a_small_disk(
            folder, "200m", *("sandbox", "start", "--node"), XDG_RUNTIME_DIR=str(folder)
        )
    finally:
        folder.rmdir()

    assert complaint.startswith("error: cannot import ")
    assert complaint.endswith(
        f": the disk of {folder}/pergola-0/sandbox-default is full; make room, or set"
        " XDG_RUNTIME_DIR to a folder on another disk"
    )


@pytest.mark.parametrize("line", ["importing images", "ready"])
async def test_an_interrupted_start_of_a_node_leaves_nothing(line: str) -> None:
    name = f"interrupted-{secrets.token_hex(3)}"
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER.format(name=name), stderr=PIPE
    )
    try:
        await printed(owner, line)

        owner.send_signal(signal.SIGINT)

        _, rest = await owner.communicate()
    finally:
        if owner.returncode is None:
            owner.kill()

    assert owner.returncode == 130
    assert rest.decode().splitlines()[-1] == "interrupted; nothing is left running"
    await gone(name)


async def printed(process: Process, line: str) -> None:
    """Wait until a process has printed a line."""
    assert process.stderr is not None
    async for found in process.stderr:
        if found.decode().strip() == line:
            return
    raise AssertionError(f"it ended without the line {line!r}")


async def gone(name: str) -> None:
    """Wait until a sandbox has no files and no cgroups."""
    directory = directory_of(name)
    lock = directory.with_name(f"{directory.name}.lock")
    async with asyncio.timeout(PATIENCE):
        while directory.exists() or lock.exists():  # noqa: ASYNC110 - files send no events
            await asyncio.sleep(0.02)
    assert cgroups_of(directory) == []
