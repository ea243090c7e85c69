"""Answers to gateways: Envoy's discovery by REST, where a request waits for the next change."""

import asyncio
import hashlib
from collections.abc import Mapping
from typing import Any, Final

import orjson
from aiohttp import web

from pergola.api.kinds import DESTINATION_RULE, GATEWAY, SERVICE, VIRTUAL_SERVICE
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.logging import get_logger
from pergola.sandbox.istiod.envoy import CLUSTER, LISTENER, render
from pergola.sandbox.istiod.routes import Objects, Proxy, passes_through

log = get_logger("discovery")

_TYPES: Final = {"listeners": LISTENER, "clusters": CLUSTER}
_HOLD_SECONDS: Final = 20.0  # below the 30 s after which gateways give up


class Discovery:
    """The configuration of all gateways, from caches of what configures them."""

    def __init__(self, client: Client) -> None:
        self._gateways = _cache(client, GATEWAY)
        self._virtual_services = _cache(client, VIRTUAL_SERVICE)
        self._destination_rules = _cache(client, DESTINATION_RULE)
        self._services = _cache(client, SERVICE)
        self.caches = (
            *(self._gateways, self._virtual_services, self._destination_rules, self._services),
        )
        self._changed = asyncio.Event()
        for cache in self.caches:
            cache.subscribe(self._notice)
        self._gateways.subscribe(_report)

    def routes(self) -> list[web.RouteDef]:
        """Return the endpoints that gateways use."""
        return [web.post("/v3/discovery:{kind}", self._answer)]

    async def _answer(self, request: web.Request) -> web.Response:
        """Answer with what differs from the version in the request, as soon as it does."""
        kind = _TYPES.get(request.match_info["kind"])
        if kind is None:
            raise web.HTTPNotFound
        body = orjson.loads(await request.read())
        loop = asyncio.get_running_loop()
        deadline = loop.time() + _HOLD_SECONDS
        while True:
            changed = self._changed
            resources = render(_proxy(body), self._objects())[kind]
            version = hashlib.sha256(orjson.dumps(resources)).hexdigest()[:16]
            if version != body.get("version_info"):
                content = {"version_info": version, "type_url": kind, "resources": resources}
                return web.Response(body=orjson.dumps(content), content_type="application/json")
            try:
                async with asyncio.timeout_at(deadline):
                    await changed.wait()
            except TimeoutError:
                return web.Response(status=304)

    def _objects(self) -> Objects:
        return Objects(
            *(
                [obj for _, obj in cache.items()]
                for cache in (
                    self._gateways,
                    self._virtual_services,
                    self._destination_rules,
                    self._services,
                )
            )
        )

    def _notice(self, _change: Change[JsonObject]) -> None:
        self._changed.set()
        self._changed = asyncio.Event()


def _cache(client: Client, kind: Any) -> Cache[JsonObject]:
    return Cache(client, kind, keep=lambda obj: obj)


def _proxy(body: Mapping[str, Any]) -> Proxy:
    metadata = map_at(body, "node", "metadata")
    return Proxy(metadata.get("NAMESPACE", ""), map_at(metadata, "LABELS"))


def _report(change: Change[JsonObject]) -> None:
    if change.new is None:
        return
    for server in maps_at(change.new, "spec", "servers"):
        if not passes_through(server):
            log.warning(
                "server skipped: this stand-in only passes TLS through",
                gateway=str(Key.of(change.new)),
                hosts=server.get("hosts", []),
            )
