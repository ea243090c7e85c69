"""Objects for several tests."""

import base64

from pergola.api.objects import GroupVersionKind, JsonObject, namespace_of, uid_of


def definition(
    gvk: GroupVersionKind,
    *,
    plural: str = "",
    scope: str = "Namespaced",
    has_status: bool = False,
) -> JsonObject:
    """Return a CustomResourceDefinition that takes anything.

    Args:
        plural: The kind in lower case with `s` or `es`, unless given.
        has_status: Whether the status is a subresource.
    """
    singular = gvk.kind.lower()
    plural = plural or (f"{singular}es" if singular.endswith("s") else f"{singular}s")
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version: JsonObject = {
        "name": gvk.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    if has_status:
        version["subresources"] = {"status": {}}
    metadata: JsonObject = {"name": f"{plural}.{gvk.group}"}
    if gvk.group.endswith(".k8s.io"):  # others may not define kinds there
        metadata["annotations"] = {"api-approved.kubernetes.io": "unapproved, of a test"}
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": metadata,
        "spec": {
            "group": gvk.group,
            "scope": scope,
            "names": {"plural": plural, "kind": gvk.kind},
            "versions": [version],
        },
    }


def secret(namespace: str, name: str, **values: str) -> JsonObject:
    """Return a Secret."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": name, "namespace": namespace},
        "data": {key: base64.b64encode(value.encode()).decode() for key, value in values.items()},
    }


def warning(obj: JsonObject, text: str) -> JsonObject:
    """Return a Warning Event about an object, as the service controller writes it."""
    name = obj["metadata"]["name"]
    return {
        "apiVersion": "v1",
        "kind": "Event",
        "metadata": {"name": f"{name}.1", "namespace": namespace_of(obj)},
        "type": "Warning",
        "reason": "SyncLoadBalancerFailed",
        "message": text,
        "source": {"component": "service-controller"},
        "lastTimestamp": "2026-01-01T00:00:00Z",
        "involvedObject": {
            "apiVersion": obj["apiVersion"],
            "kind": obj["kind"],
            "name": name,
            "namespace": namespace_of(obj),
            "uid": uid_of(obj),
        },
    }
