"""Select and order the patches of EnvoyFilters for a gateway. Pure."""

import re
from collections.abc import Iterator, Sequence
from typing import Any, Final, NamedTuple

from pergola.api.objects import JsonObject, Key, map_at, maps_at, metadata_of
from pergola.sandbox.istiod.selection import Objects, Proxy

LISTENER: Final = "LISTENER"
NETWORK_FILTER: Final = "NETWORK_FILTER"
HTTP_FILTER: Final = "HTTP_FILTER"
HTTP_ROUTE: Final = "HTTP_ROUTE"
CLUSTER: Final = "CLUSTER"
MERGE: Final = "MERGE"
INSERT_BEFORE: Final = "INSERT_BEFORE"

_SUPPORTED: Final = {
    LISTENER: (MERGE,),
    NETWORK_FILTER: (MERGE,),
    HTTP_FILTER: (INSERT_BEFORE,),
    HTTP_ROUTE: (INSERT_BEFORE, MERGE),
    CLUSTER: (MERGE,),
}
_CONTEXTS: Final = ("", "ANY", "GATEWAY")
_EVERYWHERE: Final = "istio-system"  # its EnvoyFilters are for all namespaces
_CLUSTER_NAME: Final = re.compile(r"outbound\|([0-9]+)\|\|([A-Za-z0-9.-]+)")
_CAMEL: Final = re.compile(r"[a-z0-9]+(?:[A-Z][a-z0-9]*)+")
_UPPER: Final = re.compile("[A-Z]")


class Patch(NamedTuple):
    """A change of the configuration that is otherwise rendered.

    Attributes:
        kind: the part to change, as `applyTo` names it.
        value: with Envoy's own names of fields.
    """

    kind: str
    match: JsonObject
    operation: str
    value: JsonObject


def patches(proxy: Proxy, objects: Objects) -> list[Patch]:
    """Return the patches of a gateway, in the order in which they are applied."""
    found = [each for each in objects.envoy_filters if _is_for(each, proxy)]
    return [
        Patch(
            kind=patch["applyTo"],
            match=map_at(patch, "match"),
            operation=map_at(patch, "patch")["operation"],
            value=_named_by_envoy(map_at(patch, "patch", "value")),
        )
        for each in sorted(found, key=_order)
        for patch in maps_at(each, "spec", "configPatches")
        if _is_supported(patch) and map_at(patch, "match").get("context", "") in _CONTEXTS
    ]


def unsupported(envoy_filter: JsonObject) -> set[str]:
    """Return the kinds of patches in an EnvoyFilter that have no effect here."""
    return {
        f"{map_at(patch, 'patch').get('operation')} of {patch.get('applyTo')}"
        for patch in maps_at(envoy_filter, "spec", "configPatches")
        if not _is_supported(patch)
    }


def destinations(found: Sequence[Patch]) -> Iterator[tuple[str, int]]:
    """Yield the Services, with their ports, to which patches send traffic."""
    for patch in found:
        for text in _texts(patch.value):
            name = _CLUSTER_NAME.fullmatch(text)
            if name:
                yield name[2], int(name[1])


def merged(live: JsonObject, value: JsonObject) -> JsonObject:
    """Merge two messages: join lists, and otherwise prefer the fields of the second."""
    if "@type" in live and live["@type"] != value.get("@type", live["@type"]):
        return value
    return {**live, **{name: _sum(live.get(name), each) for name, each in value.items()}}


def _sum(live: Any, value: Any) -> Any:
    if isinstance(live, dict) and isinstance(value, dict):
        return merged(live, value)
    if isinstance(live, list) and isinstance(value, list):
        return [*live, *value]
    return value


def _is_supported(patch: JsonObject) -> bool:
    known = _SUPPORTED.get(patch.get("applyTo", ""), ())
    return map_at(patch, "patch").get("operation") in known


def _is_for(envoy_filter: JsonObject, proxy: Proxy) -> bool:
    selected = map_at(envoy_filter, "spec", "workloadSelector", "labels")
    is_here = Key.of(envoy_filter).namespace in (proxy.namespace, _EVERYWHERE)
    return is_here and selected.items() <= proxy.labels.items()


def _order(envoy_filter: JsonObject) -> tuple[bool, int, str, str]:
    metadata = metadata_of(envoy_filter)
    return (
        metadata["namespace"] != _EVERYWHERE,
        map_at(envoy_filter, "spec").get("priority", 0),
        metadata.get("creationTimestamp", ""),
        metadata["name"],
    )


def _named_by_envoy(value: Any) -> Any:
    """Return a message with names like `typed_config`; JSON allows `typedConfig`, too."""
    if isinstance(value, list):
        return [_named_by_envoy(each) for each in value]
    if not isinstance(value, dict):
        return value
    return {_snake(name): _named_by_envoy(each) for name, each in value.items()}


def _snake(name: str) -> str:
    if not _CAMEL.fullmatch(name):
        return name
    return _UPPER.sub(lambda letter: f"_{letter[0].lower()}", name)


def _texts(value: Any) -> Iterator[str]:
    if isinstance(value, str):
        yield value
    elif isinstance(value, dict):
        for each in value.values():
            yield from _texts(each)
    elif isinstance(value, list):
        for each in value:
            yield from _texts(each)
