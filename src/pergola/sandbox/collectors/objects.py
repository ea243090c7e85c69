"""The Deployment and the Service of a collector, with the names and labels of the original."""

from typing import Final
from urllib.parse import urlsplit

from pergola.api.objects import JsonObject, JsonValue, labels_of, map_at, name_of, uid_of

CONTAINER: Final = "otc-container"

_SPEC_OF_POD: Final = ("affinity", "nodeSelector", "priorityClassName", "tolerations", "volumes")
_SPEC_OF_CONTAINER: Final = ("env", "image", "resources", "securityContext", "volumeMounts")


def deployment_of(collector: JsonObject) -> JsonObject:
    """Return the Deployment of a collector."""
    spec, labels = map_at(collector, "spec"), selector_of(collector)
    container: JsonObject = {key: spec[key] for key in _SPEC_OF_CONTAINER if key in spec}
    pod: JsonObject = {key: spec[key] for key in _SPEC_OF_POD if key in spec}
    if "podSecurityContext" in spec:
        pod["securityContext"] = spec["podSecurityContext"]
    pod["serviceAccountName"] = spec.get("serviceAccount") or _name(collector)
    pod["containers"] = [{"name": CONTAINER, **container, "ports": _ports(collector)}]
    return _owned(
        collector,
        ("apps/v1", "Deployment"),
        {
            "replicas": replicas_of(collector),
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": {**labels_of(collector), **labels}},
                "spec": pod,
            },
        },
    )


def service_of(collector: JsonObject) -> JsonObject:
    """Return the Service of a collector."""
    ports: list[JsonValue] = [
        {"name": port["name"], "port": port["containerPort"], "protocol": "TCP"}
        for port in _ports(collector)
    ]
    spec: JsonObject = {"selector": dict(selector_of(collector)), "ports": ports}
    return _owned(collector, ("v1", "Service"), spec)


def selector_of(collector: JsonObject) -> dict[str, str]:
    """Return the labels that select the pods of a collector."""
    namespace = str(map_at(collector, "metadata").get("namespace"))
    return {
        "app.kubernetes.io/component": "opentelemetry-collector",
        "app.kubernetes.io/instance": f"{namespace}.{name_of(collector)}",
        "app.kubernetes.io/managed-by": "opentelemetry-operator",
        "app.kubernetes.io/part-of": "opentelemetry",
    }


def replicas_of(collector: JsonObject) -> int:
    """Return the number of pods of a collector; 1 by default."""
    replicas = map_at(collector, "spec").get("replicas")
    return replicas if isinstance(replicas, int) else 1


def _ports(collector: JsonObject) -> list[JsonObject]:
    """Return the ports of the OTLP receiver's protocols."""
    protocols = map_at(collector, "spec", "config", "receivers", "otlp", "protocols")
    return [
        {"name": f"otlp-{protocol}", "containerPort": port}
        for protocol, settings in protocols.items()
        if isinstance(settings, dict)
        and (port := urlsplit(f"//{settings.get('endpoint', '')}").port)
    ]


def _name(collector: JsonObject) -> str:
    return f"{name_of(collector)}-collector"


def _owned(collector: JsonObject, kind: tuple[str, str], spec: JsonObject) -> JsonObject:
    owner: JsonObject = {
        "apiVersion": collector["apiVersion"],
        "kind": collector["kind"],
        "name": name_of(collector),
        "uid": uid_of(collector),
        "controller": True,
    }
    metadata: JsonObject = {
        "name": _name(collector),
        "namespace": map_at(collector, "metadata").get("namespace"),
        "labels": {**labels_of(collector), **selector_of(collector)},
        "ownerReferences": [owner],
    }
    return {"apiVersion": kind[0], "kind": kind[1], "metadata": metadata, "spec": spec}
