"""ManagedResources for checks."""

import base64
import json
from typing import Final

from conformance.places.place import Site
from pergola.api.objects import JsonObject, Key, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.manifests import manifest

_GOOD: Final = {
    "ResourcesApplied": "True",
    "ResourcesHealthy": "True",
    "ResourcesProgressing": "False",
}
__all__ = ["MANAGED_RESOURCE", "config_map", "create", "deployment", "is_good", "served_class"]


async def create(site: Site, name: str, resource_class: str, *objects: JsonObject) -> Key:
    """Create a ManagedResource with objects in the source, and return its key."""
    content = "---\n".join(json.dumps(obj) + "\n" for obj in objects)
    data = {"objects.yaml": base64.b64encode(content.encode()).decode()}
    namespace = site.place.namespace
    secret = manifest("v1", "Secret", name, namespace=namespace, type="Opaque", data=data)
    await site.source.client.create(secret)
    spec: JsonObject = {"secretRefs": [{"name": name}]}
    if resource_class:
        spec["class"] = resource_class
    api_version, kind = MANAGED_RESOURCE.api_version, MANAGED_RESOURCE.kind
    created = await site.source.client.create(
        manifest(api_version, kind, name, namespace=namespace, spec=spec)
    )
    return Key.of(created)


def served_class(site: Site) -> str:
    """Return the class of the ManagedResources that a place serves."""
    return "seed" if site.place.is_runtime else ""


def is_good(resource: JsonObject) -> bool:
    """Return whether all objects of a ManagedResource are applied, healthy and rolled out."""
    return conditions(resource).items() >= _GOOD.items()


def conditions(obj: JsonObject) -> dict[str, str]:
    """Return the status of each condition of an object."""
    return {each["type"]: each["status"] for each in maps_at(obj, "status", "conditions")}


def config_map(site: Site, name: str) -> JsonObject:
    """Return a ConfigMap for a ManagedResource."""
    return manifest("v1", "ConfigMap", name, namespace=site.namespace, data={"a": "b"})


def deployment(site: Site, name: str) -> JsonObject:
    """Return a Deployment of one pod for a ManagedResource."""
    labels = {"app": name}
    container = {"name": "app", "image": "registry.example/app:1"}
    template = {"metadata": {"labels": labels}, "spec": {"containers": [container]}}
    spec = {"replicas": 1, "selector": {"matchLabels": labels}, "template": template}
    return manifest("apps/v1", "Deployment", name, namespace=site.namespace, spec=spec)
