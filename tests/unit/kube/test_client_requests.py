"""No name or namespace, however odd, makes a request affect more than it names."""

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager
from typing import NamedTuple, TypeVar
from urllib.parse import unquote

import orjson
import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.kinds import CONFIG_MAP, NAMESPACE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import InvalidKey, Unreachable
from pergola.kube.guards import Guard
from pergola.kube.selectors import SelectorError
from pergola.kube.transport import Transport
from pergola.kube.watch import watch

T = TypeVar("T")

SERVED = orjson.dumps(
    {
        "kind": "APIResourceList",
        "groupVersion": "v1",
        "resources": [
            {"name": "configmaps", "kind": "ConfigMap", "namespaced": True},
            {"name": "namespaces", "kind": "Namespace", "namespaced": False},
        ],
    }
)
TEXTS = st.one_of(
    st.sampled_from(["", ".", "..", "a", "a/b", "a%2Fb", "a/", "/", "%", "a?b", "a#b", "a;b", " "]),
    st.text(max_size=20),
    st.text("./%ab?#&=", max_size=8),
)
KEYS = st.builds(Key, TEXTS, TEXTS)


class Selection(NamedTuple):
    namespace: str | None
    labels: str | None
    fields: str | None


SELECTORS = st.one_of(st.none(), st.sampled_from(["", " ", ",", " , ", "a", "a=b,!c"]), TEXTS)
SELECTIONS = st.builds(Selection, st.one_of(st.none(), TEXTS), SELECTORS, SELECTORS)


class RecordingTransport(Transport):
    """A transport that records requests, and returns an object."""

    def __init__(self) -> None:
        self.sent: list[tuple[str, str, Mapping[str, str]]] = []

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
        if path == "/api/v1":
            return SERVED
        self.sent.append((method, path, query or {}))
        return b'{"kind": "Status", "items": []}'

    @asynccontextmanager
    async def stream(
        self, path: str, query: Mapping[str, str], *, accept: str, silence: float
    ) -> AsyncIterator[AsyncIterator[bytes]]:
        self.sent.append(("WATCH", path, query))
        yield _nothing()


async def _nothing() -> AsyncIterator[bytes]:
    for line in list[bytes]():
        yield line


def an_object(gvk: GroupVersionKind, key: Key) -> JsonObject:
    return {
        "apiVersion": gvk.api_version,
        "kind": gvk.kind,
        "metadata": {"name": key.name, "namespace": key.namespace},
    }


VERBS: dict[str, Callable[[Client, GroupVersionKind, Key], Awaitable[object]]] = {
    "get": lambda client, gvk, key: client.get(gvk, key),
    "get metadata": lambda client, gvk, key: client.get(gvk, key, metadata_only=True),
    "delete": lambda client, gvk, key: client.delete(gvk, key),
    "delete one": lambda client, gvk, key: client.delete(gvk, key, uid="1", resource_version="2"),
    "patch": lambda client, gvk, key: client.patch(gvk, key, {"data": {}}),
    "update": lambda client, gvk, key: client.update(an_object(gvk, key)),
    "apply": lambda client, gvk, key: client.apply(an_object(gvk, key), manager="test"),
    "post": lambda client, gvk, key: client.create_subresource(gvk, key, "token", {}),
    "patch status": lambda client, gvk, key: client.patch(gvk, key, {}, subresource="status"),
}
SUBRESOURCES = {"post": ["token"], "patch status": ["status"]}


def sent(
    verb: Callable[[Client, GroupVersionKind, T], Awaitable[object]],
    gvk: GroupVersionKind,
    key: T,
) -> list[tuple[str, str, Mapping[str, str]]]:
    transport = RecordingTransport()

    async def run() -> None:
        await verb(Client(transport), gvk, key)

    try:
        asyncio.run(run())
    except Unreachable:
        pass  # the transport's answer fits no question
    except (InvalidKey, SelectorError):
        assert transport.sent == []
    return transport.sent


async def a_list(client: Client, gvk: GroupVersionKind, selection: Selection) -> None:
    await client.list(gvk, selection.namespace, labels=selection.labels, fields=selection.fields)


async def a_watch(client: Client, gvk: GroupVersionKind, selection: Selection) -> None:
    events = watch(
        client,
        await client.resource(gvk),
        selection.namespace,
        labels=selection.labels,
        fields=selection.fields,
        timeout_seconds=1,
    )
    async for _ in events:
        pass


def segments(path: str) -> list[str]:
    """Return the segments of a path like the API server: decoded first, and then split."""
    return unquote(path).split("/")[1:]


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.thorough("fuzz")
@given(key=KEYS)
def test_a_request_addresses_exactly_its_object_or_is_not_sent(verb: str, key: Key) -> None:
    for method, path, _ in sent(VERBS[verb], CONFIG_MAP, key):
        expected = ["api", "v1", "namespaces", key.namespace, "configmaps", key.name]
        assert segments(path) == [*expected, *SUBRESOURCES.get(verb, [])], method
        assert not {"", ".", ".."} & set(expected)


@pytest.mark.parametrize("verb", VERBS)
@pytest.mark.thorough("fuzz")
@given(name=TEXTS)
def test_a_name_of_a_cluster_scoped_object_is_one_segment(verb: str, name: str) -> None:
    for method, path, _ in sent(VERBS[verb], NAMESPACE, Key("", name)):
        expected = ["api", "v1", "namespaces", name]
        assert segments(path) == [*expected, *SUBRESOURCES.get(verb, [])], method
        assert name not in ("", ".", "..")


@pytest.mark.parametrize("gvk", [CONFIG_MAP, NAMESPACE])
@pytest.mark.parametrize("key", [Key("ns", ""), Key("", ""), Key("ns", ".."), Key("ns", "a/b")])
@pytest.mark.parametrize("verb", VERBS)
def test_a_key_that_addresses_no_object_is_refused(
    gvk: GroupVersionKind, key: Key, verb: str
) -> None:
    assert sent(VERBS[verb], gvk, key) == []


@pytest.mark.parametrize("verb", [a_list, a_watch])
@pytest.mark.thorough("fuzz")
@given(selection=SELECTIONS)
def test_a_selection_is_sent_exactly_or_not_at_all(
    verb: Callable[[Client, GroupVersionKind, Selection], Awaitable[object]],
    selection: Selection,
) -> None:
    for method, path, query in sent(verb, CONFIG_MAP, selection):
        assert method in ("GET", "WATCH")
        if selection.namespace is None:
            assert segments(path) == ["api", "v1", "configmaps"]
        else:
            assert segments(path) == ["api", "v1", "namespaces", selection.namespace, "configmaps"]
            assert selection.namespace not in ("", ".", "..")
        assert query.get("labelSelector") == selection.labels
        assert query.get("fieldSelector") == selection.fields


@pytest.mark.thorough("fuzz")
@given(namespace=TEXTS)
def test_an_object_is_created_in_its_namespace_or_not_at_all(namespace: str) -> None:
    async def create(client: Client, gvk: GroupVersionKind, key: Key) -> None:
        await client.create(an_object(gvk, key))

    for method, path, _ in sent(create, CONFIG_MAP, Key(namespace, "a")):
        assert (method, segments(path)) == (
            "POST",
            ["api", "v1", "namespaces", namespace, "configmaps"],
        )
        assert namespace not in ("", ".", "..")
