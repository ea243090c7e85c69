"""Checks of what controllers apply."""

import base64
import json
from functools import partial
from typing import Final

from conformance.places.checks.setting import eventually
from conformance.places.place import PATIENCE, Check, Site
from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, NETWORK_POLICY, SECRET
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.manifests import manifest
from pergola.testing.waiting import until, until_gone

ORIGIN: Final = "resources.gardener.cloud/origin"
_GOOD: Final = {
    "ResourcesApplied": "True",
    "ResourcesHealthy": "True",
    "ResourcesProgressing": "False",
}


def managed_resource(site: Site, name: str, resource_class: str, *objects: JsonObject) -> JsonObject:
    """Return a ManagedResource in the source, and note its Secret, which has the same name."""
    spec: JsonObject = {"secretRefs": [{"name": name}]} | (
        {"class": resource_class} if resource_class else {}
    )
    return manifest(
        MANAGED_RESOURCE.api_version,
        MANAGED_RESOURCE.kind,
        name,
        namespace=site.place.namespace,
        spec=spec,
    )


async def create(site: Site, name: str, resource_class: str, *objects: JsonObject) -> Key:
    """Create a ManagedResource with objects in the source, and return its key."""
    content = "---\n".join(json.dumps(obj) + "\n" for obj in objects)
    data: JsonObject = {"objects.yaml": base64.b64encode(content.encode()).decode()}
    namespace = site.place.namespace
    await site.source.client.create(
        manifest("v1", "Secret", name, namespace=namespace, type="Opaque", data=data)
    )
    created = await site.source.client.create(managed_resource(site, name, resource_class))
    return Key.of(created)


def served(site: Site) -> str:
    """Return the class of ManagedResources that a place serves."""
    return "seed" if site.place.is_runtime else ""


def conditions(obj: JsonObject) -> dict[str, str]:
    """Return the status of each condition of an object."""
    return {each["type"]: each["status"] for each in maps_at(obj, "status", "conditions")}


def _is_good(resource: JsonObject) -> bool:
    return conditions(resource).items() >= _GOOD.items()


def _config_map(site: Site, name: str) -> JsonObject:
    return manifest("v1", "ConfigMap", name, namespace=site.namespace, data={"a": "b"})


def _deployment(site: Site, name: str) -> JsonObject:
    labels = {"app": name}
    container = {"name": "app", "image": "registry.example/app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return manifest("apps/v1", "Deployment", name, namespace=site.namespace, spec=spec)


async def _applies(site: Site) -> None:
    foreign = await create(site, "foreign", "other", _config_map(site, "foreign"))
    objects = _config_map(site, "served"), _deployment(site, "served")
    key = await create(site, "served", served(site), *objects)
    await until(site.source.client, MANAGED_RESOURCE, key, _is_good, patience=PATIENCE)
    for kind in (CONFIG_MAP, DEPLOYMENT):
        found = await site.target.client.get(kind, Key(site.namespace, "served"))
        assert annotations_of(found)[ORIGIN].endswith(f"{key.namespace}/{key.name}"), found
    other = await site.source.client.get(MANAGED_RESOURCE, foreign)
    assert not map_at(other, "status"), f"a ManagedResource of another class was reconciled: {other}"
    await site.source.client.delete(MANAGED_RESOURCE, key)
    await until_gone(site.source.client, MANAGED_RESOURCE, key, patience=PATIENCE)
    for kind in (CONFIG_MAP, DEPLOYMENT):
        await until_gone(
            site.target.client, kind, Key(site.namespace, "served"), patience=PATIENCE
        )


async def _opens_its_ports(site: Site) -> None:
    name = f"ingress-to-{site.place.deployment}-tcp-8080"
    key = Key(site.place.namespace, name)
    await until(site.target.client, NETWORK_POLICY, key, lambda _: True, patience=PATIENCE)


MANAGED_RESOURCES: Final = Check(
    "applied", "a ManagedResource of its class, and no other; until it is deleted", _applies
)
NETWORK_POLICIES: Final = Check(
    "applied", "NetworkPolicies for the Service that the original deployed", _opens_its_ports
)
__all__ = ["SECRET", "eventually", "partial"]
