"""Reads of ManagedResources' Secrets: one by one, or in bulk if many are needed.

After a start every ManagedResource reads its Secrets. If many Secrets of a namespace are needed,
they are listed once, page by page, and each is used once; nothing is kept after that.
"""

import asyncio
from collections.abc import Iterable
from contextlib import aclosing
from typing import Final, NamedTuple

from pergola.api.kinds import SECRET
from pergola.api.object_names import name_problem
from pergola.api.objects import JsonObject, Key, map_at, resource_version_of
from pergola.bundle.content import MOST_BYTES, decode_data
from pergola.kube.errors import KubeError
from pergola.resource_manager.source import Source

_PAGE: Final = 25  # a Secret can hold 1 MiB, and a page is read as a whole
_MANY: Final = 20
_SHARE: Final = 0.2
_STASH_BYTES: Final = 32 * 1024 * 1024


class ReadSecret(NamedTuple):
    """The version of a Secret, as `SeenSecret` counts it, and its decoded data."""

    version: str
    data: dict[str, bytes]


class UnreadableSecret(Exception):
    """A Secret of a ManagedResource could not be read; the text says which and why."""


def referenced_secrets(resource: JsonObject) -> list[str]:
    """Return the names of the Secrets that a ManagedResource reads, in their order.

    Raises:
        UnreadableSecret: an entry has no usable name. To ignore it would delete what it described.
    """
    references = map_at(resource, "spec").get("secretRefs")
    if not isinstance(references, list):
        raise UnreadableSecret("spec.secretRefs must be a list")
    for index, reference in enumerate(references):
        name = reference.get("name") if isinstance(reference, dict) else None
        if problem := name_problem(name):
            raise UnreadableSecret(f"spec.secretRefs[{index}].name {problem}")
    return [reference["name"] for reference in references]


class SecretReader:
    """Reads Secrets of the source cluster."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._stash: dict[Key, tuple[str, JsonObject]] = {}
        self._listed: set[str] = set()
        self._lock = asyncio.Lock()

    async def read_all(self, namespace: str, names: Iterable[str]) -> dict[str, ReadSecret]:
        """Read several Secrets of a namespace, each once.

        Raises:
            UnreadableSecret: one does not exist or cannot be read, or all together are too large.
        """
        secrets: dict[str, ReadSecret] = {}
        size = 0
        for name in names:
            if name not in secrets:
                secrets[name] = await self.read(Key(namespace, name))
                size += sum(map(len, secrets[name].data.values()))
            if size > MOST_BYTES:
                raise UnreadableSecret(f"the Secrets hold more than {MOST_BYTES} bytes")
        return secrets

    async def read(self, key: Key) -> ReadSecret:
        """Read one Secret.

        Raises:
            UnreadableSecret: it does not exist, or cannot be read.
        """
        version, data = await self._stashed(key) or await self._get(key)
        return ReadSecret(version, decode_data(data))

    async def _stashed(self, key: Key) -> tuple[str, JsonObject] | None:
        if key.namespace not in self._listed and self._is_worth_a_list(key.namespace):
            async with self._lock:
                if key.namespace not in self._listed:
                    await self._list(key.namespace)
        found = self._stash.pop(key, None)
        seen = self._source.secret(key)
        if found is None or seen is None:
            return None
        fits = found[0] in (seen.version, seen.resource_version)
        return (seen.version, found[1]) if fits else None

    async def _get(self, key: Key) -> tuple[str, JsonObject]:
        try:
            secret = await self._source.client.get(SECRET, key)
        except KubeError as error:
            raise UnreadableSecret(f"cannot read Secret {key}: {error}") from error
        seen, version = self._source.secret(key), resource_version_of(secret)
        if seen is not None and seen.resource_version == version:
            version = seen.version
        return version, map_at(secret, "data")

    def _is_worth_a_list(self, namespace: str) -> bool:
        desired = self._source.wanted_secrets(namespace)
        return desired >= _MANY and desired >= _SHARE * self._source.secret_count(namespace)

    async def _list(self, namespace: str) -> None:
        self._listed.add(namespace)
        size = 0
        pages = self._source.client.pages(SECRET, namespace, page_size=_PAGE)
        try:
            async with aclosing(pages):
                async for page in pages:
                    for secret in page.items:
                        key = Key.of(secret)
                        if self._source.readers(key):
                            data = map_at(secret, "data")
                            size += sum(len(value) for value in data.values())
                            self._stash[key] = resource_version_of(secret), data
                    if size > _STASH_BYTES:
                        return
        except KubeError:
            return  # each is then read separately, and reports its problems
