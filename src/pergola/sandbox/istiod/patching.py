"""Listeners and clusters with the patches of EnvoyFilters applied to them. Pure."""

from collections.abc import Sequence
from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.sandbox.istiod.patches import (
    CLUSTER,
    HTTP_FILTER,
    HTTP_ROUTE,
    INSERT_BEFORE,
    LISTENER,
    MERGE,
    NETWORK_FILTER,
    Patch,
    merged,
)

_MANAGER: Final = "envoy.filters.network.http_connection_manager"


def patched_cluster(cluster: JsonObject, found: Sequence[Patch]) -> JsonObject:
    """Return a cluster with the patches that match it."""
    for patch in found:
        name = map_at(patch.match, "cluster").get("name")
        if patch.kind == CLUSTER and name in (None, cluster["name"]):
            cluster = merged(cluster, patch.value)
    return cluster


def patched_listener(listener: JsonObject, found: Sequence[Patch]) -> JsonObject:
    """Return a listener with the patches that match it, its filters and its routes."""
    port = listener["address"]["socket_address"]["port_value"]
    here = [p for p in found if map_at(p.match, "listener").get("portNumber") in (None, port)]
    for patch in here:
        if patch.kind == LISTENER:
            listener = merged(listener, patch.value)
    chains = [_chain(chain, here) for chain in listener["filter_chains"]]
    return {**listener, "filter_chains": chains}


def _chain(chain: JsonObject, found: Sequence[Patch]) -> JsonObject:
    names = map_at(chain, "filter_chain_match").get("server_names", [])
    here = [p for p in found if _chain_match(p).get("sni") in (None, *names)]
    return {**chain, "filters": [_filter(each, here) for each in chain["filters"]]}


def _filter(network: JsonObject, found: Sequence[Patch]) -> JsonObject:
    named = [p for p in found if _filter_match(p).get("name") in (None, network["name"])]
    for patch in named:
        if patch.kind == NETWORK_FILTER:
            network = merged(network, patch.value)
    if network["name"] != _MANAGER:
        return network
    config = network["typed_config"]
    changed = {
        **config,
        "http_filters": _http_filters(config["http_filters"], named),
        "route_config": _routes(config["route_config"], found),
    }
    return {**network, "typed_config": changed}


def _http_filters(filters: Sequence[JsonObject], found: Sequence[Patch]) -> list[JsonObject]:
    placed = list(filters)
    for patch in found:
        if patch.kind == HTTP_FILTER:
            name = map_at(_filter_match(patch), "subFilter").get("name")
            names = [each["name"] for each in placed]
            if name is None or name in names:
                placed.insert(names.index(name) if name else 0, patch.value)
    return placed


def _routes(config: JsonObject, found: Sequence[Patch]) -> JsonObject:
    for patch in found:
        match = map_at(patch.match, "routeConfiguration")
        if patch.kind == HTTP_ROUTE and match.get("name") in (None, config["name"]):
            hosts = [_host(host, map_at(match, "vhost"), patch) for host in config["virtual_hosts"]]
            config = {**config, "virtual_hosts": hosts}
    return config


def _host(host: JsonObject, match: JsonObject, patch: Patch) -> JsonObject:
    if match.get("name") not in (None, host["name"]):
        return host
    route = map_at(match, "route").get("name")
    places = [n for n, each in enumerate(host["routes"]) if route in (None, each.get("name"))]
    routes = list(host["routes"])
    if patch.operation == MERGE:
        for place in places:
            routes[place] = merged(routes[place], patch.value)
    if patch.operation == INSERT_BEFORE and places:
        routes.insert(places[0], patch.value)
    return {**host, "routes": routes}


def _chain_match(patch: Patch) -> JsonObject:
    return map_at(patch.match, "listener", "filterChain")


def _filter_match(patch: Patch) -> JsonObject:
    return map_at(_chain_match(patch), "filter")
