"""Processes that are measured, and those of resource managers."""

import os
import re
import resource
import subprocess
import sys
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple

import orjson

OWN = (str(Path(sys.executable).parent / "pergola"), "resource-manager")
"""The command of Pergola's resource manager."""


def cpu_seconds(pid: int) -> float:
    """Return the user and system seconds of a process so far."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def megabytes(pid: int, field: str) -> float:
    """Return a size from the status of a process, such as `VmHWM`; 0 without it."""
    status = Path(f"/proc/{pid}/status").read_text()
    found = re.search(rf"{field}:\s+(\d+) kB", status)
    return int(found[1]) / 1024 if found else 0.0


class Process:
    """A process that is measured."""

    def __init__(self, process: "subprocess.Popen[bytes]", log: Path | None = None) -> None:
        self._process = process
        self._log = log

    @property
    def cpu(self) -> float:
        """The user and system seconds so far."""
        return cpu_seconds(self._process.pid)

    @property
    def peak_megabytes(self) -> float:
        """The largest resident size so far."""
        found = megabytes(self._process.pid, "VmHWM")
        assert found
        return found

    def kill(self) -> None:
        """End the process at once, as a node that fails does."""
        self._process.kill()
        self._process.wait()

    def check(self) -> None:
        """Fail if the process ended."""
        if self._process.poll() is not None:
            log = self._log.read_text() if self._log else ""
            raise SystemExit(f"{log}the process ended with {self._process.returncode}")


class Program(NamedTuple):
    """A resource manager to measure.

    Attributes:
        command: The command, to which `--config FILE` is appended.
        settings: The configuration, apart from the connections.
        limits: The limits of requests in both connections.
    """

    command: tuple[str, ...]
    settings: Mapping[str, object]
    limits: Mapping[str, object]


def installed() -> Program:
    """Return `pergola resource-manager` with its defaults, as in an installation."""
    ports = {"healthProbes": {"port": 0}, "metrics": {"port": 0}}
    program = Program(OWN, {"server": ports}, {})
    start_in_vain(program.command)
    return program


def start_in_vain(command: Sequence[str]) -> float:
    """Return the CPU seconds of a start that ends at a missing configuration.

    The first start compiles Pergola's modules, as in an image.
    """
    before = resource.getrusage(resource.RUSAGE_CHILDREN)
    ended = subprocess.run(
        [*command, "--config", os.devnull],
        env=environment(),
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
        check=False,
    )
    assert ended.returncode
    after = resource.getrusage(resource.RUSAGE_CHILDREN)
    return after.ru_utime + after.ru_stime - before.ru_utime - before.ru_stime


def environment() -> dict[str, str]:
    """Return the environment without the variables that prevent compiled modules."""
    return {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}


@contextmanager
def resource_manager(program: Program, kubeconfig: Path, folder: Path) -> Iterator[Process]:
    """Run a resource manager whose source and target are the same cluster."""
    connection = {"kubeconfig": str(kubeconfig), **program.limits}
    config = {
        "apiVersion": "resourcemanager.config.gardener.cloud/v1alpha1",
        "kind": "ResourceManagerConfiguration",
        "sourceClientConnection": connection,
        "targetClientConnection": connection,
        "leaderElection": {"leaderElect": False},
        "logLevel": "error",
    }
    path = folder / "config.json"
    path.write_bytes(orjson.dumps({**config, **program.settings}))
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(
            [*program.command, "--config", str(path)], env=environment(), stdout=log, stderr=log
        )
    try:
        yield Process(process, folder / "log")
    finally:
        process.terminate()
        process.wait(timeout=30)
