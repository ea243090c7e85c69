"""Objects for several tests."""

import base64

from pergola.api.objects import JsonObject, namespace_of, uid_of


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
