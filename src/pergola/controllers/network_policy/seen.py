"""The facts that caches keep about NetworkPolicies and the objects around Services."""

import hashlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
    namespace_of,
    resource_version_of,
    uid_of,
)
from pergola.controllers.network_policy.annotations import port_of
from pergola.controllers.network_policy.intents import Labels, canonical
from pergola.controllers.network_policy.names import (
    ALLOWED,
    DESCRIPTION,
    PREFIX,
    SERVICE_NAME,
    SERVICE_NAMESPACE,
)

_CALLER: Final = f"{PREFIX}to-"
_CLUSTER_DOMAIN: Final = ".svc.cluster.local"
_MESH: Final = "mesh"
_NO_LABELS: Final[frozenset[str]] = frozenset()
_DIGEST_BYTES: Final = 16


@dataclass(frozen=True, slots=True)
class SeenNamespace:
    """A Namespace; nothing can be created in it while it is `terminating`."""

    labels: Mapping[str, str]
    terminating: bool


@dataclass(frozen=True, slots=True)
class SeenPolicy:
    """A NetworkPolicy with both ownership labels, and a digest of the fields that we write.

    `owner` is None if one of the labels is empty: such a policy has no owner, and is not ours.
    """

    owner: Key | None
    uid: str
    version: str
    digest: bytes


class Destination(NamedTuple):
    """A port of a Service, by name or number; None stands for its only port."""

    service: Key
    port: int | str | None


@dataclass(frozen=True, slots=True)
class SeenVirtualService:
    """An Istio VirtualService: the Gateways and destinations of its traffic."""

    destinations: frozenset[Destination]
    gateways: frozenset[Key]


def keep_namespace(namespace: JsonObject) -> SeenNamespace:
    """Return the facts about a Namespace that the cache keeps, from its metadata."""
    return SeenNamespace(labels_of(namespace), deletion_timestamp_of(namespace) is not None)


def keep_policy(policy: JsonObject) -> SeenPolicy:
    """Return the facts about a NetworkPolicy that the cache keeps."""
    return SeenPolicy(
        owner=owner_of(policy),
        uid=uid_of(policy),
        version=resource_version_of(policy),
        digest=digest(policy),
    )


def keep_pod(pod: JsonObject) -> frozenset[str]:
    """Return the label keys of a Pod that allow it to call Services."""
    found = [k for k, v in labels_of(pod).items() if k.startswith(_CALLER) and v == ALLOWED]
    return frozenset(found) if found else _NO_LABELS


def keep_ingress(ingress: JsonObject) -> frozenset[Destination]:
    """Return the destinations of an Ingress."""
    namespace = namespace_of(ingress)
    return frozenset(_ingress_destinations(map_at(ingress, "spec"), namespace))


def keep_virtual_service(virtual_service: JsonObject) -> SeenVirtualService:
    """Return the facts about a VirtualService that the cache keeps."""
    spec, namespace = map_at(virtual_service, "spec"), namespace_of(virtual_service)
    gateways = spec.get("gateways") or []
    return SeenVirtualService(
        destinations=frozenset(_routed(spec, namespace)),
        gateways=frozenset(
            _gateway(name, namespace)
            for name in gateways
            if isinstance(name, str) and name and name != _MESH
        ),
    )


def keep_gateway(gateway: JsonObject) -> Labels:
    """Return the labels of an Istio Gateway's pods, sorted."""
    selector = map_at(gateway, "spec", "selector")
    return tuple(sorted((k, v) for k, v in selector.items() if isinstance(v, str)))


def keep_presence(_: JsonObject) -> bool:
    """Return True: of these Pods, only the key matters."""
    return True


def owner_of(policy: JsonObject) -> Key | None:
    """Return the Service that the ownership labels name; None unless both are set."""
    labels = labels_of(policy)
    name, namespace = labels.get(SERVICE_NAME), labels.get(SERVICE_NAMESPACE)
    return Key(namespace, name) if name and namespace else None


def written(policy: JsonObject) -> JsonObject:
    """Return the fields of a NetworkPolicy that we write; we leave all others unchanged."""
    labels, annotations = labels_of(policy), annotations_of(policy)
    return {
        "metadata": {
            "labels": {k: labels.get(k) for k in (SERVICE_NAME, SERVICE_NAMESPACE)},
            "annotations": {DESCRIPTION: annotations.get(DESCRIPTION)},
        },
        "spec": map_at(policy, "spec"),
    }


def digest(policy: JsonObject) -> bytes:
    """Return a digest of the fields that we write."""
    return hashlib.blake2b(canonical(written(policy)), digest_size=_DIGEST_BYTES).digest()


def _ingress_destinations(spec: JsonObject, namespace: str) -> Iterator[Destination]:
    backends = [
        map_at(path, "backend", "service")
        for rule in maps_at(spec, "rules")
        for path in maps_at(rule, "http", "paths")
    ]
    for backend in [map_at(spec, "defaultBackend", "service"), *backends]:
        name, port = backend.get("name"), map_at(backend, "port")
        number = port.get("name") or port.get("number")
        if isinstance(name, str) and isinstance(number, str | int):
            yield Destination(Key(namespace, name), number)


def _routed(spec: JsonObject, namespace: str) -> Iterator[Destination]:
    for protocol in ("http", "tls", "tcp"):
        for entry in maps_at(spec, protocol):
            for route in maps_at(entry, "route"):
                destination = map_at(route, "destination")
                service = _service(destination.get("host"), namespace)
                if service is not None:
                    port = port_of(map_at(destination, "port").get("number"))
                    yield Destination(service, port)


def _service(host: object, namespace: str) -> Key | None:
    """Return the Service that a host names, fully qualified or relative to a namespace."""
    if not isinstance(host, str) or not host:
        return None
    name, dot, home = host.removesuffix(_CLUSTER_DOMAIN).partition(".")
    if not dot and not host.endswith(_CLUSTER_DOMAIN):
        return Key(namespace, name)
    is_here = home == namespace and host.endswith(_CLUSTER_DOMAIN)
    return Key(namespace, name) if is_here else None


def _gateway(name: str, namespace: str) -> Key:
    """Return the key in `istio-ingress/web`, or `web` in the VirtualService's own namespace."""
    elsewhere, slash, own = name.partition("/")
    return Key(elsewhere, own) if slash else Key(namespace, name)
