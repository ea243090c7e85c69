"""The controller on a real API server, which pytest starts."""

import pytest
from count_keys import ANNOTATION, CONFIG_MAP, count_keys

from pergola.api import Key, annotations_of
from pergola.kube import Client
from pergola.runtime import Metrics
from pergola.testing import running, until

pytestmark = pytest.mark.asyncio


async def test_keys_are_counted(cluster_client: Client, namespace: str) -> None:
    metadata = {"name": "demo", "namespace": namespace, "labels": {"count": "keys"}}
    demo = {"apiVersion": "v1", "kind": "ConfigMap", "metadata": metadata, "data": {"a": "1"}}
    async with running(count_keys(cluster_client, Metrics())):
        await cluster_client.create(demo)
        counted = await until(
            cluster_client, CONFIG_MAP, Key.of(demo), lambda obj: ANNOTATION in annotations_of(obj)
        )
    assert annotations_of(counted)[ANNOTATION] == "1"
