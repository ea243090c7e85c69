"""Answers to gateways: Envoy's discovery by REST, where a request waits for the next change."""

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from pergola.api.kinds import (
    DESTINATION_RULE,
    ENVOY_FILTER,
    GATEWAY,
    SECRET,
    SERVICE,
    VIRTUAL_SERVICE,
)
from pergola.api.objects import GroupVersionKind, JsonObject, map_at, maps_at, metadata_of
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.logging import get_logger
from pergola.sandbox.istiod.callers import Callers
from pergola.sandbox.istiod.clusters import CLUSTER
from pergola.sandbox.istiod.credentials import entries_of
from pergola.sandbox.istiod.envoy import LISTENER, problems, render
from pergola.sandbox.istiod.patches import unsupported as unsupported_patches
from pergola.sandbox.istiod.requests import unsupported
from pergola.sandbox.istiod.selection import Objects, Proxy, passes_through
from pergola.sandbox.istiod.termination import terminates

log = get_logger("discovery")

_TYPES: Final = {"listeners": LISTENER, "clusters": CLUSTER}
_METADATA: Final = ("namespace", "name", "creationTimestamp")
_JSON: Final = "application/json"
_HOLD_SECONDS: Final = 20.0  # below the 30 s after which gateways give up


class Discovery:
    """The configuration of all gateways, computed from caches of objects."""

    def __init__(self, client: Client) -> None:
        self._gateways = _cache(client, GATEWAY)
        self._virtual_services = _cache(client, VIRTUAL_SERVICE)
        self._destination_rules = _cache(client, DESTINATION_RULE)
        self._services = _cache(client, SERVICE)
        self._envoy_filters = _cache(client, ENVOY_FILTER)
        self._secrets: Cache[dict[str, str]] = Cache(client, SECRET, keep=entries_of)
        self._callers = Callers(client)
        self.caches = (
            *(self._gateways, self._virtual_services, self._destination_rules, self._services),
            *(self._envoy_filters, self._secrets, self._callers.pods),
        )
        self._reported: set[str] = set()
        self._changed = asyncio.Event()
        for cache in self.caches:
            cache.subscribe(self._notice)
        self._gateways.subscribe(_report_servers)
        self._virtual_services.subscribe(_report_rules)
        self._envoy_filters.subscribe(_report_patches)

    def routes(self) -> list[web.RouteDef]:
        """Return the endpoints that gateways use."""
        return [web.post("/v3/discovery:{kind}", self._answer)]

    async def _answer(self, request: web.Request) -> web.Response:
        """Wait until the configuration differs from the version in the request, and return it.

        A gateway that has just started waits until the address of its pod is known.
        """
        kind = _TYPES.get(request.match_info["kind"])
        if kind is None:
            raise web.HTTPNotFound
        body = orjson.loads(await request.read())
        proxy = _proxy(body)
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _HOLD_SECONDS
        while True:
            changed = self._changed
            is_known = self._callers.is_in(proxy.namespace, request.remote)
            if is_known:
                content = self._content(kind, proxy)
                if content["version_info"] != body.get("version_info"):
                    return web.Response(body=orjson.dumps(content), content_type=_JSON)
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                if is_known:
                    return web.Response(status=304)
                log.warning("not a pod of its namespace", address=request.remote, proxy=proxy)
                raise web.HTTPForbidden from None

    def _content(self, kind: str, proxy: Proxy) -> JsonObject:
        objects = self._objects()
        self._report(proxy, objects)
        resources = render(proxy, objects)[kind]
        version = hashlib.sha256(orjson.dumps(resources)).hexdigest()[:16]
        return {"version_info": version, "type_url": kind, "resources": resources}

    def _objects(self) -> Objects:
        return Objects(
            gateways=_values(self._gateways),
            virtual_services=_values(self._virtual_services),
            destination_rules=_values(self._destination_rules),
            services=_values(self._services),
            envoy_filters=_values(self._envoy_filters),
            secrets=dict(self._secrets.items()),
        )

    def _report(self, proxy: Proxy, objects: Objects) -> None:
        present = set(problems(proxy, objects))
        for problem in sorted(present - self._reported):
            log.warning("certificate missing", problem=problem)
        self._reported |= present

    def _notice(self, change: Change[Any]) -> None:
        if change.old != change.new:  # keep nothing of most Secrets
            self._changed.set()
            self._changed = asyncio.Event()


def _cache(client: Client, kind: GroupVersionKind) -> Cache[JsonObject]:
    return Cache(client, kind, keep=_of_specification)


def _of_specification(obj: JsonObject) -> JsonObject:
    """Return the fields that configure gateways, which exclude the status."""
    metadata = metadata_of(obj)
    kept = {name: metadata[name] for name in _METADATA if name in metadata}
    return {"metadata": kept, "spec": map_at(obj, "spec")}


def _values(cache: Cache[JsonObject]) -> list[JsonObject]:
    return [obj for _, obj in cache.items()]


def _proxy(body: Mapping[str, Any]) -> Proxy:
    metadata = map_at(body, "node", "metadata")
    return Proxy(metadata.get("NAMESPACE", ""), map_at(metadata, "LABELS"))


def _report_servers(change: Change[JsonObject]) -> None:
    for server in maps_at(change.new or {}, "spec", "servers"):
        if not (passes_through(server) or terminates(server)):
            log.warning(
                "server skipped: this stand-in passes TLS through, or terminates it for HTTPS",
                gateway=str(change.key),
                hosts=server.get("hosts", []),
            )


def _report_rules(change: Change[JsonObject]) -> None:
    for rule in maps_at(change.new or {}, "spec", "http"):
        fields = unsupported(rule)
        if fields:
            log.warning(
                "fields ignored: this stand-in does not support them",
                virtual_service=str(change.key),
                fields=sorted(fields),
            )


def _report_patches(change: Change[JsonObject]) -> None:
    kinds = unsupported_patches(change.new or {})
    if kinds:
        log.warning(
            "patches ignored: this stand-in does not support them",
            envoy_filter=str(change.key),
            kinds=sorted(kinds),
        )
