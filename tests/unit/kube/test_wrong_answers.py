"""An answer with status 200 that does not fit its question, as from a broken proxy."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.objects import JsonObject, JsonValue, Key
from pergola.kube.client import Client
from pergola.kube.errors import KubeError, NotFound, UnknownKind, Unreachable, WrongAnswer
from pergola.kube.guards import Guard
from pergola.kube.transport import Transport
from pergola.kube.watch import watch
from tests.support.wrong_answers import WRONG_ANSWERS

KEY: Final = Key("ns", "a")
RIGHT: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "a", "namespace": "ns", "uid": "1", "resourceVersion": "2"},
    "data": {},
}
STATUS: Final[JsonObject] = {"apiVersion": "v1", "kind": "Status", "status": "Success"}
WRONG: Final[list[JsonValue]] = [
    None,
    [],
    {},
    5,
    "text",
    STATUS,
    {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []},
    {"apiVersion": "v1", "kind": "SecretList", "metadata": {}, "items": [RIGHT]},
    {**RIGHT, "kind": "ConfigMap"},
    {**RIGHT, "apiVersion": "v2"},
    {**RIGHT, "kind": "PartialObjectMetadata"},
    {**RIGHT, "metadata": None},
    {**RIGHT, "metadata": {**RIGHT["metadata"], "name": "b"}},
    {**RIGHT, "metadata": {**RIGHT["metadata"], "namespace": "other"}},
    {**RIGHT, "metadata": {"name": "a", "namespace": "ns"}},
]
WRONG_LISTS: Final[list[JsonValue]] = [
    *WRONG[:6],
    {"apiVersion": "v1", "kind": "List", "metadata": {}, "items": []},
    {"apiVersion": "v1", "kind": "SecretList", "metadata": {}},
    {"apiVersion": "v1", "kind": "SecretList", "metadata": {}, "items": {}},
    {"apiVersion": "v1", "kind": "SecretList", "metadata": {}, "items": [None]},
    {"apiVersion": "v1", "kind": "SecretList", "metadata": [1], "items": []},
    {"apiVersion": "v2", "kind": "SecretList", "metadata": {}, "items": []},
    RIGHT,
]
JSON: Final = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=5),
    lambda inner: (
        st.lists(inner, max_size=3)
        | st.dictionaries(
            st.sampled_from(["apiVersion", "kind", "metadata", "items", "name", "uid"]), inner
        )
    ),
    max_leaves=8,
)


class Answering(Transport):
    """A transport that serves Secrets and Namespaces, and answers all else with one value."""

    def __init__(self, answer: "JsonValue | bytes", *, discovery: JsonValue = None) -> None:
        self._answer = answer if isinstance(answer, bytes) else orjson.dumps(answer)
        self._served = discovery or {
            "kind": "APIResourceList",
            "groupVersion": "v1",
            "resources": [
                {"name": "secrets", "kind": "Secret", "namespaced": True},
                {"name": "namespaces", "kind": "Namespace", "namespaced": False},
            ],
        }

    async def request(
        self,
        method: str,
        path: str,
        *,
        query: Mapping[str, str] | None = None,
        body: bytes | None = None,
        content_type: str = "application/json",
        accept: str = "application/json",
        guard: Guard | None = None,
    ) -> bytes:
        return orjson.dumps(self._served) if path == "/api/v1" else self._answer

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, accept: str, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        yield self._lines()

    async def _lines(self) -> AsyncIterator[bytes]:
        yield self._answer


async def watched(client: Client) -> list[JsonObject]:
    """Return the objects of the events of a watch."""
    secrets = await client.resource(SECRET)
    return [event.object async for event in watch(client, secrets, "ns", timeout_seconds=1)]


READS: Final[dict[str, Callable[[Client], Awaitable[object]]]] = {
    "get": lambda client: client.get(SECRET, KEY),
    "get metadata": lambda client: client.get(SECRET, KEY, metadata_only=True),
    "find": lambda client: client.find(SECRET, KEY),
}


LIST: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "SecretList",
    "metadata": {"resourceVersion": "3"},
    "items": [RIGHT],
}
DELETED: Final[JsonObject] = {**STATUS, "details": {"name": "a", "kind": "secrets"}}
TOKEN: Final[JsonObject] = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest"}
QUESTIONS: Final[dict[str, tuple[Callable[[Client], Awaitable[object]], JsonObject]]] = {
    "get": (READS["get"], RIGHT),
    "get metadata": (READS["get metadata"], RIGHT),
    "list": (lambda client: client.list(SECRET, "ns"), LIST),
    "watch": (watched, {"type": "ADDED", "object": RIGHT}),
    "end of a list": (watched, {"type": "BOOKMARK", "object": RIGHT}),
    "create": (lambda client: client.create(RIGHT), RIGHT),
    "update": (lambda client: client.update(RIGHT), RIGHT),
    "update status": (lambda client: client.update(RIGHT, subresource="status"), RIGHT),
    "patch": (lambda client: client.patch(SECRET, KEY, {}), RIGHT),
    "apply": (lambda client: client.apply(RIGHT, manager="test"), RIGHT),
    "delete": (lambda client: client.delete(SECRET, KEY), DELETED),
    "start a deletion": (lambda client: client.delete(SECRET, KEY), RIGHT),
    "request a token": (lambda client: client.create_subresource(SECRET, KEY, "x", TOKEN), TOKEN),
}
FITTING: Final = {
    ("get metadata", "only metadata"),
    ("list", "another name"),
    ("watch", "another name"),
}


async def read(transport: Transport, question: Callable[[Client], Awaitable[object]]) -> object:
    return await question(Client(transport))


@pytest.mark.parametrize("wrong", WRONG, ids=str)
@pytest.mark.parametrize("question", READS)
def test_an_answer_that_is_not_the_object_is_an_outage(wrong: JsonValue, question: str) -> None:
    with pytest.raises(Unreachable):
        asyncio.run(read(Answering(wrong), READS[question]))


@pytest.mark.parametrize("question", QUESTIONS)
def test_a_wrong_answer_to_any_question_is_an_error_that_passes(
    question: str, subtests: pytest.Subtests
) -> None:
    ask, right = QUESTIONS[question]
    for wrong in WRONG_ANSWERS:
        body = wrong.body(orjson.dumps(right))
        is_other = wrong.status != 200 or bool(wrong.headers)
        if body is None or is_other or (question, wrong.name) in FITTING:
            continue
        with subtests.test(wrong.name):
            with pytest.raises(KubeError) as caught:
                asyncio.run(read(Answering(body), ask))
            assert not isinstance(caught.value, NotFound | UnknownKind)


@pytest.mark.parametrize("question", QUESTIONS)
def test_the_right_answer_is_accepted(question: str) -> None:
    ask, right = QUESTIONS[question]
    asyncio.run(read(Answering(right), ask))


@given(JSON, st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK", "ERROR", "X"]))
def test_no_json_is_taken_for_an_event(wrong: JsonValue, kind: str) -> None:
    for line in (wrong, {"type": kind, "object": wrong}):
        with pytest.raises(KubeError):
            asyncio.run(read(Answering(line), watched))


class Refusing(Answering):
    """A proxy that answers 404 to all but the requests of some paths."""

    def __init__(self, answers: Mapping[str, JsonObject]) -> None:
        super().__init__(None)
        self._answers = answers

    async def request(self, method: str, path: str, **_: object) -> bytes:
        if path not in self._answers:
            raise NotFound(404, {})
        return orjson.dumps(self._answers[path])


KINDS_OF_V1: Final[JsonObject] = {
    "kind": "APIResourceList",
    "groupVersion": "v1",
    "resources": [{"name": "secrets", "kind": "Secret", "namespaced": True}],
}


@pytest.mark.parametrize(
    "answers",
    [
        {},
        {"/api": {"kind": "APIVersions", "versions": ["v1"]}},
        {"/api": {"error": "not found"}},
        {"/api/v1": KINDS_OF_V1},
    ],
    ids=["everything", "the kinds", "the kinds with a wrong root", "the objects"],
)
def test_a_404_of_a_proxy_makes_no_kind_unknown(answers: Mapping[str, JsonObject]) -> None:
    for question in READS.values():
        with pytest.raises(WrongAnswer):
            asyncio.run(read(Refusing(answers), question))


def test_a_kind_is_unknown_if_the_server_lists_its_versions_without_it() -> None:
    answers: JsonObject = {"/api": {"kind": "APIVersions", "versions": ["v2"]}}
    with pytest.raises(UnknownKind):
        asyncio.run(read(Refusing(answers), READS["get"]))


@given(JSON)
def test_no_json_is_taken_for_an_object_or_a_list(wrong: JsonValue) -> None:
    for question in (*READS.values(), lambda client: client.list(SECRET)):
        with pytest.raises(Unreachable):
            asyncio.run(read(Answering(wrong), question))


@pytest.mark.parametrize("wrong", WRONG_LISTS, ids=str)
def test_an_answer_that_is_not_a_list_is_an_outage(wrong: JsonValue) -> None:
    with pytest.raises(Unreachable):
        asyncio.run(read(Answering(wrong), lambda client: client.list(SECRET, "ns")))


@pytest.mark.parametrize(
    "wrong",
    [
        {"kind": "Status"},
        {"resources": []},
        [1],
        {"kind": "APIResourceList", "groupVersion": "v1", "resources": {}},
        {"kind": "APIResourceList", "groupVersion": "v1", "resources": [{"name": "secrets"}]},
        {"kind": "APIResourceList", "groupVersion": "apps/v1", "resources": []},
    ],
    ids=str,
)
def test_an_answer_that_is_not_a_list_of_kinds_makes_no_kind_unknown(wrong: JsonValue) -> None:
    with pytest.raises(Unreachable):
        asyncio.run(read(Answering(RIGHT, discovery=wrong), READS["get"]))


@pytest.mark.parametrize("question", READS)
def test_the_object_is_returned(question: str) -> None:
    assert asyncio.run(read(Answering(RIGHT), READS[question])) == RIGHT


def test_metadata_of_the_object_is_an_answer() -> None:
    metadata = {**RIGHT, "apiVersion": "meta.k8s.io/v1", "kind": "PartialObjectMetadata"}

    assert asyncio.run(read(Answering(metadata), READS["get metadata"])) == RIGHT


def test_a_cluster_scoped_object_has_no_namespace() -> None:
    namespace = {**RIGHT, "kind": "Namespace", "metadata": {"name": "a", "uid": "1"}}

    answer = asyncio.run(read(Answering(namespace), lambda c: c.get(NAMESPACE, Key("x", "a"))))

    assert answer == namespace


@pytest.mark.parametrize("items", [None, [], [RIGHT]])
def test_a_list_may_be_empty_and_have_any_name(items: JsonValue) -> None:
    answer: JsonObject = {"apiVersion": "v1", "kind": "Secrets", "metadata": {}, "items": items}

    found = asyncio.run(read(Answering(answer), lambda client: client.list(SECRET)))

    assert found == (items or [])
