"""Requests and their failures, against a server that simulates faults, not an API server."""

import asyncio
import socket
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Literal, NamedTuple

import orjson
import pytest
from aiohttp import test_utils, web

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client, is_missing_kind
from pergola.kube.credentials import Credentials, Impersonation, StaticToken, bearer
from pergola.kube.errors import (
    AlreadyExists,
    ApiError,
    ConfigurationError,
    Conflict,
    Forbidden,
    Gone,
    Invalid,
    NotFound,
    TooManyRequests,
    Unauthorized,
    UnknownKind,
    Unreachable,
)
from pergola.kube.guards import Guard
from pergola.kube.throttle import Throttle
from pergola.kube.transport import Transport
from tests.support.cluster_config import cluster_config

MEBIBYTE = 1024 * 1024


class Answer(NamedTuple):
    """An answer of the server, and whether it ends, continues forever or breaks off."""

    code: int = 200
    body: bytes = b"{}"
    headers: dict[str, str] = {}  # noqa: RUF012 - never changed
    then: Literal["end", "hang", "break"] = "end"
    is_silent: bool = False


class Asked(NamedTuple):
    """A request that the server received."""

    method: str
    path: str
    authorization: str
    body: bytes


class Player:
    """A server that gives its answers in turn, repeating the last one."""

    def __init__(self, *answers: Answer) -> None:
        self._answers = list(answers)
        self.asked: list[Asked] = []
        self.url = ""
        self._heard = asyncio.Event()

    async def was_asked(self, count: int) -> None:
        """Wait until this many requests arrived."""
        while len(self.asked) < count:
            self._heard.clear()
            await self._heard.wait()

    async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
        authorization = request.headers.get("Authorization", "")
        body = await request.content.read()
        self.asked.append(Asked(request.method, request.path, authorization, body))
        self._heard.set()
        answer = self._answers.pop(0) if len(self._answers) > 1 else self._answers[0]
        if answer.is_silent:
            await asyncio.Event().wait()
        response = web.StreamResponse(status=answer.code, headers=answer.headers)
        await response.prepare(request)
        await response.write(answer.body)
        if answer.then == "hang":
            await asyncio.Event().wait()
        if answer.then == "break" and request.transport is not None:
            request.transport.close()
        return response


@asynccontextmanager
async def playing(*answers: Answer, kind: type[Player] = Player) -> AsyncIterator[Player]:
    """Run a server with these answers."""
    player = kind(*answers)
    server = test_utils.RawTestServer(player, handler_cancellation=True)
    await server.start_server()
    player.url = str(server.make_url("")).rstrip("/")
    try:
        yield player
    finally:
        await server.close()


class Renewed:
    """A bearer token that changes after each rejection."""

    version = 0

    def __init__(self) -> None:
        self.rejections = 0

    async def headers(self) -> dict[str, str]:
        return bearer(f"token-{self.rejections}")

    def client_certificate(self) -> None:
        return None

    def rejected(self) -> bool:
        self.rejections += 1
        return True


@asynccontextmanager
async def transport_to(
    player: Player, credentials: Credentials | None = None, *, timeout: float = 20.0
) -> AsyncIterator[Transport]:
    transport = Transport(cluster_config(player.url, credentials), timeout=timeout)
    try:
        yield transport
    finally:
        await transport.close()


def status(code: int, reason: str, **details: object) -> Answer:
    """Return a refusal in the API server's words."""
    body: JsonObject = {
        "kind": "Status",
        "apiVersion": "v1",
        "status": "Failure",
        "message": f"it said {reason}",
        "reason": reason,
        "code": code,
    }
    if details:
        body["details"] = details
    return Answer(code, orjson.dumps(body))


BUSY = Answer(429, b"Too Many Requests", {"Retry-After": "0"})
OK = Answer(200, b'{"fine":true}')


# Retries


async def test_a_request_to_a_busy_server_is_retried() -> None:
    async with playing(BUSY, BUSY, OK) as player, transport_to(player) as transport:
        assert await transport.request("POST", "/x", body=b"content") == OK.body
    assert [asked.body for asked in player.asked] == [b"content"] * 3


async def test_each_attempt_requires_permission_right_before_it_is_sent() -> None:
    asked: list[int] = []

    def permission() -> None:
        asked.append(len(player.asked))
        if len(asked) == 2:
            raise LookupError("not any more")

    async with playing(BUSY, OK) as player, transport_to(player) as transport:
        with pytest.raises(LookupError):
            await transport.request("PUT", "/x", body=b"{}", guard=Guard(permission))
    assert asked == [0, 1]
    assert len(player.asked) == 1


async def test_a_write_with_a_deadline_waits_for_the_server_before_it_asks_for_permission() -> None:
    reading = asyncio.Event()

    class Reader(Player):
        async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
            assert request.query["timeout"] == "15s"
            reading.set()
            await request.writer.write(b"HTTP/1.1 100 Continue\r\n\r\n")
            return await super().__call__(request)

    async with playing(OK, kind=Reader) as player, transport_to(player) as transport:
        guard = Guard(lambda: None if reading.is_set() else pytest.fail("asked too early"), 15.0)
        assert await transport.request("POST", "/x", body=b"content", guard=guard) == OK.body
    assert [asked.body for asked in player.asked] == [b"content"]


async def test_a_server_may_refuse_a_write_before_it_reads_the_body() -> None:
    class Refusing(Player):
        async def __call__(self, request: web.BaseRequest) -> web.StreamResponse:
            return web.Response(status=403, body=b"{}")

    async with playing(OK, kind=Refusing) as player, transport_to(player) as transport:
        guard = Guard(lambda: pytest.fail("nothing asked for the body"), 15.0)
        with pytest.raises(Forbidden):
            await transport.request("POST", "/x", body=b"content", guard=guard)


async def test_the_retry_after_of_a_busy_server_is_respected() -> None:
    loop = asyncio.get_running_loop()
    busy = Answer(429, b"", {"Retry-After": "1"})
    async with playing(busy, OK) as player, transport_to(player) as transport:
        began = loop.time()
        await transport.request("GET", "/x")
        assert 1.0 <= loop.time() - began < 10.0


@pytest.mark.parametrize(
    "busy",
    [
        Answer(429, b"", {"Retry-After": "3600"}),
        status(429, "TooManyRequests", retryAfterSeconds=1e300),
        status(429, "TooManyRequests", retryAfterSeconds=31),
    ],
)
async def test_a_server_that_asks_for_a_longer_wait_is_an_error(busy: Answer) -> None:
    async with playing(busy) as player, transport_to(player) as transport:
        with pytest.raises(TooManyRequests) as caught:
            await transport.request("GET", "/x")
        assert caught.value.retry_after > 30
    assert len(player.asked) == 1


class Busy(Transport):
    """A transport to a server that always asks for some seconds."""

    def __init__(self, seconds: float) -> None:
        super().__init__(cluster_config())
        self._error = TooManyRequests(429, {"details": {"retryAfterSeconds": seconds}})
        self.sent = 0

    async def _send(self, *_: object) -> bytes:
        self.sent += 1
        raise self._error


@pytest.mark.looptime(start=0)
@pytest.mark.parametrize(("seconds", "sent", "waited"), [(10, 4, 30), (8, 4, 24), (1, 5, 4)])
async def test_the_waits_of_a_request_end_within_thirty_seconds(
    seconds: float, sent: int, waited: float
) -> None:
    transport = Busy(seconds)
    with pytest.raises(TooManyRequests):
        await transport.request("GET", "/x")
    assert (transport.sent, asyncio.get_running_loop().time()) == (sent, waited)


@pytest.mark.parametrize("header", ["²", "-1", "soon", "9" * 5000, "Wed, 21 Oct 2015 07:28:00 GMT"])
async def test_a_retry_after_that_is_no_number_of_seconds_is_ignored(header: str) -> None:
    busy = Answer(429, b"", {"Retry-After": header})
    async with playing(busy) as player, transport_to(player) as transport:
        with pytest.raises(TooManyRequests) as caught:
            await lines(transport)
        assert caught.value.retry_after == 1


async def test_a_stream_reports_the_retry_after() -> None:
    busy = Answer(503, b"", {"Retry-After": "7"})
    async with playing(busy) as player, transport_to(player) as transport:
        with pytest.raises(ApiError) as caught:
            await lines(transport)
        assert caught.value.retry_after == 7


@pytest.mark.parametrize("details", [[1], "x", None, {"retryAfterSeconds": "x"}, {"causes": 5}])
@pytest.mark.parametrize("reason", [[], {}, 5, None])
async def test_an_error_with_any_status_is_an_api_error(reason: object, details: object) -> None:
    body = {"kind": "Status", "reason": reason, "message": reason, "details": details}
    answer = Answer(503, orjson.dumps(body), {"Retry-After": "1"})
    async with playing(answer) as player, transport_to(player) as transport:
        with pytest.raises(ApiError) as caught:
            await transport.request("GET", "/x")
        error = caught.value
        assert (error.reason, error.causes, str(error)) == ("", [], "HTTP status 503")
        assert error.retry_after >= 0


async def test_the_delay_in_a_status_takes_precedence_over_the_header() -> None:
    busy = status(429, "TooManyRequests", retryAfterSeconds=0)
    busy = busy._replace(headers={"Retry-After": "600"})
    async with playing(busy, OK) as player, transport_to(player) as transport:
        async with asyncio.timeout(20):
            await transport.request("GET", "/x")
    assert len(player.asked) == 2


async def test_a_status_with_empty_details_may_come_with_a_retry_after() -> None:
    busy = Answer(429, b'{"kind":"Status","details":null}', {"Retry-After": "0"})
    async with playing(busy, OK) as player, transport_to(player) as transport:
        assert await transport.request("GET", "/x") == OK.body


async def test_a_permanently_busy_server_is_an_error() -> None:
    async with playing(BUSY) as player, transport_to(player) as transport:
        with pytest.raises(TooManyRequests, match="Too Many Requests"):
            await transport.request("GET", "/x")
    assert len(player.asked) == 5


# Credentials


async def test_fresh_credentials_are_tried_once() -> None:
    credentials = Renewed()
    async with (
        playing(status(401, "Unauthorized"), OK) as player,
        transport_to(player, credentials) as transport,
    ):
        assert await transport.request("GET", "/x") == OK.body
    assert [asked.authorization for asked in player.asked] == ["Bearer token-0", "Bearer token-1"]


@pytest.mark.parametrize(
    "credentials",
    [
        StaticToken("a\nb"),
        StaticToken("\x00"),
        Impersonation("a\r\nImpersonate-User: b"),
        Impersonation("a", uid="\x7f"),
        Impersonation("a", groups=["b", "c\nd"]),
    ],
)
async def test_credentials_with_control_characters_are_never_sent(
    credentials: Credentials,
) -> None:
    async with playing(OK) as player, transport_to(player, credentials) as transport:
        with pytest.raises(ConfigurationError, match=r"control character in (Auth|Impersonate)"):
            await transport.request("GET", "/x")
        with pytest.raises(ConfigurationError, match="control character"):
            async with transport.stream("/x", {}, accept="", silence=1.0):
                pass
    assert player.asked == []


async def test_credentials_that_stay_rejected_are_reported() -> None:
    credentials = Renewed()
    async with (
        playing(status(401, "Unauthorized")) as player,
        transport_to(player, credentials) as transport,
    ):
        with pytest.raises(Unauthorized, match="it said Unauthorized"):
            await transport.request("GET", "/x")
    assert len(player.asked) == 2


async def test_requests_with_constant_credentials_are_not_retried() -> None:
    async with (
        playing(status(401, "Unauthorized")) as player,
        transport_to(player) as transport,
    ):
        with pytest.raises(Unauthorized, match=r"http://.* does not accept the credentials"):
            await transport.request("GET", "/x")
    assert len(player.asked) == 1


async def test_credentials_may_expire_while_the_server_is_busy() -> None:
    answers = (BUSY, BUSY, BUSY, BUSY, status(401, "Unauthorized"), OK)
    async with playing(*answers) as player, transport_to(player, Renewed()) as transport:
        assert await transport.request("GET", "/x") == OK.body


async def test_a_refused_stream_is_next_opened_with_fresh_credentials() -> None:
    credentials = Renewed()
    async with (
        playing(status(401, "Unauthorized"), Answer(body=b"1\n")) as player,
        transport_to(player, credentials) as transport,
    ):
        with pytest.raises(Unauthorized):
            await lines(transport)
        assert await lines(transport) == [b"1"]
    assert player.asked[1].authorization == "Bearer token-1"


# Refusals


@pytest.mark.parametrize("code", [500, 502, 503, 504])
async def test_an_error_is_reported_without_a_body_other_than_a_status(code: int) -> None:
    answer = Answer(code, b"<html>secret of another server\xff</html>\n")
    async with playing(answer) as player, transport_to(player) as transport:
        with pytest.raises(ApiError, match=f"^HTTP status {code} [A-Z]") as caught:
            await transport.request("GET", "/x")
    assert "secret" not in orjson.dumps(caught.value.status).decode()
    assert caught.value.code == code
    assert caught.value.reason == ""
    assert caught.value.causes == []
    assert len(player.asked) == 1


@pytest.mark.parametrize("code", [301, 302, 307, 308])
async def test_a_redirect_is_not_followed(code: int) -> None:
    async with playing(Answer(code, b"", {"Location": "/elsewhere"})) as player:
        async with transport_to(player) as transport:
            with pytest.raises(ApiError) as caught:
                await transport.request("GET", "/x")
        assert caught.value.code == code
        assert len(player.asked) == 1


@pytest.mark.parametrize("body", [b"", b"[]", b"null", b'{"kind":"Other"}', b'{"kind":"Status"}'])
async def test_an_error_with_any_body_is_an_api_error(body: bytes) -> None:
    async with playing(Answer(500, body)) as player, transport_to(player) as transport:
        with pytest.raises(ApiError) as caught:
            await transport.request("GET", "/x")
    assert caught.value.code == 500
    assert str(caught.value)


@pytest.mark.parametrize(
    ("code", "reason", "expected"),
    [
        (403, "Forbidden", Forbidden),
        (404, "NotFound", NotFound),
        (409, "AlreadyExists", AlreadyExists),
        (409, "Conflict", Conflict),
        (410, "Expired", Gone),
        (422, "Invalid", Invalid),
        (500, "InternalError", ApiError),
    ],
)
async def test_a_status_becomes_the_error_of_its_code_and_reason(
    code: int, reason: str, expected: type[ApiError]
) -> None:
    causes = [{"field": "spec.replicas", "reason": "FieldValueInvalid", "message": "too small"}]
    answer = status(code, reason, name="a", causes=causes)
    async with playing(answer) as player, transport_to(player) as transport:
        with pytest.raises(expected, match=f"it said {reason}") as caught:
            await transport.request("GET", "/x")
    assert type(caught.value) is expected
    assert (caught.value.code, caught.value.reason) == (code, reason)
    assert caught.value.causes == causes


SERVED = Answer(
    body=orjson.dumps(
        {
            "kind": "APIResourceList",
            "groupVersion": "v1",
            "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": True}],
        }
    )
)
UNSERVED = Answer(body=b'{"kind": "APIResourceList", "groupVersion": "v1", "resources": []}')


async def test_a_missing_object_is_distinguished_from_a_kind_that_is_not_served() -> None:
    missing = status(404, "NotFound", name="a", kind="configmaps")
    unserved = Answer(404, b"404 page not found\n", {"Content-Type": "text/plain"})
    key = Key("default", "a")
    async with (
        playing(SERVED, missing, unserved, UNSERVED, SERVED, missing) as player,
        Client.connect(cluster_config(player.url)) as client,
    ):
        with pytest.raises(NotFound) as caught:
            await client.get(CONFIG_MAP, key)
        assert not is_missing_kind(caught.value)
        with pytest.raises(UnknownKind):
            await client.get(CONFIG_MAP, key)
        client.discovery.forget(CONFIG_MAP)
        with pytest.raises(NotFound):
            await client.get(CONFIG_MAP, key)
    assert [asked.path for asked in player.asked] == [
        "/api/v1",
        "/api/v1/namespaces/default/configmaps/a",
        "/api/v1/namespaces/default/configmaps/a",
        "/api/v1",
        "/api/v1",
        "/api/v1/namespaces/default/configmaps/a",
    ]


@pytest.mark.parametrize(
    ("error", "missing"),
    [
        (NotFound(404, {}), True),
        (NotFound(404, {"details": None}), True),
        (NotFound(404, {"details": {}}), True),
        (NotFound(404, {"details": {"kind": "configmaps"}}), True),
        (NotFound(404, {"details": {"name": "a"}}), False),
        (NotFound(404, {"message": 'admission webhook "w.example.com" denied the request'}), False),
        (Forbidden(403, {}), False),
    ],
)
def test_a_404_without_an_object_means_a_missing_kind(error: ApiError, *, missing: bool) -> None:
    assert is_missing_kind(error) is missing


# No answer


async def test_a_successful_answer_that_is_not_json_counts_as_no_answer() -> None:
    page = Answer(200, b"<html>please sign in</html>")
    async with (
        playing(page, SERVED, page) as player,
        Client.connect(cluster_config(player.url)) as client,
    ):
        for path in ("/api/v1", "/api/v1/namespaces/ns/configmaps/a"):
            with pytest.raises(Unreachable, match=f"the answer for {path} is not valid JSON"):
                await client.get(CONFIG_MAP, Key("ns", "a"))


async def test_an_unreachable_server_is_named() -> None:
    with socket.socket() as unused:
        unused.bind(("127.0.0.1", 0))
        url = f"http://127.0.0.1:{unused.getsockname()[1]}"
        transport = Transport(cluster_config(url))
        with pytest.raises(Unreachable, match=url):
            await transport.request("GET", "/x")
        with pytest.raises(Unreachable, match=url):
            await lines(transport)
        await transport.close()


async def test_a_response_that_takes_too_long_means_unreachable() -> None:
    async with (
        playing(Answer(body=b"{", then="hang")) as player,
        transport_to(player, timeout=0.1) as transport,
    ):
        with pytest.raises(Unreachable, match=f"{player.url} did not answer in time"):
            await transport.request("GET", "/x")


@pytest.mark.parametrize("order", ["timeout first", "cancellation first"])
async def test_a_cancelled_request_ends_as_cancelled_even_after_its_timeout(
    order: str,
) -> None:
    for timeout in (0.2, 2, 20):  # a slow machine needs longer until the request is sent
        async with (
            playing(Answer(is_silent=True)) as player,
            transport_to(player, timeout=timeout) as transport,
        ):
            request = asyncio.create_task(transport.request("GET", "/x"))
            await player.was_asked(1)
            if request.done():
                continue
            delay = timeout if order == "timeout first" else 0.0
            asyncio.get_running_loop().call_later(delay, request.cancel)
            time.sleep(timeout * 1.2)  # noqa: ASYNC251 - a paused process: both are due at once

            with pytest.raises(asyncio.CancelledError):
                await request
            return
    pytest.fail("no request was sent in time")


async def test_a_truncated_response_means_unreachable() -> None:
    answer = Answer(body=b"{", headers={"Content-Length": "100"}, then="break")
    async with playing(answer) as player, transport_to(player) as transport:
        with pytest.raises(Unreachable, match=player.url):
            await transport.request("GET", "/x")


# Large bodies


@pytest.mark.parametrize("size", [MEBIBYTE, MEBIBYTE + 1, 3 * MEBIBYTE])
async def test_large_bodies_are_read_completely_without_a_warning(size: int) -> None:
    body = b"x" * size
    async with playing(BUSY, OK) as player, transport_to(player) as transport:
        await transport.request("PUT", "/x", body=body)
    assert [asked.body == body for asked in player.asked] == [True, True]


async def test_lines_of_a_stream_may_be_longer_than_a_mebibyte() -> None:
    long = b"x" * (2 * MEBIBYTE + 3)
    content = b"a\n" + long + b"\n\n" + long + b"\nb\n"
    async with playing(Answer(body=content)) as player, transport_to(player) as transport:
        assert await lines(transport) == [b"a", long, long, b"b"]


async def test_a_silent_stream_counts_as_ended() -> None:
    async with (
        playing(Answer(body=b"1\n", then="hang")) as player,
        transport_to(player) as transport,
    ):
        with pytest.raises(Unreachable, match=player.url):
            await lines(transport, silence=0.1)


async def lines(transport: Transport, *, silence: float = 20.0) -> list[bytes]:
    """Return all lines of a stream, until the server ends it."""
    async with transport.stream("/x", {}, accept="*/*", silence=silence) as stream:
        return [line async for line in stream]


# Afterwards


async def test_closing_leaves_no_connection_open() -> None:
    async with playing(OK, Answer(body=b"1\n", then="hang")) as player:
        transport = Transport(cluster_config(player.url))
        await transport.request("GET", "/x")
        given_up = asyncio.create_task(transport.request("GET", "/x"))
        reading = asyncio.create_task(lines(transport))
        async with asyncio.timeout(20):
            await player.was_asked(3)
        # Python 3.13 forgets a socket as soon as its request is cancelled.
        opened = list(transport._connections._sockets)
        assert opened
        for task in (given_up, reading):
            task.cancel()
        await asyncio.gather(given_up, reading, return_exceptions=True)
        await transport.close()
        assert [one.fileno() for one in opened] == [-1] * len(opened)


async def test_each_response_is_observed_with_its_code() -> None:
    seen: list[tuple[str, str, str]] = []
    async with playing(OK, Answer(500)) as player:
        transport = Transport(
            cluster_config(player.url),
            observe=lambda method, code, host, _: seen.append((method, code, host)),
        )
        await transport.request("GET", "/x")
        with pytest.raises(ApiError):
            await transport.request("POST", "/x", body=b"{}")
        await transport.close()
    host = player.url.removeprefix("http://")
    assert seen == [("GET", "200", host), ("POST", "500", host)]


# Rate limits


@pytest.mark.looptime(start=0)
async def test_a_burst_is_sent_at_once_and_the_rest_at_the_configured_rate() -> None:
    throttle = Throttle(10.0, 3)
    assert await moments(throttle, 6) == pytest.approx([0.0, 0.0, 0.0, 0.1, 0.2, 0.3])


@pytest.mark.looptime(start=0)
async def test_a_pause_allows_another_burst_but_no_larger_one() -> None:
    throttle = Throttle(10.0, 3)
    await moments(throttle, 6)
    await asyncio.sleep(99.7)
    assert await moments(throttle, 5) == pytest.approx([100.0, 100.0, 100.0, 100.1, 100.2])


@pytest.mark.looptime(start=0)
@pytest.mark.parametrize("burst", [None, 0, 1])
async def test_without_a_burst_requests_are_sent_one_by_one(burst: int | None) -> None:
    assert await moments(Throttle(2.0, burst), 3) == pytest.approx([0.0, 0.5, 1.0])


@pytest.mark.looptime(start=0)
async def test_waiting_requests_are_sent_in_order() -> None:
    throttle = Throttle(10.0)
    served: list[int] = []

    async def one(number: int) -> None:
        await throttle.wait()
        served.append(number)

    async with asyncio.TaskGroup() as group:
        for number in range(10):
            group.create_task(one(number))
    assert served == list(range(10))


async def moments(throttle: Throttle, count: int) -> list[float]:
    """Return when each of several consecutive requests may start."""
    loop = asyncio.get_running_loop()
    passed = []
    for _ in range(count):
        await throttle.wait()
        passed.append(loop.time())
    return passed
