"""The example of a controller does what its README says, on a real API server."""

import asyncio
import importlib
from collections.abc import Callable
from functools import partial
from pathlib import Path
from types import ModuleType

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key, annotations_of
from pergola.kube.client import Client
from pergola.runtime import Application, Election, ProcessOptions
from pergola.testing.waiting import until
from pergola.testing.world import config_map

EXAMPLE = Path(__file__).parents[3] / "examples" / "controller"


def counted(count: str) -> Callable[[JsonObject], bool]:
    return lambda obj: annotations_of(obj).get("example.org/keys") == count


@pytest.fixture
def example(monkeypatch: pytest.MonkeyPatch) -> ModuleType:
    monkeypatch.syspath_prepend(EXAMPLE)
    return importlib.import_module("count_keys")


async def test_the_test_of_the_example_passes(
    cluster_client: Client, namespace: str, example: ModuleType
) -> None:
    tests = importlib.import_module("test_count_keys")
    assert tests.count_keys is example.count_keys
    await tests.test_keys_are_counted(cluster_client, namespace)


async def test_labelled_config_maps_are_annotated_with_the_number_of_their_keys(
    cluster_client: Client,
    kubeconfig: Path,
    namespace: str,
    example: ModuleType,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("KUBECONFIG", str(kubeconfig))
    election = Election(namespace=namespace, name="count-keys")
    options = ProcessOptions(health=None, metrics=None, election=election)
    monkeypatch.setattr(example, "Application", partial(Application, options=options))
    labels = {"count": "keys"}
    await cluster_client.create(config_map("early", namespace, labels=labels, a="1", b="2"))
    running = asyncio.create_task(example.main())
    try:
        await cluster_client.create(config_map("other", namespace, a="1"))
        await cluster_client.create(config_map("late", namespace, labels=labels, a="1"))
        for name, count in (("early", "2"), ("late", "1")):
            await until(
                cluster_client,
                CONFIG_MAP,
                Key(namespace, name),
                counted(count),
            )
        other = await cluster_client.get(CONFIG_MAP, Key(namespace, "other"))
        assert "example.org/keys" not in annotations_of(other)
    finally:
        running.cancel()
        await asyncio.gather(running, return_exceptions=True)
