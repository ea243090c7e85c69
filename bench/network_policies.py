"""The NetworkPolicy controller under load: the cost of a start and of individual events.

    python -m bench network-policies             # 500 Services over 100 namespaces, the table
    python -m bench network-policies --quiet 5   # without the idle minute

The sandbox runs only an API server, so every counted write is the controller's, which runs as a
separate process. Of the five Services in each namespace

- one has a port, one has two, and one is open to the world as well;
- one can be scraped by label from its own namespace and from `team-000`, like Gardener's;
- one can be called from all namespaces of its group, one of ten.
"""

import argparse
import asyncio
import os
import re
import subprocess
import sys
import time
from collections import Counter
from collections.abc import AsyncGenerator, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path
from typing import Final

import orjson
import uvloop

from bench.processes import Process
from bench.tables import show
from bench.watching import PATIENCE, another_watch, watches
from pergola import sandbox
from pergola.api.kinds import NAMESPACE, NETWORK_POLICY, SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.controllers.network_policy import Settings, network_policy
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.runtime.caching.cache import Cache
from pergola.runtime.logging import configure
from pergola.runtime.metrics import Metrics

PREFIX: Final = "networking.resources.gardener.cloud/"
WRITES: Final = frozenset({"POST", "PUT", "PATCH", "APPLY", "DELETE", "DELETECOLLECTION"})
GROUPS: Final = 10
PEACE_SECONDS: Final = 2.0
"""The time without changes after which an event counts as handled."""
HEADINGS: Final = ("event", "seconds", "policy writes", "other writes", "reads", "CPU s")

Requests = Counter[tuple[str, str]]
"""Counts by verb and resource."""


def group(number: int) -> str:
    """Return the group of a namespace."""
    return f"g{number % GROUPS}"


def namespace(number: int) -> JsonObject:
    """Return a namespace of a group; the first one scrapes the others."""
    labels = {"group": group(number)} | ({"role": "monitoring"} if number == 0 else {})
    return {
        "apiVersion": "v1",
        "kind": "Namespace",
        "metadata": {"name": f"team-{number:03}", "labels": labels},
    }


def services(number: int) -> list[JsonObject]:
    """Return the five Services of a namespace."""

    def service(name: str, *targets: int, **annotations: object) -> JsonObject:
        texts = {
            PREFIX + key.replace("_", "-"): value
            if isinstance(value, str)
            else orjson.dumps(value).decode()
            for key, value in annotations.items()
        }
        metadata = {"name": name, "namespace": f"team-{number:03}", "annotations": texts}
        ports = [{"name": f"p{n}", "port": n, "targetPort": n} for n in targets]
        return {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": metadata,
            "spec": {"selector": {"app": name}, "ports": ports},
        }

    return [
        service("plain", 8080),
        service("double", 8080, 8081),
        service("open", 8080, from_world_to_ports=[{"port": 8080}]),
        service(
            "scraped",
            8080,
            namespace_selectors=[{"matchLabels": {"role": "monitoring"}}],
            pod_label_selector_namespace_alias="all-teams",
            from_all_scrape_targets_allowed_ports=[{"port": 9090, "protocol": "TCP"}],
        ),
        service("shared", 8080, namespace_selectors=[{"matchLabels": {"group": group(number)}}]),
    ]


def expected(namespaces: int) -> int:
    """Return how many policies these Services require (spec 11 §4.3), computed independently."""
    plain, double, world = 2, 4, 3
    scraped = 4 * namespaces + 4 * (namespaces - 1)
    sizes = Counter(group(number) for number in range(namespaces))
    shared = sum(2 * size for size in (sizes[group(n)] for n in range(namespaces)))
    return (plain + double + world) * namespaces + scraped + shared


async def fill(client: Client, namespaces: int) -> None:
    """Create the namespaces and the Services."""
    await create(client, [namespace(number) for number in range(namespaces)])
    await create(client, [obj for number in range(namespaces) for obj in services(number)])


async def create(client: Client, objects: list[JsonObject]) -> float:
    """Create objects, 16 at a time; return the duration in seconds."""
    limit = asyncio.Semaphore(16)

    async def one(obj: JsonObject) -> None:
        async with limit:
            await client.create(obj)

    began = time.monotonic()
    async with asyncio.TaskGroup() as tasks:
        for obj in objects:
            tasks.create_task(one(obj))
    return time.monotonic() - began


async def requests(client: Client) -> Requests:
    """Return the requests that the API server counted, without watches, which count when they end.

    Leases do not count: the server itself renews its identity every ten seconds.
    """
    counted: Requests = Counter()
    text = (await client.get_raw("/metrics")).decode()
    for line in re.findall(r"^apiserver_request_total\{.*$", text, flags=re.MULTILINE):
        labels = dict(re.findall(r'(\w+)="([^"]*)"', line))
        if labels["verb"] != "WATCH" and labels["resource"] not in ("", "leases"):
            counted[labels["verb"], labels["resource"]] += int(float(line.rsplit(" ", 1)[1]))
    return counted


class Policies:
    """The existing NetworkPolicies, observed by a watch."""

    def __init__(self, cache: Cache[None]) -> None:
        self._cache = cache
        self._changed = asyncio.Event()
        self.last_change = 0.0
        cache.subscribe(self._note)

    async def settled(self, count: int, process: Process) -> None:
        """Wait until there are that many, without changes for two seconds."""
        deadline = time.monotonic() + PATIENCE
        while await self._changes() or len(self._cache) != count:
            process.check()
            if time.monotonic() > deadline:
                raise SystemExit(f"{len(self._cache)} NetworkPolicies instead of {count}")

    async def _changes(self) -> bool:
        self._changed.clear()
        try:
            await asyncio.wait_for(self._changed.wait(), PEACE_SECONDS)
        except TimeoutError:
            return False
        return True

    def _note(self, _: object) -> None:
        self.last_change = time.monotonic()
        self._changed.set()


class Meter:
    """A meter that records rows: durations and costs of events."""

    def __init__(self, client: Client, policies: Policies) -> None:
        self._client, self._policies = client, policies
        self._before: Requests = Counter()
        self._began = 0.0
        self.rows: list[tuple[str, ...]] = []

    async def begin(self) -> None:
        """Start counting."""
        self._before = await requests(self._client)
        self._began = time.monotonic()

    async def settle(
        self, name: str, process: Process, count: int, *, own: int = 0, cpu: float = 0.0
    ) -> None:
        """Wait until there are `count` policies and no more changes, and record a row.

        Args:
            own: the number of writes by the benchmark.
            cpu: CPU seconds of the process at the start.
        """
        await self._policies.settled(count, process)
        seconds = self._policies.last_change - self._began
        shown = f"{seconds:.2f}" if seconds > 0 else "-"
        await self.note(name, process, shown, own=own, cpu=cpu)

    async def note(
        self, name: str, process: Process, seconds: str, *, own: int = 0, cpu: float = 0.0
    ) -> None:
        """Record a row about everything since `begin`."""
        spent = process.cpu - cpu
        counted = await requests(self._client) - self._before
        policies = sum(n for (verb, kind), n in counted.items() if _writes(verb, kind))
        writes = sum(n for (verb, _), n in counted.items() if verb in WRITES)
        reads = counted.total() - writes
        shown = (policies, writes - policies - own, reads)
        self.rows.append((name, seconds, *(f"{n:,}" for n in shown), f"{spent:.2f}"))


def _writes(verb: str, kind: str) -> bool:
    return verb in WRITES and kind == "networkpolicies"


async def events(client: Client, meter: Meter, process: Process, namespaces: int) -> None:
    """Cause one event at a time."""
    count, number = expected(namespaces), namespaces // 2
    service, space = Key(f"team-{number:03}", "plain"), Key("", f"team-{number:03}")

    async def change(name: str, gvk: GroupVersionKind, key: Key, body: JsonObject, by: int) -> None:
        await meter.begin()
        cpu = process.cpu
        await client.patch(gvk, key, body)
        await meter.settle(name, process, count + by, own=1, cpu=cpu)

    def labelled(**labels: str) -> JsonObject:
        return {"metadata": {"labels": labels}}

    port = {"name": "p8080", "port": 8080, "targetPort": 9999}
    noted = {"metadata": {"annotations": {"note": "new"}}}
    await change("a namespace gets an irrelevant label", NAMESPACE, space, labelled(x="y"), 0)
    sizes = Counter(group(other) for other in range(namespaces))
    there = group(number + 1)
    more = 2 * sizes[there] - 2 * (sizes[group(number)] - 1)
    await change("a namespace joins another group", NAMESPACE, space, labelled(group=there), more)
    back = labelled(group=group(number))
    await change("it rejoins its first group", NAMESPACE, space, back, 0)
    await change("a Service gets an irrelevant annotation", SERVICE, service, noted, 0)
    await change("a Service gets another port", SERVICE, service, {"spec": {"ports": [port]}}, 0)


async def rest(meter: Meter, process: Process, seconds: float) -> None:
    """Measure an idle period."""
    await meter.begin()
    cpu = process.cpu
    await asyncio.sleep(seconds)
    await meter.note(f"no event for {seconds:.0f} s", process, "-", cpu=cpu)


async def run(namespaces: int, quiet: float) -> None:
    """Measure and print."""
    count = expected(namespaces)
    async with cluster() as (client, kubeconfig):
        await fill(client, namespaces)
        async with watched(client) as policies:
            meter = Meter(client, policies)
            idle = await watches(client, "networkpolicies")
            await meter.begin()
            with controller(kubeconfig) as process:
                await meter.settle("the first start", process, count)
                await events(client, meter, process, namespaces)
                if quiet:
                    await rest(meter, process, quiet)
                peak = process.peak_megabytes
            await meter.begin()
            with controller(kubeconfig) as process:
                await another_watch(client, "networkpolicies", idle, process)
                await meter.settle("a restart", process, count)
        written = await client.list(NETWORK_POLICY)
    bare = await creates_alone(namespaces, written)
    print(f"{5 * namespaces} Services, {namespaces} namespaces, {count:,} NetworkPolicies")
    print(f"a bare client creates these in {bare:.1f} s; peak memory {peak:.0f} MB")
    show(meter.rows, HEADINGS)


async def creates_alone(namespaces: int, policies: list[JsonObject]) -> float:
    """Return the seconds that a bare client needs to create the same policies."""
    for policy in policies:
        metadata = policy["metadata"]
        kept = ("name", "namespace", "labels", "annotations")
        policy["metadata"] = {name: metadata[name] for name in kept}
    async with cluster() as (client, _):
        await create(client, [namespace(number) for number in range(namespaces)])
        async with watched(client):
            return await create(client, policies)


@asynccontextmanager
async def cluster() -> AsyncGenerator[tuple[Client, Path]]:
    """Yield an API server's kubeconfig and a client."""
    started = await sandbox.start(f"bench-{os.getpid()}", components=sandbox.API_ONLY)
    try:
        async with Client.connect(load(started.kubeconfig)) as client:
            yield client, started.kubeconfig
    finally:
        await started.stop()


@asynccontextmanager
async def watched(client: Client) -> AsyncGenerator[Policies]:
    """Watch the NetworkPolicies."""
    cache: Cache[None] = Cache(client, NETWORK_POLICY, lambda _: None, metadata_only=True)
    policies = Policies(cache)
    following = asyncio.create_task(cache.run())
    try:
        await cache.synced()
        yield policies
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


@contextmanager
def controller(kubeconfig: Path) -> Iterator[Process]:
    """Run the controller as a separate process."""
    command = [sys.executable, "-m", "bench.network_policies", "--control", str(kubeconfig)]
    # As in an installation, with compiled modules.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, env=environment)
    try:
        yield Process(process)
    finally:
        process.terminate()
        process.wait(timeout=10)


async def control(kubeconfig: Path) -> None:
    """Run the controller: the main function of that process."""
    configure("error", "text")
    async with Client.connect(load(kubeconfig)) as client:
        # Without pods, so that all policies are written.
        settings = Settings(workers=20, only_for_matching_pods=False)
        await network_policy(client, settings, metrics=Metrics()).run()


def main() -> None:
    """Parse the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("-n", "--namespaces", type=int, default=100)
    parser.add_argument("--quiet", type=float, default=60.0, help="seconds of the idle period")
    parser.add_argument("--control", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.control:
        uvloop.run(control(arguments.control))
    else:
        asyncio.run(run(arguments.namespaces, arguments.quiet))


if __name__ == "__main__":
    main()
