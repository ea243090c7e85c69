"""The example of a controller does what its README says, on a real API server."""

import asyncio
import importlib.util
from collections.abc import Callable
from pathlib import Path
from types import ModuleType

import pytest

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key, annotations_of
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.runtime import Election, ProcessOptions
from pergola.testing.waiting import until
from pergola.testing.world import config_map

FILE = Path(__file__).parents[3] / "examples" / "controller" / "count_keys.py"


def counted(count: str) -> Callable[[JsonObject], bool]:
    return lambda obj: annotations_of(obj).get("example.org/keys") == count


@pytest.fixture
def example() -> ModuleType:
    spec = importlib.util.spec_from_file_location("count_keys", FILE)
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


async def test_labelled_config_maps_are_annotated_with_the_number_of_their_keys(
    cluster_client: Client, kubeconfig: Path, namespace: str, example: ModuleType
) -> None:
    election = Election(namespace=namespace, name="count-keys")
    options = ProcessOptions(health=None, metrics=None, election=election)
    labels = {"count": "keys"}
    await cluster_client.create(config_map("early", namespace, labels=labels, a="1", b="2"))
    running = asyncio.create_task(example.serve(load(kubeconfig), options))
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
