"""Caches of kinds that are defined later, such as those whose CRDs the operator installs."""

import asyncio
from collections.abc import Collection
from typing import Final

from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change

# A kind is served shortly after its definition says so.
_SERVED_WITHIN: Final = (0.0, 0.5, 2.0)


def late_caches(
    client: Client, kinds: Collection[GroupVersionKind], namespace: str | None = None
) -> tuple[Cache[JsonObject], dict[GroupVersionKind, Cache[JsonObject]]]:
    """Return a cache of definitions, which the unit must run, and a cache of each kind."""
    caches = {kind: Cache(client, kind, whole, namespace=namespace) for kind in kinds}
    definitions = Cache(client, CRD, whole)

    def wake(change: Change[JsonObject]) -> None:
        defined = (change.new or {}).get("spec", {})
        for kind, cache in caches.items():
            if (defined.get("group"), defined.get("names", {}).get("kind")) == kind.group_kind:
                for seconds in _SERVED_WITHIN:
                    asyncio.get_running_loop().call_later(seconds, cache.wake)

    definitions.subscribe(wake)
    return definitions, caches


def whole(obj: JsonObject) -> JsonObject:
    """Keep the whole object."""
    return obj
