"""The desired EnvoyFilters of a namespace: pure functions."""

from collections.abc import Iterable, Iterator, Mapping
from typing import Final, NamedTuple

from pergola.api.kinds import ENVOY_FILTER
from pergola.api.objects import JsonObject, Key
from pergola.resource_manager.controllers.istio_cluster_configuration.seen import (
    CLUSTER_DOMAIN,
    MANAGED_BY,
    MANAGED_BY_VALUE,
    HttpPolicy,
    Port,
    SeenNamespace,
    SeenRule,
    SeenService,
)

_SUFFIX: Final = "-cluster-configuration"
_ALL: Final = "*"
_HTTP_OPTIONS: Final = "envoy.extensions.upstreams.http.v3.HttpProtocolOptions"
BUFFER_BYTES: Final = 32768
STREAM_WINDOW_BYTES: Final = 65536
CONNECTION_WINDOW_BYTES: Final = 1048576
LONGEST_CONNECTION: Final = "86400s"


class _Tuned(NamedTuple):
    """The patches of one rule for one Service, and the namespaces that both are exported to."""

    service: Key
    exported: frozenset[str]
    patches: list[JsonObject]


def filter_name(namespace: str) -> str:
    """Return the name of the EnvoyFilters of a source namespace."""
    return f"{namespace}{_SUFFIX}"


def source_of(name: str) -> str:
    """Return the source namespace in the name of an EnvoyFilter; empty for other names."""
    return name.removesuffix(_SUFFIX) if name.endswith(_SUFFIX) else ""


def envoy_filters(
    namespace: str,
    rules: Mapping[str, SeenRule],
    services: Mapping[Key, SeenService],
    namespaces: Mapping[str, SeenNamespace],
) -> dict[str, JsonObject]:
    """Return the EnvoyFilter of a source namespace for each ingress namespace that needs one.

    Args:
        rules: The DestinationRules of the source namespace.
        services: Must include those that the rules name.
        namespaces: Must include the source namespace and all ingress namespaces.
    """
    source = namespaces.get(namespace)
    if source is None:
        return {}
    tuned = list(_tuned(rules, services))
    rendered = {}
    for name, seen in namespaces.items():
        if seen.is_ingress and (patches := _patches_in(name, tuned)):
            rendered[name] = _envoy_filter(namespace, source.uid, name, patches)
    return rendered


def _tuned(rules: Mapping[str, SeenRule], services: Mapping[Key, SeenService]) -> Iterator[_Tuned]:
    for _, rule in sorted(rules.items()):
        service = services.get(rule.service) if rule.service is not None else None
        if service is None or rule.service is None:
            continue
        host = f"{rule.service.name}.{rule.service.namespace}.{CLUSTER_DOMAIN}"
        ports: dict[int, Port] = {}
        for port in service.ports:
            ports.setdefault(port.number, port)  # TCP and UDP may share a number
        patches = [
            _cluster_patch(host, port, rule.policy_of(port.number)) for port in ports.values()
        ]
        yield _Tuned(rule.service, _both(rule.export_to, service.export_to), patches)


def _patches_in(namespace: str, tuned: Iterable[_Tuned]) -> list[JsonObject]:
    """Return the patches for a namespace's gateways; for each Service, the first rule wins."""
    done: set[Key] = set()
    patches: list[JsonObject] = []
    for one in tuned:
        known = _ALL in one.exported or namespace in one.exported
        if known and one.service not in done:
            done.add(one.service)
            patches += one.patches
    return patches


def _both(one: frozenset[str], other: frozenset[str]) -> frozenset[str]:
    """Return the namespaces that both are exported to."""
    if _ALL in one:
        return other
    return one if _ALL in other else one & other


def _cluster_patch(host: str, port: Port, policy: HttpPolicy) -> JsonObject:
    value: JsonObject = {"per_connection_buffer_limit_bytes": BUFFER_BYTES}
    if protocol := _protocol(port, policy):
        windows = {
            "initial_stream_window_size": STREAM_WINDOW_BYTES,
            "initial_connection_window_size": CONNECTION_WINDOW_BYTES,
        }
        value["typed_extension_protocol_options"] = {
            _HTTP_OPTIONS: {
                "@type": f"type.googleapis.com/{_HTTP_OPTIONS}",
                "common_http_protocol_options": {"max_connection_duration": LONGEST_CONNECTION},
                protocol: {"http2_protocol_options": windows},
            }
        }
    return {
        "applyTo": "CLUSTER",
        "match": {
            "context": "GATEWAY",
            "cluster": {"name": f"outbound|{port.number}||{host}"},
        },
        "patch": {"operation": "MERGE", "value": value},
    }


def _protocol(port: Port, policy: HttpPolicy) -> str:
    """Return the field for Envoy's HTTP/2 options; empty for other protocols."""
    if policy.use_client_protocol:
        return "use_downstream_protocol_config"
    return "explicit_http_config" if policy.upgrades or port.is_http2 else ""


def _envoy_filter(source: str, uid: str, namespace: str, patches: list[JsonObject]) -> JsonObject:
    owner = {
        "apiVersion": "v1",
        "kind": "Namespace",
        "name": source,
        "uid": uid,
        "controller": True,
        "blockOwnerDeletion": True,
    }
    return {
        "apiVersion": ENVOY_FILTER.api_version,
        "kind": ENVOY_FILTER.kind,
        "metadata": {
            "name": filter_name(source),
            "namespace": namespace,
            "labels": {MANAGED_BY: MANAGED_BY_VALUE},
            "ownerReferences": [owner],
        },
        "spec": {"configPatches": patches},
    }
