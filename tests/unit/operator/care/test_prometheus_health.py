"""The health query of each Prometheus (spec 21 §3.3)."""

import asyncio
from collections.abc import Mapping

import pytest
from aiohttp import web
from aiohttp.test_utils import TestServer

from pergola.api.objects import JsonObject, Key
from pergola.health import CareFailure
from pergola.operator.care.servers import (
    Pod,
    QueryError,
    check_prometheuses,
    pods_of,
    query_prometheus,
)

POD = Key("garden", "prometheus-garden-0")
ONE = [(Key("garden", "garden"), (Pod(POD, "it"),))]


def answer(*samples: tuple[Mapping[str, str], str], **changes: object) -> JsonObject:
    result: list[JsonObject] = [
        {"metric": dict(labels), "value": [1.5, value]} for labels, value in samples
    ]
    return {"status": "success", "data": {"resultType": "vector", "result": result}, **changes}


HEALTHY = answer(({}, "1"))


def down(details: str) -> CareFailure:
    return CareFailure(
        "PrometheusHealthCheckDown",
        'There are health issues in Prometheus pod "garden/prometheus-garden-0". Access Prometheus '
        f'UI and query for "healthcheck:up" for more details: {details}',
    )


def error(problem: str) -> CareFailure:
    return CareFailure(
        "PrometheusHealthCheckError",
        'Querying Prometheus pod "garden/prometheus-garden-0" for health checking returned an '
        f"error: {problem}",
    )


async def judged(found: JsonObject) -> CareFailure | None:
    """Return the problem of a Prometheus with an answer."""

    async def query(*_: str) -> JsonObject:
        return found

    return await check_prometheuses(ONE, query)


def prometheus(name: str, **spec: object) -> JsonObject:
    return {"metadata": {"namespace": "garden", "name": name}, "spec": spec}


def test_every_replica_has_its_own_address() -> None:
    assert (
        *pods_of(prometheus("garden", replicas=2)),
        *pods_of(prometheus("longterm", serviceName="long")),
    ) == (
        Pod(
            Key("garden", "prometheus-garden-0"),
            "http://prometheus-garden-0.prometheus-operated.garden.svc.cluster.local:9090",
        ),
        Pod(
            Key("garden", "prometheus-garden-1"),
            "http://prometheus-garden-1.prometheus-operated.garden.svc.cluster.local:9090",
        ),
        Pod(
            Key("garden", "prometheus-longterm-0"),
            "http://prometheus-longterm-0.long.garden.svc.cluster.local:9090",
        ),
    )


async def test_exactly_one_sample_with_value_1_is_healthy() -> None:
    assert await judged(HEALTHY) is None


async def test_no_samples_mean_that_the_rules_are_not_loaded_yet() -> None:
    assert await judged(answer()) == down(
        "health check recording rules are not deployed or running yet"
    )


async def test_unhealthy_samples_are_sorted() -> None:
    found = await judged(
        answer(({"task": "rule", "__name__": "healthcheck:up"}, "0"), ({"b": "2", "a": "1"}, "0")),
    )
    assert found == down('{a="1", b="2"}, {task="rule"}')


async def test_the_list_of_samples_is_limited() -> None:
    found = await judged(answer(*(({"task": f"{number:03}"}, "0") for number in range(100))))
    assert found is not None
    _, details = found.message.split("more details: ")
    assert len(details) == 503
    assert details.endswith("...")


@pytest.mark.parametrize(
    ("found", "problem"),
    [
        (answer(({}, "2")), "a sample has the value 2, which is neither 0 nor 1"),
        (answer(({}, "NaN")), "a sample has the value NaN, which is neither 0 nor 1"),
        (
            answer(({"a": "1"}, "1"), ({"a": "2"}, "1")),
            "2 samples report health, and there can be one",
        ),
        (
            answer(({}, "1"), ({"task": "x"}, "0")),
            "some samples report health, and others the opposite",
        ),
        (answer(({}, "1"), warnings=["old"]), "the answer has warnings: old"),
        (answer(data={"resultType": "scalar"}), "the result is a scalar, not a vector"),
        ({"status": "error", "error": "bad query"}, "bad query"),
        ({}, "the answer has no status"),
    ],
)
async def test_inconsistent_responses_are_errors(found: JsonObject, problem: str) -> None:
    assert await judged(found) == error(problem)


async def test_the_first_pod_that_fails_decides_in_the_order_of_names() -> None:
    answers = {"a": HEALTHY, "b": answer(), "c": {}}
    asked = []

    async def query(address: str, expression: str) -> JsonObject:
        asked.append((address, expression))
        return answers[address]

    a, b, c = (Pod(POD._replace(name=name), name) for name in answers)
    first, second = Key("garden", "first"), Key("garden", "second")
    found = await check_prometheuses([(second, [c]), (first, [a, b])], query)
    assert found is not None
    assert '"garden/b"' in found.message
    assert sorted(asked) == [(name, "healthcheck:up") for name in "abc"]
    assert await check_prometheuses([(first, [a])], query) is None
    assert await check_prometheuses([], query) is None


async def test_a_query_that_fails_is_reported() -> None:
    async def query(address: str, _: str) -> JsonObject:
        raise QueryError(f"cannot reach {address}")

    assert await check_prometheuses(ONE, query) == error("cannot reach it")


@pytest.mark.looptime(start=0)
async def test_a_query_without_a_response_times_out() -> None:
    async def query(*_: str) -> JsonObject:
        await asyncio.Event().wait()
        return {}

    found = await check_prometheuses(ONE, query)
    assert found == error("no answer within 5 seconds")


async def serving(status: int, text: str) -> TestServer:
    async def handle(request: web.Request) -> web.Response:
        assert request.query["query"] == "healthcheck:up"
        return web.Response(status=status, text=text)

    app = web.Application()
    app.router.add_get("/api/v1/query", handle)
    server = TestServer(app)
    await server.start_server()
    return server


async def test_the_api_of_prometheus_is_queried() -> None:
    server = await serving(200, '{"status": "success"}')
    try:
        address = str(server.make_url("")).rstrip("/")
        assert await query_prometheus(address, "healthcheck:up") == {"status": "success"}
    finally:
        await server.close()


@pytest.mark.parametrize(
    ("status", "text", "problem"),
    [
        (503, "not ready", "answered HTTP status 503 without JSON"),
        (200, "[]", "answered with JSON that is not an object"),
    ],
)
async def test_other_responses_are_errors(status: int, text: str, problem: str) -> None:
    server = await serving(status, text)
    try:
        with pytest.raises(QueryError, match=problem):
            await query_prometheus(str(server.make_url("")).rstrip("/"), "healthcheck:up")
    finally:
        await server.close()


async def test_an_unreachable_server_is_an_error() -> None:
    server = await serving(200, "{}")
    address = str(server.make_url("")).rstrip("/")
    await server.close()
    with pytest.raises(QueryError, match="cannot reach"):
        await query_prometheus(address, "healthcheck:up")
