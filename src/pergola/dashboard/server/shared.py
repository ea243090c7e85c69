"""The whole feed as one message, for all pages whose viewers see the same."""

from collections import OrderedDict
from collections.abc import Callable
from typing import Final

from pergola.dashboard.state.feed import Position
from pergola.dashboard.state.scope import Place

_KEPT: Final = 4


class Shared:
    """The last messages with everything.

    A new page, or one whose permissions have changed, gets all entries: a megabyte for a thousand
    objects, which stays in memory until its slow reader has it.
    """

    def __init__(self) -> None:
        self._messages: OrderedDict[tuple[Position, frozenset[Place] | None], bytes] = OrderedDict()

    def everything(
        self, position: Position, seen: frozenset[Place] | None, build: Callable[[], bytes]
    ) -> bytes:
        """Return the message for a position of the feed, which is built only once.

        Args:
            seen: The places that its readers may see; None for those who see all.
        """
        key = position, seen
        if key not in self._messages:
            self._messages[key] = build()
            if len(self._messages) > _KEPT:
                self._messages.popitem(last=False)
        self._messages.move_to_end(key)
        return self._messages[key]
