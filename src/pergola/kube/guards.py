"""Guards of writes, which permit or refuse a request just before its bytes leave."""

from collections.abc import Callable
from dataclasses import dataclass

import aiohttp
from aiohttp.abc import AbstractStreamWriter

Permission = Callable[[], None]
"""A function that is called right before a write leaves, and raises to prevent it."""


@dataclass(frozen=True, slots=True)
class Guard:
    """A condition of writes.

    Attributes:
        permit: called right before the body of each attempt is sent.
        within: seconds after `permit` within which a write takes effect or never does, even if this
            process is paused right after it. The server gets the headers first, with this deadline,
            and the body only when it has started to wait for it: one more round trip. None for no
            limit.
    """

    permit: Permission
    within: float | None = None


class GuardedBody(aiohttp.Payload):
    """A body that leaves only with the permission of a guard.

    Attributes:
        refusal: why it did not leave; the HTTP library reports a broken connection instead.
    """

    def __init__(self, value: bytes, guard: Guard) -> None:
        super().__init__(value)
        self._size = len(value)
        self._guard = guard
        self.refusal: Exception | None = None

    @property
    def is_limited(self) -> bool:
        """Whether the server must set its deadline before the body leaves."""
        return self._guard.within is not None

    def decode(self, encoding: str = "utf-8", errors: str = "strict") -> str:
        """Return the body as text."""
        return bytes(self._value).decode(encoding, errors)

    async def write(self, writer: AbstractStreamWriter) -> None:
        """Ask the guard, and pass the body to the socket without awaiting anything in between."""
        try:
            self._guard.permit()
        except Exception as error:
            self.refusal = error
            raise
        await writer.write(self._value)
