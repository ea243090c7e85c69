"""A failing condition has a series for as long as it fails."""

from prometheus_client import CollectorRegistry

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.controllers.condition_metrics import ConditionMetrics, of_packed
from pergola.kube.client import Client
from pergola.kube.transport import Transport
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.packed import packed
from tests.support.cluster_config import cluster_config


def extension(name: str, version: int, **conditions: str) -> JsonObject:
    return {
        "apiVersion": "operator.gardener.cloud/v1alpha1",
        "kind": "Extension",
        "metadata": {"name": name, "resourceVersion": str(version)},
        "status": {"conditions": [{"type": k, "status": v} for k, v in conditions.items()]},
    }


def series(registry: CollectorRegistry) -> dict[tuple[str, ...], float]:
    return {
        tuple(sample.labels.values()): sample.value
        for family in registry.collect()
        for sample in family.samples
    }


async def test_a_failing_condition_has_a_series_until_it_is_as_it_should_be() -> None:
    registry = CollectorRegistry()
    extensions = Cache(Client(Transport(cluster_config())), EXTENSION, packed)
    extensions.observe(extension("early", 1, Installed="False"))
    ConditionMetrics(registry).follow(extensions, of_packed)
    extensions.observe(extension("dns", 2, Installed="Progressing", RequiredRuntime="False"))
    extensions.observe(extension("fine", 3, Installed="True", ThingProgressing="False"))

    installed = ("Extension", "", "dns", "Installed")
    early = ("Extension", "", "early", "Installed")
    assert series(registry) == {early: 1, installed: 1, ("Extension",): 5}

    extensions.observe(extension("dns", 4, Installed="False"))
    assert series(registry) == {early: 1, installed: 1, ("Extension",): 4}
    for name in ("dns", "early"):
        extensions.observe(extension(name, 5, Installed="True"))
    assert series(registry) == {("Extension",): 4}


async def test_the_objects_of_a_source_that_ended_are_left_out() -> None:
    registry = CollectorRegistry()
    conditions = ConditionMetrics(registry)
    caches = [Cache(Client(Transport(cluster_config())), EXTENSION, packed) for _ in range(2)]
    for cache, name in zip(caches, ("here", "there"), strict=True):
        cache.observe(extension(name, 1, Installed="False"))
    end, _ = [conditions.follow(cache, of_packed) for cache in caches]

    end()
    caches[0].observe(extension("late", 2, Installed="False"))
    assert series(registry) == {("Extension", "", "there", "Installed"): 1, ("Extension",): 1}


async def test_thousands_of_objects_in_order_cost_one_series() -> None:
    registry = CollectorRegistry()
    extensions = Cache(Client(Transport(cluster_config())), EXTENSION, packed)
    ConditionMetrics(registry).follow(extensions, of_packed)
    for number in range(2000):
        extensions.observe(extension(f"e{number}", number + 1, Installed="True"))

    assert series(registry) == {("Extension",): 2000}
