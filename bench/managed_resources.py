"""The resource manager under load: figures and their targets (design §4).

    python -m bench managed-resources                  # 300 ManagedResources, the table
    python -m bench managed-resources --scale          # 100, 300, 1,000 and 3,000
    python -m bench managed-resources -n 50 --quiet 5  # a quick run

Each run starts a new sandbox, fills it, starts `pergola resource-manager` as a process and measures
from outside: requests by the API server's counters, CPU and memory by /proc.

Durations depend on the machine and its other load. The first lines therefore show how long a client
takes to send the same writes, and a bare client to create the same objects, in the same run.
"""

import argparse
import asyncio
import os
import re
import resource
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import (
    AsyncIterator,
    Awaitable,
    Callable,
    Coroutine,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import NamedTuple

import orjson

from bench import restart
from bench.tables import show
from bench.watching import watches
from pergola import sandbox
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import JsonObject, Key
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.watch import watch
from pergola.resource_manager.source import keep_resource
from pergola.runtime.caching.cache import Cache
from pergola.testing.crds import install_crds
from pergola.testing.world import is_applied, is_ready

NAMESPACE = "bench"
PATIENCE = 600.0
_NAMESPACE_OBJECT: JsonObject = {
    "apiVersion": "v1",
    "kind": "Namespace",
    "metadata": {"name": NAMESPACE},
}
_IN_FLIGHT = 16
OWN = (str(Path(sys.executable).parent / "pergola"), "resource-manager")
"""The command of Pergola's resource manager."""


class Effort(NamedTuple):
    """What a client needs to send the writes of a run: seconds, and CPU seconds of the client."""

    seconds: float = 0.0
    cpu: float = 0.0


NO_EFFORT = Effort()


@dataclass
class Figures:
    """The figures of one run; times in seconds."""

    count: int
    bare: Effort = NO_EFFORT
    same: Effort = NO_EFFORT
    applied: float = 0.0
    ready: float = 0.0
    requests: int = 0
    status_writes: int = 0
    cpu_applied: float = 0.0
    cpu_ready: float = 0.0
    cpu_120: float = 0.0
    peak_megabytes: float = 0.0
    quiet_seconds: float = 0.0
    quiet_requests: int = 0
    quiet_cpu: float = 0.0
    repairs: list[float] = field(default_factory=list)
    restarted: restart.Restart | None = None

    def rows(self) -> list[tuple[str, str, str]]:
        """Return figure, measured value and target."""
        p99 = statistics.quantiles(self.repairs, n=100)[98] if len(self.repairs) > 1 else 0.0
        each = self.status_writes / self.count

        def relative(effort: Effort) -> str:
            return f"{self.applied / effort.seconds:.2f}" if effort.seconds else "-"

        return [
            ("a client that sends the same writes", f"{self.same.seconds:.1f} s", ""),
            ("  CPU seconds of that client", f"{self.same.cpu:.2f}", ""),
            ("a bare client that creates the objects", f"{self.bare.seconds:.1f} s", ""),
            ("  CPU seconds of that client", f"{self.bare.cpu:.2f}", ""),
            ("all `ResourcesApplied`", f"{self.applied:.1f} s", ""),
            ("  relative to the same writes", relative(self.same), "≤ 1.15"),
            ("  relative to the bare client", relative(self.bare), ""),
            ("all healthy and not progressing", f"{self.ready:.1f} s", ""),
            ("API requests until then, all clients", f"{self.requests:,}", "≤ 8,500"),
            ("  status writes for each ManagedResource", f"{each:.2f}", "≤ 2"),
            ("CPU seconds of the process at applied", f"{self.cpu_applied:.2f}", "≤ 3.5"),
            ("CPU seconds of the process at 120 s", f"{self.cpu_120:.2f}", ""),
            ("peak memory of the process", f"{self.peak_megabytes:.0f} MB", "≤ 75 MB"),
            (
                f"idle for {self.quiet_seconds:.0f} s: requests",
                f"{self.quiet_requests}",
                "≤ 30",
            ),
            (
                f"idle for {self.quiet_seconds:.0f} s: CPU seconds",
                f"{self.quiet_cpu:.2f}",
                "≤ 0.4",
            ),
            (f"repair of an edited object, p99 of {len(self.repairs)}", f"{p99:.3f} s", "≤ 0.5 s"),
            *(self.restarted.rows() if self.restarted else ()),
        ]


def objects(number: int) -> list[JsonObject]:
    """Return the ten objects of one ManagedResource."""
    name = f"app-{number:04}"

    def named(api: str, kind: str, suffix: str = "", **content: object) -> JsonObject:
        metadata = {"name": f"{name}{suffix}", "namespace": NAMESPACE}
        return {"apiVersion": api, "kind": kind, "metadata": metadata, **content}

    def deployment(suffix: str) -> JsonObject:
        labels = {"app": f"{name}{suffix}"}
        container = {
            "name": "app",
            "image": "registry.example/app:1.0.0",
            "resources": {"requests": {"cpu": "10m", "memory": "32Mi"}},
        }
        return named(
            "apps/v1",
            "Deployment",
            suffix,
            spec={
                "replicas": 0,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        )

    rbac = "rbac.authorization.k8s.io"
    return [
        *(named("v1", "ConfigMap", f"-{n}", data={"key": f"value-{number}-{n}"}) for n in range(3)),
        named("v1", "ServiceAccount", automountServiceAccountToken=False),
        named(
            f"{rbac}/v1",
            "Role",
            rules=[{"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get"]}],
        ),
        named(
            f"{rbac}/v1",
            "RoleBinding",
            roleRef={"apiGroup": rbac, "kind": "Role", "name": name},
            subjects=[{"kind": "ServiceAccount", "name": name, "namespace": NAMESPACE}],
        ),
        named("v1", "Service", spec={"selector": {"app": name}, "ports": [{"port": 80}]}),
        deployment("-a"),
        deployment("-b"),
        named(
            "policy/v1",
            "PodDisruptionBudget",
            spec={"maxUnavailable": 1, "selector": {"matchLabels": {"app": name}}},
        ),
    ]


async def fill(client: Client, count: int, size: int = 10) -> None:
    """Create the namespace, the Secrets and the ManagedResources with `size` objects each."""
    await client.create(_NAMESPACE_OBJECT)
    limit = asyncio.Semaphore(_IN_FLIGHT)

    async def one(number: int) -> None:
        metadata = {"name": f"mr-{number:04}", "namespace": NAMESPACE}
        text = "\n".join(orjson.dumps(obj).decode() for obj in objects(number)[:size])
        async with limit:
            await client.create(
                {
                    "apiVersion": "v1",
                    "kind": "Secret",
                    "metadata": metadata,
                    "stringData": {"objects.json": text},
                }
            )
            await client.create(
                {
                    "apiVersion": MANAGED_RESOURCE.api_version,
                    "kind": MANAGED_RESOURCE.kind,
                    "metadata": metadata,
                    "spec": {"secretRefs": [{"name": metadata["name"]}]},
                }
            )

    async with asyncio.TaskGroup() as group:
        for number in range(count):
            group.create_task(one(number))


async def bare(count: int) -> Effort:
    """Return what a client needs that creates the objects, and nothing else."""
    async with _sandbox("bare") as (_, client):
        await client.create(_NAMESPACE_OBJECT)
        found = [obj for number in range(count) for obj in objects(number)]
        return await _effort(map(client.create, found))


async def same_writes(count: int) -> Effort:
    """Return what a client needs that sends the writes of a resource manager, in their order.

    They are 14 for each ManagedResource of ten objects: its finalizer and that of its Secret, the
    objects, and its status, twice. They do not depend on each other, except for this order.
    """
    async with _sandbox("same") as (_, client):
        await install_crds(client)
        await fill(client, count)
        limit = asyncio.Semaphore(_IN_FLIGHT)

        async def send(write: Awaitable[object]) -> None:
            async with limit:
                await write

        async def one(number: int) -> None:
            key, found = Key(NAMESPACE, f"mr-{number:04}"), objects(number)
            finalizer: JsonObject = {"metadata": {"finalizers": ["bench.example/resource"]}}
            await send(client.patch(MANAGED_RESOURCE, key, finalizer))
            await send(client.patch(SECRET, key, finalizer))
            async with asyncio.TaskGroup() as group:
                for obj in found:
                    group.create_task(send(client.create(obj)))
            for status in ("Unknown", "True"):
                patch: JsonObject = {"status": _status(found, status)}
                await send(client.patch(MANAGED_RESOURCE, key, patch, subresource="status"))

        return await _effort(map(one, range(count)), limit=count)


def _status(applied: list[JsonObject], healthy: str) -> JsonObject:
    """Return a status of the size that a resource manager writes."""
    at = "2026-01-01T00:00:00Z"
    conditions = [
        {
            "type": name,
            "status": status,
            "reason": name,
            "message": "All resources are in this state.",
            "lastTransitionTime": at,
            "lastUpdateTime": at,
        }
        for name, status in (
            *(("ResourcesApplied", "True"), ("ResourcesHealthy", healthy)),
            ("ResourcesProgressing", "False"),
        )
    ]
    resources = [
        {"apiVersion": obj["apiVersion"], "kind": obj["kind"], **obj["metadata"]} for obj in applied
    ]
    return {"observedGeneration": 1, "conditions": conditions, "resources": resources}


async def _effort(tasks: Iterable[Coroutine[object, object, object]], limit: int = 0) -> Effort:
    """Run tasks, so many of them at the same time, and measure them."""
    turns = asyncio.Semaphore(limit or _IN_FLIGHT)

    async def one(task: Coroutine[object, object, object]) -> None:
        async with turns:
            await task

    began, cpu = time.monotonic(), time.process_time()
    async with asyncio.TaskGroup() as group:
        for task in tasks:
            group.create_task(one(task))
    return Effort(time.monotonic() - began, time.process_time() - cpu)


@asynccontextmanager
async def _sandbox(name: str) -> AsyncIterator[tuple[sandbox.Sandbox, Client]]:
    """Run a sandbox while the block runs; yield it, and a client."""
    started = await sandbox.start(f"{name}-{os.getpid()}", progress=lambda _: None)
    try:
        async with Client.connect(load(started.kubeconfig)) as client:
            yield started, client
    finally:
        await started.stop()


async def requests(client: Client) -> tuple[int, int]:
    """Return the requests that the API server counted, and the status writes of ManagedResources.

    They include the server's own and those of its controllers, as the reference's count does;
    watches count when they end, and reads of /metrics do not count.
    """
    total = status_writes = 0
    text = (await client.get_raw("/metrics")).decode()
    for line in re.findall(r"^apiserver_request_total\{.*$", text, flags=re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        value = int(float(line.rsplit(" ", 1)[1]))
        if labels.get("resource", "") == "" or labels.get("verb") == "WATCH":
            continue
        total += value
        if labels["resource"] == "managedresources" and labels.get("subresource") == "status":
            status_writes += value
    return total, status_writes


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
    """The process of the resource manager."""

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


async def run(program: Program, count: int, *, quiet: float, edits: int, until: float) -> Figures:
    """Measure one run of a program with `count` ManagedResources."""
    figures = Figures(count)
    async with _sandbox("bench") as (started, client):
        await install_crds(client)
        await fill(client, count)
        with tempfile.TemporaryDirectory() as folder:
            before, _ = await requests(client)
            idle = await watches(client, restart.LAST_KIND)
            began = time.monotonic()
            with resource_manager(program, started.kubeconfig, Path(folder)) as process:
                await measure(client, process, figures, began, before)
                await wait_until(began + until, process)
                figures.cpu_120 = process.cpu
                if edits:
                    figures.repairs = await repairs(client, count, edits)
                    await asyncio.sleep(2)
                await rest(client, process, figures, quiet)
                figures.peak_megabytes = process.peak_megabytes
            counted = await restart.counts(client)
            began = time.monotonic()
            with resource_manager(program, started.kubeconfig, Path(folder)) as process:
                figures.restarted = await restart.measure(client, process, began, counted, idle)
    return figures


async def measure(
    client: Client, process: Process, figures: Figures, began: float, before: int
) -> None:
    """Measure from the start of the process until everything is applied, and until it is ready."""
    cache = Cache(client, MANAGED_RESOURCE, keep_resource, namespace=NAMESPACE)
    changed = asyncio.Event()
    waiting_applied: set[Key] = set()
    waiting_ready: set[Key] = set()

    def note(change: object) -> None:
        key, new = change.key, change.new  # type: ignore[attr-defined]
        if new is None:
            return
        resource = new.unpack()
        (waiting_applied.discard if is_applied(resource) else waiting_applied.add)(key)
        (waiting_ready.discard if is_ready(resource) else waiting_ready.add)(key)
        changed.set()

    cache.subscribe(note)
    following = asyncio.create_task(cache.run())
    try:
        await cache.synced()
        await emptied(waiting_applied, changed, process)
        figures.applied, figures.cpu_applied = time.monotonic() - began, process.cpu
        await emptied(waiting_ready, changed, process)
        figures.ready, figures.cpu_ready = time.monotonic() - began, process.cpu
        total, figures.status_writes = await requests(client)
        figures.requests = total - before
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


async def emptied(waiting: set[Key], changed: asyncio.Event, process: Process) -> None:
    """Wait until nothing is pending; fail after some minutes without progress."""
    deadline, least = time.monotonic() + PATIENCE, len(waiting)
    while waiting:
        process.check()
        if len(waiting) < least:
            deadline, least = time.monotonic() + PATIENCE, len(waiting)
        if time.monotonic() > deadline:
            raise SystemExit(f"{len(waiting)} ManagedResources did not get there: {min(waiting)}")
        changed.clear()
        try:
            await asyncio.wait_for(changed.wait(), 5)
        except TimeoutError:
            continue


async def wait_until(moment: float, process: Process) -> None:
    """Sleep until a time on the monotonic clock, as the reference was measured."""
    await asyncio.sleep(max(0.0, moment - time.monotonic()))
    process.check()


async def rest(client: Client, process: Process, figures: Figures, seconds: float) -> None:
    """Count the requests of an idle period, without the two readings."""
    before, cpu = (await requests(client))[0], process.cpu
    await asyncio.sleep(seconds)
    figures.quiet_seconds = seconds
    figures.quiet_cpu = process.cpu - cpu
    figures.quiet_requests = (await requests(client))[0] - before


async def repairs(client: Client, count: int, edits: int) -> list[float]:
    """Edit ConfigMaps one after another; return the seconds until each is repaired."""
    resource = await client.resource(CONFIG_MAP)
    seconds = []
    for number in range(edits):
        key = Key(NAMESPACE, f"app-{number % count:04}-{number % 3}")
        desired = (await client.get(CONFIG_MAP, key))["data"]
        edited = await client.patch(CONFIG_MAP, key, {"data": {"key": "edited by hand"}})
        began = time.monotonic()
        events = watch(
            client,
            resource,
            NAMESPACE,
            fields=f"metadata.name={key.name}",
            resource_version=edited["metadata"]["resourceVersion"],
            timeout_seconds=60,
        )
        async for event in events:
            if event.type == "MODIFIED" and event.object["data"] == desired:
                break
        await events.aclose()
        seconds.append(time.monotonic() - began)
    return seconds


def scale(runner: Callable[[int], Figures]) -> None:
    """Print the growth of cost with the number of ManagedResources."""
    rows: list[tuple[str, ...]] = []
    for count in (100, 300, 1000, 3000):
        figures = runner(count)
        rows.append(
            (
                f"{count:,}",
                f"{figures.applied:.1f} s",
                f"{figures.ready:.1f} s",
                f"{figures.requests / count:.1f}",
                f"{figures.cpu_ready / count * 1000:.1f} ms",
                f"{figures.peak_megabytes:.0f} MB",
                *_restart_cells(figures.restarted),
            )
        )
        print(f"{count:,} done", file=sys.stderr)
    heads = ("ManagedResources", "applied", "ready", "requests each", "CPU each", "peak memory")
    again = ("restart", "restart: requests", "restart: writes", "restart: peak memory")
    show(rows, (*heads, *again))


def _restart_cells(figures: restart.Restart | None) -> tuple[str, ...]:
    if figures is None:
        return ("", "", "", "")
    return (
        f"{figures.seconds:.1f} s",
        f"{figures.requests:,}",
        f"{figures.writes:,}",
        f"{figures.peak_megabytes:.0f} MB",
    )


def main() -> None:
    """Parse the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("-n", "--count", type=int, default=300)
    parser.add_argument("--scale", action="store_true")
    parser.add_argument("--quiet", type=float, default=65.0, help="seconds of the idle period")
    parser.add_argument("--edits", type=int, default=200, help="objects to edit and have repaired")
    parser.add_argument(
        "--until", type=float, default=120.0, help="seconds until the second reading of CPU"
    )
    arguments = parser.parse_args()
    if arguments.scale:
        scale(lambda count: asyncio.run(run(installed(), count, quiet=1, edits=0, until=0)))
        return
    figures = asyncio.run(
        run(
            installed(),
            arguments.count,
            quiet=arguments.quiet,
            edits=arguments.edits,
            until=arguments.until,
        )
    )
    figures.bare = asyncio.run(bare(arguments.count))
    figures.same = asyncio.run(same_writes(arguments.count))
    print(f"{figures.count} ManagedResources of 10 objects")
    show([tuple(row) for row in figures.rows()], ("figure", "measured", "target"))
