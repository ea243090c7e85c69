"""A function that fails on one object ends neither the cache nor the other subscribers."""

from typing import cast

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.isolation import callbacks_failed
from pergola.runtime.metrics import Metrics


def config_map(name: str, version: int, text: str) -> JsonObject:
    metadata = {"name": name, "namespace": "ns", "resourceVersion": str(version)}
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"text": text}}


def keep(obj: JsonObject) -> str:
    text: str = obj["data"]["text"]
    if text == "odd":
        raise ValueError("an odd object")
    return text


def a_cache() -> Cache[str]:
    return Cache(cast("Client", None), CONFIG_MAP, keep)


def test_an_unreadable_object_keeps_its_last_state() -> None:
    cache, seen = a_cache(), list[Change[str]]()
    cache.subscribe(seen.append)
    before = callbacks_failed()

    cache.observe(config_map("a", 1, "fine"))
    cache.observe(config_map("a", 2, "odd"))
    cache.observe(config_map("b", 3, "odd"))
    assert callbacks_failed() == before + 2
    assert dict(cache.items()) == {Key("ns", "a"): "fine"}

    cache.observe(config_map("a", 4, "better"))
    assert [(change.old, change.new) for change in seen] == [(None, "fine"), ("fine", "better")]


def test_a_failing_subscriber_does_not_affect_the_others() -> None:
    cache, seen = a_cache(), list[Change[str]]()

    def failing(_: Change[str]) -> None:
        raise RuntimeError("a defect")

    cache.observe(config_map("a", 1, "fine"))
    before = callbacks_failed()
    cache.subscribe(failing)
    cache.subscribe(seen.append)
    cache.observe(config_map("a", 2, "better"))

    assert callbacks_failed() == before + 2
    assert [(change.old, change.new) for change in seen] == [(None, "fine"), ("fine", "better")]
    total = f"pergola_cache_callbacks_failed_total {float(callbacks_failed())}"
    assert total in Metrics().render().decode()
