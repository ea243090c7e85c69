"""Answers of products about their objects: the seam between the page and everything else."""

from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client

Why = Callable[[Client, GroupVersionKind, Key], Awaitable[JsonObject]]
"""Explains an object, using what the client may read, as the JSON of `pergola why`."""
Flow = Callable[
    [Client, GroupVersionKind, Key], AbstractAsyncContextManager[AsyncIterator[JsonObject]]
]
"""Yields the tasks of an object's flow now and after each change: `{name, flow, note, tasks}`."""
Picture = Callable[[Client, Key], Awaitable[str]]
"""Draws the network of an Infrastructure as SVG."""


class Unanswered(Exception):
    """There is no answer about an object; the text gives the reason."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """The functions that provide answers."""

    why: Why
    flow: Flow
    picture: Picture
