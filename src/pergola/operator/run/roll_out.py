"""Waiting until a Deployment is rolled out, and the pods that it replaced are gone.

Its status does not count pods that are terminating, but they still serve: a replica of an API
server continues with the keys and authorities that it was started with.
"""

import asyncio
from datetime import datetime

from pergola.api.kinds import DEPLOYMENT, POD
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of, map_at
from pergola.health.pods import pods_of
from pergola.health.rules import is_skipped
from pergola.health.workloads import replicas
from pergola.kube.client import Client
from pergola.kube.selectors import format_selector, is_empty
from pergola.operator.run.readiness import direct_problem
from pergola.operator.run.waiting import (
    POLL_SECONDS,
    Note,
    Report,
    gone,
    unnoted,
    wait_at_most,
    without_problem,
)
from pergola.runtime.clock import Clock


async def wait_rolled_out(
    client: Client, clock: Clock, key: Key, limit: float, note: Note = unnoted
) -> JsonObject | None:
    """Return a Deployment once it is rolled out and has no other pods than its replicas.

    Args:
        limit: In seconds.
        note: Called with each new problem.

    Raises:
        NotReady: The time is over; the text names the problem.
        KubeError: It, or its pods, cannot be read.
    """

    async def wait(report: Report) -> JsonObject | None:
        while True:
            live = await without_problem(
                client, DEPLOYMENT, key, direct_problem(DEPLOYMENT), report
            )
            pods = await _pods(client, live or {})
            problem = _surplus(live or {}, pods, clock.now())
            if problem is None:
                return live
            report(problem)
            await _changed(client, pods)

    return await wait_at_most(limit, DEPLOYMENT, key, wait, note)


def _surplus(deployment: JsonObject, pods: list[JsonObject], now: datetime) -> str | None:
    """Return a problem if there are more pods than desired; the status tells if there are fewer."""
    if is_skipped(deployment):
        return None
    found, desired = sum(1 for _ in pods_of(deployment, pods, now=now)), replicas(deployment)
    return f"there are {found} pods, expected {desired}" if found > desired else None


async def _pods(client: Client, deployment: JsonObject) -> list[JsonObject]:
    selector = map_at(deployment, "spec", "selector")
    if is_empty(selector):
        return []
    namespace = Key.of(deployment).namespace
    return await client.live.list(POD, namespace, labels=format_selector(selector))


async def _changed(client: Client, pods: list[JsonObject]) -> None:
    """Wait until a terminating pod is gone, or for a while if none is terminating."""
    terminating = next((Key.of(pod) for pod in pods if deletion_timestamp_of(pod)), None)
    if terminating is None:
        await asyncio.sleep(POLL_SECONDS)
        return
    await without_problem(client, POD, terminating, gone, lambda _: None)
