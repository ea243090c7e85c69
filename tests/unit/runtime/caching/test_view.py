"""A view keeps its own facts about the objects in a cache."""

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.credentials import Anonymous
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.transport import Transport
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.packed import Packed, packed
from pergola.runtime.caching.view import View

A = Key("here", "a")


@pytest.fixture
def cache() -> Cache[Packed]:
    config = ClusterConfig(
        server="https://localhost",
        ca=None,
        insecure=False,
        tls_server_name=None,
        proxy_url=None,
        credentials=Anonymous(),
        namespace="here",
        context="test",
    )
    return Cache(Client(Transport(config)), CONFIG_MAP, packed, namespace="here")


def config_map(version: int, value: str, **labels: str) -> JsonObject:
    metadata = {"namespace": A.namespace, "name": A.name, "labels": labels}
    return {
        "apiVersion": "v1",
        "kind": "ConfigMap",
        "metadata": {**metadata, "resourceVersion": str(version)},
        "data": {"key": value},
    }


def value_of(obj: JsonObject) -> str:
    return str(obj["data"]["key"])


def test_a_view_follows_its_cache_and_notifies_its_own_subscribers(cache: Cache[Packed]) -> None:
    cache.observe(config_map(1, "old"))
    view, changes = View(cache, value_of), list[Change[str]]()
    view.subscribe(changes.append)
    cache.observe(config_map(2, "new"))
    assert view.get(A) == "new"
    assert dict(view.items()) == {A: "new"}
    assert changes == [Change(A, None, "old", initial=True), Change(A, "old", "new")]


def test_an_object_that_stops_matching_leaves_the_view(cache: Cache[Packed]) -> None:
    view, changes = View(cache, value_of, labels="kept=yes"), list[Change[str]]()
    view.subscribe(changes.append)
    cache.observe(config_map(1, "unseen"))
    cache.observe(config_map(2, "seen", kept="yes"))
    cache.observe(config_map(3, "unseen", kept="no"))
    assert view.get(A) is None
    assert changes == [Change(A, None, "seen"), Change(A, "seen", None)]


def test_an_unreadable_object_keeps_its_last_facts(cache: Cache[Packed]) -> None:
    view = View(cache, value_of)
    cache.observe(config_map(1, "readable"))
    cache.observe({**config_map(2, "x"), "data": {}})
    assert view.get(A) == "readable"
    assert cache.get(A) is not None
