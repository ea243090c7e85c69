"""The cost of a Garden: the resources that the operator needs to create and to maintain it.

    python -m bench garden              # the table; about eight minutes
    python -m bench garden --rest 60    # a shorter idle period

The example Garden is created on simulated nodes: its virtual cluster is a second control plane. The
operator is a separate process; it counts its own requests, and the kernel measures its CPU seconds
and memory. The other processes that the Garden needs on the machine determine the durations, so
compare these with the critical path: the longest chain of tasks by their measured durations.
"""

import argparse
import asyncio
import os
import re
import socket
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import AsyncGenerator, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import Final, NamedTuple, Self

import aiohttp
import orjson
import uvloop
from prometheus_client.parser import text_string_to_metric_families

from bench.processes import Process
from bench.tables import show
from pergola.api.objects import JsonObject, Key, map_at
from pergola.api.operator_config import configuration_from
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.flow import Graph
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig
from pergola.operator.app import serve
from pergola.operator.reconcile import flows
from pergola.operator.reconcile.picture.steps import dry_run
from pergola.resource_manager.registration import garden_webhooks
from pergola.runtime.clock import SystemClock
from pergola.runtime.logging import configure
from pergola.sandbox.simulated import Site, garden_site
from pergola.testing.waiting import until
from tests.support.garden import landscape
from tests.support.garden_world import configuration, example, install_operator

LOCAL: Final = Key("", "local")
PATIENCE: Final = 900.0
RECONCILE: Final = {"metadata": {"annotations": {"gardener.cloud/operation": "reconcile"}}}
CARE: Final = {"controller": "garden-care"}
HOUR: Final = 3600.0
# Longer than a cache waits before it asks again for a kind that was not served.
_QUIET_SECONDS: Final = 35.0
HEADINGS: Final = ("event", "seconds", "critical path", "ratio", "reads", "writes", "CPU s")


class Counts(NamedTuple):
    """The work of the operator so far.

    Attributes:
        probes: Runs of care, each of which requests the health of the virtual API server.
        seconds: The durations of tasks, by flow and task.
    """

    reads: int
    writes: int
    probes: int
    cpu: float
    at: float
    seconds: dict[tuple[str, str], float]

    def since(self, before: Self) -> "Counts":
        """Return the work since an earlier time."""
        seconds = {task: took - before.seconds.get(task, 0) for task, took in self.seconds.items()}
        return Counts(
            self.reads - before.reads,
            self.writes - before.writes,
            self.probes - before.probes,
            self.cpu - before.cpu,
            self.at - before.at,
            seconds,
        )


class Operator:
    """The operator's process, with its own figures."""

    def __init__(self, process: Process, port: int) -> None:
        self._process = process
        self._metrics = f"http://127.0.0.1:{port}/metrics"

    @property
    def peak_megabytes(self) -> float:
        """The largest resident size so far."""
        return self._process.peak_megabytes

    async def counts(self) -> Counts:
        """Return its work so far."""
        self._process.check()
        async with aiohttp.ClientSession() as session, session.get(self._metrics) as response:
            text = await response.text()
        totals: dict[str, int] = defaultdict(int)
        seconds = {}
        for sample in (s for f in text_string_to_metric_families(text) for s in f.samples):
            if sample.name == "rest_client_requests_total":
                kind = "reads" if sample.labels["method"] == "GET" else "writes"
                totals[kind] += int(sample.value)
            elif sample.name == "controller_runtime_reconcile_total":
                if CARE.items() <= sample.labels.items():
                    totals["probes"] += int(sample.value)
            elif sample.name == "flow_task_duration_seconds_sum":
                seconds[sample.labels["flow"], sample.labels["task_id"]] = sample.value
        return Counts(
            totals["reads"],
            totals["writes"],
            totals["probes"],
            self._process.cpu,
            time.monotonic(),
            seconds,
        )


class Meter:
    """A meter that records rows of the table."""

    def __init__(self, operator: Operator, graphs: tuple[Graph, ...]) -> None:
        self._operator = operator
        self._graphs = graphs
        self.rows: list[tuple[str, ...]] = []

    @asynccontextmanager
    async def measuring(self, name: str) -> AsyncGenerator[None]:
        """Record a row about the block."""
        before = await self._operator.counts()
        yield
        spent = (await self._operator.counts()).since(before)
        path = self._critical_path(spent)
        self.rows.append(
            (
                name,
                f"{spent.at:.1f}",
                f"{path:.1f}" if path else "-",
                f"{spent.at / path:.2f}" if path else "-",
                str(spent.reads),
                str(spent.writes),
                f"{spent.cpu:.2f}",
            )
        )

    def _critical_path(self, spent: Counts) -> float:
        return sum(
            graph.critical_path(
                {task: took for (flow, task), took in spent.seconds.items() if flow == graph.name}
            ).seconds
            for graph in self._graphs
        )


async def rest(client: Client, operator: Operator, stop: Callable[[], None], period: float) -> str:
    """Measure an idle period, which begins once no requests are sent; extrapolate it to an hour.

    A watch is renewed once an hour, so few renewals fall into the period: each of them counts once.

    Args:
        stop: Ends the operator's process, after which its watches are missing.
    """
    before = await _quiet(operator)
    await asyncio.sleep(period)
    spent = (await operator.counts()).since(before)
    watches = await _watches(client)
    stop()
    watches -= await _watches(client)
    requests = (spent.reads + spent.writes - spent.probes) * HOUR / period
    return (
        f"an idle hour, extrapolated from {period:.0f} s with {spent.reads} reads and "
        f"{spent.writes} writes: {requests:.0f} requests, besides the health "
        f"requests of care ({spent.probes} of these reads) and {watches} renewals of watches; "
        f"{spent.cpu * HOUR / period:.1f} CPU s"
    )


async def _quiet(operator: Operator) -> Counts:
    """Return the counts once the events and reports of the last reconciliation are written."""
    before = await operator.counts()
    while True:
        await asyncio.sleep(_QUIET_SECONDS)
        now = await operator.counts()
        if (now.reads - now.probes, now.writes) == (before.reads - before.probes, before.writes):
            return now
        before = now


async def _watches(client: Client) -> int:
    """Return the number of watches that the API server serves."""
    text = (await client.get_raw("/metrics")).decode()
    watch = r'^apiserver_longrunning_requests\{.*verb="WATCH".*\} (\S+)$'
    return int(sum(map(float, re.findall(watch, text, re.MULTILINE))))


async def run(period: float, repetitions: int) -> None:
    """Measure and print."""
    async with garden_site(f"bench-{os.getpid()}") as site:
        client = site.client
        kubeconfig = await install_operator(site)
        graph = dry_run(client, landscape(), SystemClock())
        graphs = flows.setup(graph), flows.reconciliation(graph, LOCAL)
        with operator_of(site, kubeconfig) as (operator, stop):
            await _started(operator)
            meter = Meter(operator, graphs)
            async with meter.measuring("the Garden is created"):
                await client.create(example())
                await _until(client, "Succeeded")
            print(f"peak memory after the creation: {operator.peak_megabytes:.0f} MB", flush=True)
            await until(client, GARDEN, LOCAL, _is_healthy, patience=PATIENCE)
            for number in range(repetitions):
                async with meter.measuring(f"no change, reconciliation {number + 1}"):
                    await client.patch(GARDEN, LOCAL, RECONCILE)
                    await _until(client, "Processing")
                    await _until(client, "Succeeded")
            peak = operator.peak_megabytes
            hour = await rest(client, operator, stop, period)
    show(meter.rows, HEADINGS)
    print("one write of each later reconciliation removes the user's request from the Garden")
    print(f"{hour}; peak memory {peak:.0f} MB")


async def _started(operator: Operator) -> None:
    async with asyncio.timeout(60):
        while True:
            try:
                await operator.counts()
            except aiohttp.ClientError:
                await asyncio.sleep(0.1)
            else:
                return


async def _until(client: Client, state: str) -> None:
    await until(client, GARDEN, LOCAL, partial(_is_in, state), patience=PATIENCE)


def _is_in(state: str, garden: JsonObject) -> bool:
    return map_at(garden, "status", "lastOperation").get("state") == state


def _is_healthy(garden: JsonObject) -> bool:
    conditions = map_at(garden, "status").get("conditions") or []
    return bool(conditions) and all(each["status"] == "True" for each in conditions)


@contextmanager
def operator_of(site: Site, kubeconfig: Path) -> Iterator[tuple[Operator, Callable[[], None]]]:
    """Run the operator as a separate process; yield it, and a function that ends it."""
    config, port = configuration(kubeconfig), _free_port()
    config["server"]["metrics"] = {"bindAddress": "127.0.0.1", "port": port}
    path = site.directory / "operator.json"
    path.write_bytes(orjson.dumps({"config": config, "proxy": site.node.proxy}))
    command = [sys.executable, "-m", "bench.garden", "--operate", str(path)]
    # As in an installation, with compiled modules.
    environment = {k: v for k, v in os.environ.items() if k != "PYTHONDONTWRITEBYTECODE"}
    process = subprocess.Popen(command, env=environment | site.operator_environment)

    def stop() -> None:
        process.terminate()
        process.wait(timeout=10)

    try:
        yield Operator(Process(process), port), stop
    finally:
        stop()


def _free_port() -> int:
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        port: int = probe.getsockname()[1]
        return port


async def operate(given: JsonObject) -> None:
    """Run the operator: the main function of that process."""
    configure("error", "text")

    def reach(config: ClusterConfig) -> ClusterConfig:
        return replace(config, proxy_url=given["proxy"])

    config = configuration_from(given["config"]).config
    await serve(config, garden_webhooks, os.environ, reach=reach)


def main() -> None:
    """Parse the arguments and print the table."""
    parser = argparse.ArgumentParser(description=__doc__.partition("\n")[0] if __doc__ else "")
    parser.add_argument("--rest", type=float, default=300.0, help="seconds of the idle period")
    parser.add_argument("-n", "--repetitions", type=int, default=3)
    parser.add_argument("--operate", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.operate:
        uvloop.run(operate(orjson.loads(arguments.operate.read_bytes())))
    else:
        configure("error", "text")
        asyncio.run(run(arguments.rest, arguments.repetitions))


if __name__ == "__main__":
    main()
