"""A client of one API server: `pergola.kube`."""

from contextlib import suppress
from pathlib import Path

from pergola.api import GroupVersionKind, Key, name_of
from pergola.kube import (
    AlreadyExists,
    Client,
    ClusterConfig,
    KubeError,
    NotFound,
    add_finalizer,
    in_cluster,
    load,
    remove_finalizer,
)
from pergola.manifests import manifest

CONFIG_MAP = GroupVersionKind("", "v1", "ConfigMap")


def clusters(kubeconfig: Path) -> None:
    """Find the cluster: of kubectl, or of the pod in which the process runs."""
    config = load(kubeconfig)
    assert isinstance(config, ClusterConfig)
    assert config.impersonating("ann").server == config.server
    try:
        in_cluster(environ={})
    except KubeError as error:
        assert "KUBERNETES_SERVICE_HOST" in str(error)


async def objects(client: Client, namespace: str) -> None:
    """Create, read, change, list and delete objects, which are plain JSON."""
    key = Key(namespace, "settings")
    await client.create(manifest("v1", "ConfigMap", "settings", namespace=namespace))
    with suppress(AlreadyExists):
        await client.create(manifest("v1", "ConfigMap", "settings", namespace=namespace))
    await client.patch(CONFIG_MAP, key, {"data": {"mode": "fast"}})
    assert (await client.get(CONFIG_MAP, key))["data"] == {"mode": "fast"}
    assert "settings" in map(name_of, await client.list(CONFIG_MAP, namespace))
    await client.delete(CONFIG_MAP, key)
    assert await client.find(CONFIG_MAP, key) is None
    try:
        await client.get(CONFIG_MAP, key)
    except NotFound as error:
        assert "settings" in str(error)


async def finalizers(client: Client, namespace: str) -> None:
    """Keep an object until its owner has cleaned up."""
    obj = await client.create(manifest("v1", "ConfigMap", "held", namespace=namespace))
    held = await add_finalizer(client, CONFIG_MAP, obj, "example.com/held")
    assert held is not None
    assert await remove_finalizer(client, CONFIG_MAP, held, "example.com/held")
