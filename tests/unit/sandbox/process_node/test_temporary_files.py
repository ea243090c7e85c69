"""Temporary files of a process: they lie in its pod's directory, and are deleted with it."""

import asyncio
import sys
from pathlib import Path
from typing import Final

from pergola.manifests import manifest
from pergola.sandbox.process_node.place import Place
from pergola.sandbox.process_node.process import Access, Process, Runnable
from pergola.sandbox.process_node.programs import NodeEnvironment, Program
from tests.support.cluster_config import cluster_config

_MAKE: Final = "import tempfile; print(tempfile.mkdtemp(), flush=True)"


async def test_temporary_files_lie_in_the_directory_of_the_pod(tmp_path: Path) -> None:
    ended = asyncio.Event()
    container = {"name": "main", "image": "example.org/program:1"}
    pod = manifest("v1", "Pod", "a", namespace="b", spec={"containers": [container]})
    pod["metadata"]["uid"] = "1"
    program = Program((sys.executable, "-c", _MAKE), lambda args, *_: args)
    process = Process(
        pod,
        Runnable(container, program),
        Place(tmp_path, "127.80.0.1"),
        NodeEnvironment(tmp_path, tmp_path / "egress", "http://127.0.0.1:1"),
        Access(cluster_config(), ""),
        lambda: ended.set() if process.last_exit() else None,
    )
    await process.start()
    try:
        await asyncio.wait_for(ended.wait(), 30)
    finally:
        await process.stop()
    made = Path((tmp_path / "main.log").read_text().splitlines()[0])
    assert made.is_relative_to(tmp_path)
