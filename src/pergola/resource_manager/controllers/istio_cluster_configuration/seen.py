"""Facts about EnvoyFilters and the objects that they are derived from."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    labels_of,
    map_at,
    maps_at,
    namespace_of,
    owner_references_of,
    uid_of,
)

EXPORT_TO: Final = "networking.istio.io/exportTo"
CLUSTER_DOMAIN: Final = "svc.cluster.local"
MANAGED_BY: Final = "resources.gardener.cloud/managed-by"
MANAGED_BY_VALUE: Final = "istio-cluster-configuration"
_ROLE: Final = "gardener.cloud/role"
_ROLE_INGRESS: Final = "istio-ingress"
_GRPC_WEB: Final = "grpc-web"
_HTTP2: Final = ("http2", "grpc", _GRPC_WEB, "kubernetes.io/h2c")
_EXPOSURE_CLASS: Final = "handler.exposureclass.gardener.cloud/name"


class HttpPolicy(NamedTuple):
    """The protocol towards the Service, according to a traffic policy."""

    use_client_protocol: bool = False
    upgrades: bool = False


@dataclass(frozen=True, slots=True)
class SeenRule:
    """A DestinationRule; `service` is None unless its host is a whole Service.

    Attributes:
        by_port: the policies of ports that have an own one, by number.
    """

    service: Key | None
    export_to: frozenset[str]
    policy: HttpPolicy
    by_port: dict[int, HttpPolicy]

    def policy_of(self, port: int) -> HttpPolicy:
        """Return the policy of a port: its own, or that of the whole Service."""
        return self.by_port.get(port, self.policy)


class Port(NamedTuple):
    """A port of a Service."""

    number: int
    is_http2: bool


@dataclass(frozen=True, slots=True)
class SeenService:
    """A Service."""

    export_to: frozenset[str]
    ports: tuple[Port, ...]


@dataclass(frozen=True, slots=True)
class SeenNamespace:
    """A Namespace.

    Attributes:
        is_ingress: whether gateways run there, and objects can be created.
        is_ending: whether it is being deleted.
    """

    uid: str
    is_ingress: bool
    is_ending: bool = False


@dataclass(frozen=True, slots=True)
class SeenFilter:
    """One of our EnvoyFilters, as a digest of the parts that we write."""

    uid: str
    digest: bytes


def keep_rule(rule: JsonObject) -> SeenRule:
    """Return the facts about a DestinationRule that the cache keeps."""
    spec = map_at(rule, "spec")
    namespace = namespace_of(rule)
    policy = map_at(spec, "trafficPolicy")
    whole = not spec.get("subsets") and not spec.get("workloadSelector")
    return SeenRule(
        service=service_of(spec.get("host"), namespace) if whole else None,
        export_to=_exported(spec.get("exportTo"), namespace),
        policy=_http_policy(policy),
        by_port=_policies_of_ports(policy),
    )


def keep_service(service: JsonObject) -> SeenService:
    """Return the facts about a Service that the cache keeps."""
    exported = annotations_of(service).get(EXPORT_TO, "").split(",")
    return SeenService(
        export_to=_exported([name.strip() for name in exported], namespace_of(service)),
        ports=tuple(
            Port(number, _is_http2(port))
            for port in maps_at(service, "spec", "ports")
            if isinstance(number := port.get("port"), int)
        ),
    )


def keep_namespace(namespace: JsonObject) -> SeenNamespace:
    """Return the facts about a Namespace that the cache keeps."""
    labels = labels_of(namespace)
    ingress = labels.get(_ROLE) == _ROLE_INGRESS or _EXPOSURE_CLASS in labels
    going = deletion_timestamp_of(namespace) is not None
    return SeenNamespace(uid_of(namespace), ingress and not going, going)


def keep_filter(envoy_filter: JsonObject) -> SeenFilter:
    """Return the facts about an EnvoyFilter that the cache keeps."""
    return SeenFilter(uid_of(envoy_filter), digest(envoy_filter))


def digest(envoy_filter: JsonObject) -> bytes:
    """Return a digest of the parts of an EnvoyFilter that we write."""
    written = [
        labels_of(envoy_filter).get(MANAGED_BY),
        owner_references_of(envoy_filter),
        map_at(envoy_filter, "spec"),
    ]
    packed = orjson.dumps(written, option=orjson.OPT_SORT_KEYS)
    return hashlib.blake2b(packed, digest_size=16).digest()


def service_of(host: object, namespace: str) -> Key | None:
    """Return the Service that a host names: by its short name, or fully qualified."""
    if not isinstance(host, str) or not host or "*" in host:
        return None
    if "." not in host:
        return Key(namespace, host)
    name, _, rest = host.partition(".")
    where, _, domain = rest.partition(".")
    return Key(where, name) if name and where and domain == CLUSTER_DOMAIN else None


def _exported(names: object, namespace: str) -> frozenset[str]:
    """Parse a list of namespaces: `.` means its own.

    The first `*` or `~` in the list decides: all namespaces, or none. An empty list means none.
    """
    if not isinstance(names, Sequence) or isinstance(names, str):
        return frozenset()
    for name in names:
        if name == "~":
            return frozenset()
        if name == "*":
            return frozenset("*")
    texts = (name for name in names if isinstance(name, str) and name)
    return frozenset(namespace if name == "." else name for name in texts)


def _policies_of_ports(policy: JsonObject) -> dict[int, HttpPolicy]:
    """Return the first policy for each port that requests a protocol."""
    found: dict[int, HttpPolicy] = {}
    for entry in maps_at(policy, "portLevelSettings"):
        number, of_port = map_at(entry, "port").get("number"), _http_policy(entry)
        if isinstance(number, int) and any(of_port):
            found.setdefault(number, of_port)
    return found


def _http_policy(policy: JsonObject) -> HttpPolicy:
    http = map_at(policy, "connectionPool", "http")
    return HttpPolicy(
        use_client_protocol=bool(http.get("useClientProtocol")),
        upgrades=http.get("h2UpgradePolicy") == "UPGRADE",
    )


def _is_http2(port: JsonObject) -> bool:
    """Return whether a port uses HTTP/2, by `appProtocol` or the first word of its name."""
    protocol = port.get("appProtocol")
    if protocol is None:
        name = str(port.get("name") or "")
        protocol = _GRPC_WEB if name.lower().startswith(_GRPC_WEB) else name.partition("-")[0]
    return str(protocol).lower() in _HTTP2
