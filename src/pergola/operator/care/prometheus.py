"""The health query of each Prometheus of a Garden (spec 21 §3.3)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from typing import Final, NamedTuple

import aiohttp
import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.health import CareFailure
from pergola.runtime.task_group import TaskGroup

PROMETHEUS: Final = GroupVersionKind("monitoring.coreos.com", "v1", "Prometheus")
CHECKED_BY: Final = {"health-check-by": "gardener-operator"}
QUERY: Final = "healthcheck:up"
ERROR: Final = "PrometheusHealthCheckError"
DOWN: Final = "PrometheusHealthCheckDown"
_NOT_DEPLOYED: Final = "health check recording rules are not deployed or running yet"
_HEALTHY, _UNHEALTHY = "1", "0"
_LONGEST: Final = 500
_SECONDS: Final = 5.0

Query = Callable[[str, str], Awaitable[JsonObject]]
"""Sends an expression to the Prometheus at an address; returns the answer of an instant query."""


class QueryError(Exception):
    """A Prometheus did not answer a query, or not as expected."""


class Instance(NamedTuple):
    """The facts about a Prometheus that are needed to find its pods."""

    replicas: int
    service: str

    @classmethod
    def of(cls, prometheus: JsonObject) -> "Instance":
        """Return these facts about an object."""
        spec = map_at(prometheus, "spec")
        replicas = spec.get("replicas")
        return cls(
            replicas if isinstance(replicas, int) else 1,
            str(spec.get("serviceName") or "prometheus-operated"),
        )


class Pod(NamedTuple):
    """A pod of a Prometheus."""

    key: Key
    address: str


def pods_of(instances: Iterable[tuple[Key, Instance]]) -> Iterator[Pod]:
    """Yield all pods, ordered by name."""
    for (namespace, name), instance in sorted(instances):
        for number in range(instance.replicas):
            pod = f"prometheus-{name}-{number}"
            host = f"{pod}.{instance.service}.{namespace}.svc.cluster.local"
            yield Pod(Key(namespace, pod), f"http://{host}:9090")


async def check_prometheuses(pods: Iterable[Pod], query: Query) -> CareFailure | None:
    """Query all pods at once; return the problem of the first one that has one, or None."""
    async with TaskGroup() as group:
        running = [group.create_task(_check(pod, query)) for pod in pods]
    return next((task.result() for task in running if task.result()), None)


async def query_prometheus(address: str, expression: str) -> JsonObject:
    """Return the answer of an instant query.

    Raises:
        QueryError: There is no answer, or it is not JSON.
    """
    timeout = aiohttp.ClientTimeout(total=_SECONDS)
    try:
        async with (
            aiohttp.ClientSession(timeout=timeout) as session,
            session.get(f"{address}/api/v1/query", params={"query": expression}) as response,
        ):
            answer = orjson.loads(await response.read())
    except TimeoutError:
        raise QueryError(f"{address} did not answer within {_SECONDS:g} seconds") from None
    except (aiohttp.ClientError, OSError) as error:
        raise QueryError(f"cannot reach {address}: {error}") from error
    except orjson.JSONDecodeError:
        raise QueryError(f"{address} answered HTTP status {response.status} without JSON") from None
    if not isinstance(answer, dict):
        raise QueryError(f"{address} answered with JSON that is not an object")
    return answer


def judge(pod: Key, answer: JsonObject) -> CareFailure | None:
    """Return the problem that an answer reports, or None."""
    try:
        samples = _samples(answer)
        is_healthy = _is_healthy([value for _, value in samples])
    except QueryError as error:
        return _error(pod, error)
    if is_healthy:
        return None
    details = ", ".join(sorted(labels for labels, _ in samples)) or _NOT_DEPLOYED
    cut = details if len(details) <= _LONGEST else f"{details[:_LONGEST]}..."
    return CareFailure(
        DOWN,
        f'There are health issues in Prometheus pod "{pod}". Access Prometheus UI and query for '
        f'"{QUERY}" for more details: {cut}',
    )


async def _check(pod: Pod, query: Query) -> CareFailure | None:
    try:
        async with asyncio.timeout(_SECONDS):
            return judge(pod.key, await query(pod.address, QUERY))
    except TimeoutError:
        return _error(pod.key, QueryError(f"no answer within {_SECONDS:g} seconds"))
    except QueryError as error:
        return _error(pod.key, error)


def _error(pod: Key, error: QueryError) -> CareFailure:
    return CareFailure(
        ERROR,
        f'Querying Prometheus pod "{pod}" for health checking returned an error: {error}',
    )


def _samples(answer: JsonObject) -> list[tuple[str, str]]:
    """Return the labels and the value of each sample.

    Raises:
        QueryError: The answer is an error, has warnings, or is not a vector.
    """
    if answer.get("status") != "success":
        raise QueryError(str(answer.get("error") or "the answer has no status"))
    if warnings := answer.get("warnings"):
        raise QueryError(f"the answer has warnings: {', '.join(map(str, warnings))}")
    data = map_at(answer, "data")
    if data.get("resultType") != "vector":
        raise QueryError(f"the result is a {data.get('resultType')}, not a vector")
    return [(_labels(map_at(each, "metric")), _value(each)) for each in maps_at(data, "result")]


def _labels(metric: JsonObject) -> str:
    labels = sorted((name, value) for name, value in metric.items() if name != "__name__")
    return "{" + ", ".join(f'{name}="{value}"' for name, value in labels) + "}"


def _value(sample: JsonObject) -> str:
    pair = sample.get("value")
    value = pair[-1] if isinstance(pair, list) and pair else None
    if value not in (_HEALTHY, _UNHEALTHY):
        raise QueryError(f"a sample has the value {value}, which is neither 0 nor 1")
    return str(value)


def _is_healthy(values: Sequence[str]) -> bool:
    healthy = values.count(_HEALTHY)
    if healthy > 1:
        raise QueryError(f"{healthy} samples report health, and there can be one")
    if healthy and len(values) > 1:
        raise QueryError("some samples report health, and others the opposite")
    return healthy == 1
