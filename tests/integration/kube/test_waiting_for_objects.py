"""Waiting for objects of kinds that are not served yet."""

import asyncio

import pytest

from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, Key, name_of
from pergola.kube.client import Client
from pergola.testing.crds import definition, serve
from pergola.testing.waiting import until


async def test_an_object_is_seen_as_soon_as_its_kind_is_served(
    cluster_client: Client, namespace: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The cache would retry an unserved kind only after the end of the wait.
    monkeypatch.setattr("pergola.runtime.caching.cache._UNSERVED_RETRY_SECONDS", 3600.0)
    gadget = GroupVersionKind(f"{namespace}.example.org", "v1", "Gadget")
    key = Key(namespace, "gadget")
    waiting = asyncio.create_task(until(cluster_client, gadget, key, lambda _: True))
    kind = definition(gadget)
    try:
        await serve(cluster_client, kind)
        await cluster_client.create(
            {
                "apiVersion": gadget.api_version,
                "kind": gadget.kind,
                "metadata": {"name": key.name, "namespace": key.namespace},
                "spec": {"size": 1},
            }
        )

        found = await waiting

        assert name_of(found) == "gadget"
    finally:
        waiting.cancel()
        await cluster_client.delete(CRD, Key("", name_of(kind)))
