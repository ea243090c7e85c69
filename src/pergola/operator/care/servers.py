"""The health that the virtual API server and each Prometheus report (spec 21 §3.3, §5.4)."""

import asyncio
from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple

import aiohttp
import orjson

from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, maps_at
from pergola.health import CareFailure
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, ConfigurationError, KubeError
from pergola.operator.virtual_cluster import NotConnected, VirtualCluster
from pergola.runtime.clock import monotonic
from pergola.runtime.logging import get_logger
from pergola.runtime.task_group import TaskGroup

log = get_logger("garden-care")

PROMETHEUS: Final = GroupVersionKind("monitoring.coreos.com", "v1", "Prometheus")
CHECKED_BY: Final = {"health-check-by": "gardener-operator"}
QUERY: Final = "healthcheck:up"
_OK: Final = 200
_LONGEST: Final = 500
"""The length of an answer to report."""
_NO_ACCESS: Final = CareFailure(
    "VirtualGardenAPIServerDown",
    "Could not reach virtual garden API server during client initialization.",
)
_NOT_DEPLOYED: Final = "health check recording rules are not deployed or running yet"
_HEALTHY, _UNHEALTHY = "1", "0"
_SECONDS: Final = 5.0

Query = Callable[[str, str], Awaitable[JsonObject]]
"""Sends an expression to the Prometheus at an address; returns the answer of an instant query."""


class Probe(NamedTuple):
    """The answer of an API server's health endpoint.

    Attributes:
        code: The HTTP status; 0 if there was no answer.
        text: The body of the answer, or why there is none.
        seconds: The response time.
    """

    code: int
    text: str = ""
    seconds: float = 0.0


Probing = Callable[[], Awaitable[Probe | None]]
"""Requests a health endpoint; returns None without access to the API server."""


class Pod(NamedTuple):
    """A pod of a Prometheus."""

    key: Key
    address: str


class QueryError(Exception):
    """A Prometheus did not answer a query, or not as expected."""


async def probe(cluster: VirtualCluster) -> Probe | None:
    """Request `/healthz`; return None while the Secret has no usable kubeconfig."""
    try:
        return await _answer(await cluster.client())
    except (NotConnected, ConfigurationError) as error:
        log.info("no access to the virtual cluster", reason=str(error))
        return None


async def _answer(client: Client) -> Probe:
    began = monotonic()
    try:
        body = await client.get_raw("/healthz")
    except ApiError as error:
        # The operator wrote the kubeconfig, so the text is that of the Garden's own API server.
        text = error.body[:_LONGEST].decode(errors="replace") or str(error)
        return Probe(error.code, text, monotonic() - began)
    except ConfigurationError:
        raise
    except KubeError as error:
        return Probe(0, str(error), monotonic() - began)
    return Probe(_OK, body.decode(errors="replace"), monotonic() - began)


def check_api_server(answer: Probe | None) -> CareFailure | None:
    """Return the problem of an API server, judging by the answer of its health endpoint, or None.

    Messages never contain response times: they differ from run to run, and each would cost a write.
    """
    if answer is None:
        return _NO_ACCESS
    if answer.code == _OK:
        return None
    if not answer.code:
        text = f"Request to API server /healthz endpoint failed. ({answer.text})"
        return CareFailure("HealthzRequestFailed", text)
    return CareFailure(
        "HealthzRequestError",
        "API server /healthz endpoint check returned a non ok status code "
        f"{answer.code}. ({answer.text})",
    )


def pods_of(prometheus: JsonObject) -> tuple[Pod, ...]:
    """Return the pods of a Prometheus."""
    (namespace, name), spec = Key.of(prometheus), map_at(prometheus, "spec")
    replicas = spec.get("replicas")
    domain = f"{spec.get('serviceName') or 'prometheus-operated'}.{namespace}.svc.cluster.local"
    numbers = range(replicas if isinstance(replicas, int) else 1)
    pods = [f"prometheus-{name}-{number}" for number in numbers]
    return tuple(Pod(Key(namespace, pod), f"http://{pod}.{domain}:9090") for pod in pods)


async def check_prometheuses(
    prometheuses: Iterable[tuple[Key, Sequence[Pod]]], query: Query
) -> CareFailure | None:
    """Query all pods at once; return the problem of the first one that has one, or None.

    Args:
        prometheuses: The pods of each Prometheus.
    """
    pods = [pod for _, each in sorted(prometheuses) for pod in each]
    async with TaskGroup() as group:
        running = [group.create_task(_check(pod, query)) for pod in pods]
    return next((task.result() for task in running if task.result()), None)


async def _check(pod: Pod, query: Query) -> CareFailure | None:
    try:
        async with asyncio.timeout(_SECONDS):
            return _judge(pod.key, await query(pod.address, QUERY))
    except TimeoutError:
        problem = f"no answer within {_SECONDS:g} seconds"
    except QueryError as error:
        problem = str(error)
    return CareFailure(
        "PrometheusHealthCheckError",
        f'Querying Prometheus pod "{pod.key}" for health checking returned an error: {problem}',
    )


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


def _judge(pod: Key, answer: JsonObject) -> CareFailure | None:
    """Return the problem that an answer reports, or None.

    Raises:
        QueryError: The answer is not one about health.
    """
    samples = _samples(answer)
    if _is_healthy([value for _, value in samples]):
        return None
    details = ", ".join(sorted(labels for labels, _ in samples)) or _NOT_DEPLOYED
    cut = details if len(details) <= _LONGEST else f"{details[:_LONGEST]}..."
    return CareFailure(
        "PrometheusHealthCheckDown",
        f'There are health issues in Prometheus pod "{pod}". Access Prometheus UI and query for '
        f'"{QUERY}" for more details: {cut}',
    )


def _samples(answer: JsonObject) -> list[tuple[str, str]]:
    """Return the labels and the value of each sample."""
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
