"""A client that loses a race against another writer."""

from collections.abc import Awaitable, Callable, Sequence

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.testing.world import RecordingClient


class Overtaken(RecordingClient):
    """A client that another writer overtakes before its first patch.

    Attributes:
        before: Writes, as the other writer.
    """

    before: Callable[[], Awaitable[object]] | None = None

    async def patch(
        self,
        gvk: GroupVersionKind,
        key: Key,
        body: JsonObject | Sequence[JsonObject],
        *,
        subresource: str = "",
        manager: str = "",
    ) -> JsonObject:
        """Let the other writer write first, once."""
        before, self.before = self.before, None
        if before is not None:
            await before()
        return await super().patch(gvk, key, body, subresource=subresource, manager=manager)
