"""Record the Secrets that a secrets manager generates, repeats and deletes over time."""

import asyncio
from collections import defaultdict
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, labels_of, name_of, uid_of
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache, Change


class SecretHistory:
    """All managed Secrets that existed since the history began."""

    def __init__(self) -> None:
        self._generated: dict[str, dict[str, JsonObject]] = defaultdict(dict)
        self._gone: set[str] = set()

    @property
    def generated(self) -> dict[str, int]:
        """The number of Secrets of each credential, by the name of its configuration."""
        return {name: len(secrets) for name, secrets in self._generated.items()}

    @property
    def repeated(self) -> list[str]:
        """The names of the credentials that were generated more than once."""
        return sorted(name for name, count in self.generated.items() if count > 1)

    @property
    def lost(self) -> list[str]:
        """The names of the Secrets that were deleted."""
        return sorted(self._gone)

    def record(self, change: Change[JsonObject]) -> None:
        """Record the appearance or deletion of a Secret."""
        secret = change.new or change.old or {}
        self._generated[labels_of(secret)["name"]][uid_of(secret)] = secret
        if change.new is None:
            self._gone.add(name_of(secret))


@asynccontextmanager
async def secret_history(
    client: Client, namespace: str, labels: str
) -> AsyncGenerator[SecretHistory]:
    """Yield the history of the Secrets with these labels, which is recorded by watching."""
    history = SecretHistory()
    cache = Cache(client, SECRET, _whole, namespace=namespace, labels=labels)
    cache.subscribe(history.record)
    following = asyncio.create_task(cache.run())
    try:
        await cache.synced()
        yield history
    finally:
        following.cancel()
        await asyncio.gather(following, return_exceptions=True)


def _whole(obj: JsonObject) -> JsonObject:
    return obj
