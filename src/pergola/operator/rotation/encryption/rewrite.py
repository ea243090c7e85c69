"""Rewriting objects, so that the API server encrypts them with its current key.

Every object is rewritten by setting a label with the name of the key's Secret. The label also
records progress: labelled objects are not listed again, so an interrupted rewrite resumes where it
stopped. Once the old key is no longer needed, the label is removed.
"""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing, suppress
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client, ObjectList
from pergola.kube.errors import Gone, NotFound
from pergola.kube.throttle import Throttle
from pergola.operator.run.waiting import Note, unnoted
from pergola.runtime.task_group import TaskGroup

KEY_NAME: Final = "credentials.gardener.cloud/key-name"
"""The label with the name of the Secret whose key encrypts an object."""
PER_SECOND: Final = 100.0

_AT_ONCE: Final = 10
_LIST_SECONDS: Final = 60.0


class Rewriter:
    """Patches the labels of objects, at most 100 per second.

    Attributes:
        count: The number of objects patched so far.
    """

    def __init__(self, client: Client, note: Note = unnoted) -> None:
        self.count = 0
        self._client = client
        self._note = note
        self._throttle = Throttle(PER_SECOND)
        self._slots = asyncio.Semaphore(_AT_ONCE)

    async def label(self, gvk: GroupVersionKind, key_name: str) -> None:
        """Set the label on all objects of a kind that lack it or have another value.

        Raises:
            TimeoutError: A page of the list took longer than a minute.
            KubeError: The API server refused, or did not answer.
        """
        await self._patch_all(gvk, f"{KEY_NAME}!={key_name}", key_name)

    async def unlabel(self, gvk: GroupVersionKind) -> None:
        """Remove the label from all objects of a kind that have it; raises as `label` does."""
        await self._patch_all(gvk, KEY_NAME, None)

    async def _patch_all(self, gvk: GroupVersionKind, selector: str, value: str | None) -> None:
        patch: JsonObject = {"metadata": {"labels": {KEY_NAME: value}}}
        subject, before = f"Resource {gvk.kind}", self.count
        try:
            async with aclosing(_pages(self._client, gvk, selector)) as pages:
                async for page in pages:
                    async with TaskGroup() as group:
                        for obj in page.items:
                            group.create_task(self._patch(gvk, Key.of(obj), patch))
                    self._note(subject, f"{self.count - before} objects written")
        finally:
            self._note(subject, "")

    async def _patch(self, gvk: GroupVersionKind, key: Key, patch: JsonObject) -> None:
        async with self._slots:
            await self._throttle.wait()
            with suppress(NotFound):  # deleted in the meantime
                await self._client.patch(gvk, key, patch)
            self.count += 1


async def _pages(
    client: Client, gvk: GroupVersionKind, selector: str
) -> AsyncGenerator[ObjectList]:
    """Yield the objects that a selector matches; a list that becomes too old is started again.

    Patched objects no longer match, so the second list contains only the others.
    """
    while True:
        pages = client.pages(gvk, labels=selector, metadata_only=True)
        try:
            async with aclosing(pages):
                while True:
                    async with asyncio.timeout(_LIST_SECONDS):
                        page = await anext(pages, None)
                    if page is None:
                        return
                    yield page
        except Gone:
            continue
