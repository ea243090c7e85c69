"""Figures of infrastructure in AWS: requests and durations.

    python -m bench aws-flow                  # 50 ms for each request, the table
    python -m bench aws-flow --latency 0.02
    python -m bench aws-flow --landscape 200  # 200 Infrastructures of one account

moto simulates AWS, behind a proxy that adds the network latency to each request. NAT gateways and
subnets are ready at the second poll, and polls are 50 ms apart, so the delays of AWS itself are not
included. The critical path is the longest chain of steps by their measured durations: no run of the
same graph can be faster, so the ratio shows the cost of the engine.
"""

import argparse
import asyncio
from base64 import b64encode
from dataclasses import dataclass
from typing import Final, NamedTuple

from aiohttp import web

from bench import aws_landscape
from bench.tables import show
from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.extension_api.cluster import Cluster
from pergola.flow import Report, State
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.flows.delete import delete_steps
from pergola.providers.aws.flows.reconcile import reconcile_steps
from pergola.providers.aws.flows.run import name_zones, run_steps
from pergola.providers.aws.observe import observe
from pergola.providers.aws.preflight import findings
from pergola.providers.aws.request import desired_of
from pergola.providers.aws.resources.step import Step, Work, graph_of
from pergola.runtime.logging import configure
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.sandbox.aws.moto import moto
from pergola.sandbox.aws.world import Network, managed_config
from tests.support.aws.site import PUBLIC_KEY, REGION, SHOOT

TECHNICAL_ID: Final = "shoot--bench--web"
POLL_SECONDS: Final = 0.05
SAVE_SECONDS: Final = 0.005
"""The time of a status patch by an API server."""
TOO_SHORT: Final = 0.1
"""The length of a critical path without requests: a ratio to it is meaningless."""
HEADINGS: Final = (
    "what",
    "reads",
    "writes",
    "target",
    "state writes",
    "seconds",
    "flow",
    "critical path",
    "ratio",
)


class DistantAws(CorrectedAws):
    """An AWS with latency.

    Attributes:
        latency: seconds for which each request waits.
    """

    latency = 0.0

    async def _pass(self, request: web.Request) -> web.Response:
        await asyncio.sleep(self.latency)
        return await super()._pass(request)


@dataclass(slots=True)
class Seed:
    """A store of a state, like the status of an Infrastructure."""

    data: dict[str, str]
    writes: int = 0

    async def write(self, data: dict[str, str]) -> None:
        """Store the state."""
        await asyncio.sleep(SAVE_SECONDS)
        self.writes += 1
        self.data = data


class Case(NamedTuple):
    """A measurement.

    Attributes:
        target: the maximum number of requests (spec 30 §13).
    """

    name: str
    target: str
    delete: bool = False


def wanted_by(config: JsonObject, technical_id: str = TECHNICAL_ID) -> Desired:
    """Return a cluster with this config."""
    key = b64encode(PUBLIC_KEY.encode()).decode()
    infrastructure: JsonObject = {
        "metadata": {"name": "web", "namespace": technical_id},
        "spec": {"type": "aws", "region": REGION, "sshPublicKey": key, "providerConfig": config},
    }
    cluster: JsonObject = {"metadata": {"name": technical_id}, "spec": {"shoot": SHOOT}}
    return desired_of(infrastructure, Cluster.from_object(cluster))


async def measure(
    aws: DistantAws, client: AwsClient, desired: Desired, seed: Seed, case: Case
) -> tuple[str, ...]:
    """Observe, check and run the flow like the actuator; return a row of the table."""
    aws.taken()
    seed.writes, state = 0, State(seed.data)
    began = asyncio.get_running_loop().time()
    snapshot = await observe(client, desired, state, for_deletion=case.delete)
    if not case.delete:
        findings(desired, snapshot)
        name_zones(desired, state)
    work = Work(
        aws=client, desired=desired, state=state, snapshot=snapshot, poll_seconds=POLL_SECONDS
    )
    steps: list[Step] = delete_steps(desired, state) if case.delete else reconcile_steps(desired)
    result = await run_steps(case.name, steps, work, write=seed.write, report=unheard)
    seconds = asyncio.get_running_loop().time() - began
    path = graph_of(case.name, steps, work).critical_path(result.durations)
    calls, writes = len(aws.requests), len(aws.writes())
    return (
        case.name,
        str(calls - writes),
        str(writes),
        case.target,
        str(seed.writes),
        f"{seconds:.2f}",
        f"{result.seconds:.2f}",
        f"{path.seconds:.2f}",
        f"{result.seconds / path.seconds:.2f}" if path.seconds > TOO_SHORT else "-",
    )


async def unheard(_: Report) -> None:
    """Ignore a warning."""


async def managed(aws: DistantAws, client: AwsClient, zones: str) -> list[tuple[str, ...]]:
    """Measure a network that is created, reconciled again, and deleted."""
    desired, seed = wanted_by(managed_config(REGION, zones=zones)), Seed({})
    number = len(zones)
    cases = (
        Case(f"managed, {number} zone(s): create", "≤ 45" if number == 1 else "≤ 60"),
        Case(f"managed, {number} zone(s): steady", "≤ 12, 0 writes"),
        Case(f"managed, {number} zone(s): delete", "-" if number == 1 else "≤ 45", delete=True),
    )
    return [await measure(aws, client, desired, seed, case) for case in cases]


async def byo(aws: DistantAws, client: AwsClient, zones: str) -> list[tuple[str, ...]]:
    """Measure a user-provided network that is tagged, reconciled again, and released."""
    latency, aws.latency = aws.latency, 0.0
    network = await Network.complete(client, zones=zones)
    group = await network.security_group()
    aws.latency = latency
    desired, seed = wanted_by(network.config(group=group)), Seed({})
    number = len(zones)
    cases = (
        Case(f"byo, {number} zone(s): create", "≤ 16 reads"),
        Case(f"byo, {number} zone(s): steady", "≤ 12, 0 writes"),
        Case(f"byo, {number} zone(s): delete", "-", delete=True),
    )
    return [await measure(aws, client, desired, seed, case) for case in cases]


async def rows(server: str, latency: float) -> list[tuple[str, ...]]:
    """Return all measurements."""
    found: list[tuple[str, ...]] = []
    async with DistantAws(server) as aws, aws.client(REGION, retry=QUICK) as client:
        # A process parses the descriptions of the services once; that is not measured.
        for service, operation in (("ec2", "DescribeVpcs"), ("iam", "ListRoles")):
            await client.call(service, operation)
        for service in ("elb", "elbv2"):
            await client.call(service, "DescribeLoadBalancers")
        aws.latency = latency
        found += await managed(aws, client, "a")
        found += await managed(aws, client, "abc")
        found += await byo(aws, client, "abc")
    return found


def main() -> None:
    """Measure and print."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--latency", type=float, default=0.05, help="seconds for each request")
    parser.add_argument("--landscape", type=int, default=20, help="Infrastructures of an account")
    options = parser.parse_args()
    configure("error", "text")
    config = managed_config(REGION, zones="a")
    desired = [wanted_by(config, f"shoot--bench--{n}") for n in range(options.landscape)]
    with moto() as server:
        show(asyncio.run(rows(server, options.latency)), HEADINGS)
        print()
        show(asyncio.run(aws_landscape.rows(server, desired)), aws_landscape.HEADINGS)
