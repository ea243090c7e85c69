"""ManagedResources: `pergola.bundle`."""

from pergola.api import GroupVersionKind, JsonObject, Key, name_of
from pergola.bundle import (
    Bundle,
    Reference,
    Registry,
    Settings,
    annotate,
    annotated_references,
    apply,
    build,
    delete,
    delete_by_origin,
    exists,
    for_seed,
    for_shoot,
    make_unique,
    references,
    set_keep_objects,
    update,
    wait_deleted,
    wait_healthy,
    wait_not_progressing,
    wait_until,
)
from pergola.kube import Client
from pergola.manifests import config_map_volume, manifest

MANAGED_RESOURCE = GroupVersionKind("resources.gardener.cloud", "v1alpha1", "ManagedResource")


def pod_with(config_map: str) -> JsonObject:
    """Return a pod that mounts a ConfigMap."""
    spec = {"containers": [{"name": "web"}], "volumes": [config_map_volume("config", config_map)]}
    return annotate(manifest("v1", "Pod", "web", namespace="shop", spec=spec))


def building() -> None:
    """Build a ManagedResource with its Secret; a new content gets a new name."""
    config = make_unique(manifest("v1", "ConfigMap", "web", namespace="shop", data={"a": "1"}))
    pod = pod_with(name_of(config))
    assert {each.name for each in references(pod)} == {name_of(config)}
    found = annotated_references(pod["metadata"]["annotations"])
    assert all(isinstance(each, Reference) for each in found)
    bundle = build("shop", "web", Registry(config, pod), settings=Settings(keep_objects=True))
    assert isinstance(bundle, Bundle)
    assert bundle.key == Key("shop", "web")
    assert bundle.managed_resource["spec"]["keepObjects"] is True
    assert for_seed("shop", "web", Registry(config)).managed_resource["spec"]["class"] == "seed"
    shoot = for_shoot("shop", "web", Registry(config), origin="example")
    assert shoot.managed_resource["metadata"]["labels"]["origin"] == "example"


async def deploying(client: Client, namespace: str) -> None:
    """Apply a bundle, change it and delete it; a resource manager does the rest."""
    config = manifest("v1", "ConfigMap", "web", namespace=namespace)
    bundle = build(namespace, "web", Registry(config))
    await apply(client, bundle)
    assert await exists(client, None, namespace=namespace)
    assert await update(client, bundle) is not None
    await set_keep_objects(client, bundle.key, True)
    await delete(client, bundle.key)
    await wait_deleted(client, bundle.key, timeout=30)
    assert await delete_by_origin(client, namespace, "example") == []


async def waiting(client: Client, namespace: str) -> None:
    """Wait for what a resource manager reports."""
    bundle = build(namespace, "ready", Registry(manifest("v1", "ConfigMap", "a", namespace="a")))
    await apply(client, bundle)
    live = await client.get(MANAGED_RESOURCE, bundle.key)
    good = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}
    status = {
        "observedGeneration": live["metadata"]["generation"],
        "conditions": [
            {
                "type": kind,
                "status": value,
                "reason": "Example",
                "message": "",
                "lastTransitionTime": "2026-01-01T00:00:00Z",
                "lastUpdateTime": "2026-01-01T00:00:00Z",
            }
            for kind, value in good.items()
        ],
        "secretsDataChecksum": live.get("status", {}).get("secretsDataChecksum", ""),
    }
    await client.patch(MANAGED_RESOURCE, bundle.key, {"status": status}, subresource="status")
    await wait_until(client, bundle.key, 30, lambda _: None)
    await wait_healthy(client, bundle.key, 30)
    await wait_not_progressing(client, bundle.key, 30)
