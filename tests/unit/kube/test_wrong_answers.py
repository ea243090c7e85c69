"""An answer with status 200 that does not fit its question, as from a broken proxy."""

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.kinds import NAMESPACE, SECRET
from pergola.api.objects import JsonObject, JsonValue, Key
from pergola.kube.client import Client
from pergola.kube.errors import Unreachable
from pergola.kube.guards import Guard
from pergola.kube.transport import Transport

KEY: Final = Key("ns", "a")
RIGHT: Final[JsonObject] = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "a", "namespace": "ns", "uid": "1"},
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

    def __init__(self, answer: JsonValue, *, discovery: JsonValue = None) -> None:
        self._answer = answer
        self._served = discovery or {
            "resources": [
                {"name": "secrets", "kind": "Secret", "namespaced": True},
                {"name": "namespaces", "kind": "Namespace", "namespaced": False},
            ]
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
        return orjson.dumps(self._served if path == "/api/v1" else self._answer)


READS: Final[dict[str, Callable[[Client], Awaitable[object]]]] = {
    "get": lambda client: client.get(SECRET, KEY),
    "get metadata": lambda client: client.get(SECRET, KEY, metadata_only=True),
    "find": lambda client: client.find(SECRET, KEY),
}


async def read(transport: Transport, question: Callable[[Client], Awaitable[object]]) -> object:
    return await question(Client(transport))


@pytest.mark.parametrize("wrong", WRONG, ids=str)
@pytest.mark.parametrize("question", READS)
def test_an_answer_that_is_not_the_object_is_an_outage(wrong: JsonValue, question: str) -> None:
    with pytest.raises(Unreachable):
        asyncio.run(read(Answering(wrong), READS[question]))


@given(JSON)
def test_no_json_is_taken_for_an_object_or_a_list(wrong: JsonValue) -> None:
    for question in (*READS.values(), lambda client: client.list(SECRET)):
        with pytest.raises(Unreachable):
            asyncio.run(read(Answering(wrong), question))


@pytest.mark.parametrize("wrong", WRONG_LISTS, ids=str)
def test_an_answer_that_is_not_a_list_is_an_outage(wrong: JsonValue) -> None:
    with pytest.raises(Unreachable):
        asyncio.run(read(Answering(wrong), lambda client: client.list(SECRET, "ns")))


@pytest.mark.parametrize("wrong", [{"kind": "Status"}, {"resources": {}}, [1]], ids=str)
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
