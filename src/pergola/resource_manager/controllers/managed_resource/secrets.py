"""Reading the Secrets of ManagedResources: one by one, or in bulk where most are wanted.

After a start every ManagedResource reads its Secrets. Where many of a namespace's Secrets are
wanted, they are listed once, page by page, and each is handed out once; nothing is kept after that.
"""

import asyncio
import base64
import binascii
from contextlib import aclosing
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.object_names import name_problem
from pergola.api.objects import JsonObject, Key, map_at, resource_version_of
from pergola.kube.errors import KubeError
from pergola.resource_manager.source import Source

_MANY: Final = 20
_SHARE: Final = 0.2
_STASH_BYTES: Final = 32 * 1024 * 1024


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
    """Reads Secrets of the source."""

    def __init__(self, source: Source) -> None:
        self._source = source
        self._stash: dict[Key, tuple[str, JsonObject]] = {}
        self._listed: set[str] = set()
        self._lock = asyncio.Lock()

    async def read(self, key: Key) -> tuple[str, dict[str, bytes]]:
        """The version (as `SeenSecret` counts it) and the decoded data of a Secret.

        Raises:
            UnreadableSecret: it is not there, or cannot be read.
        """
        version, data = await self._stashed(key) or await self._get(key)
        return version, {name: _decoded(value) for name, value in data.items()}

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
        wanted = self._source.wanted_secrets(namespace)
        return wanted >= _MANY and wanted >= _SHARE * self._source.secret_count(namespace)

    async def _list(self, namespace: str) -> None:
        self._listed.add(namespace)
        size = 0
        pages = self._source.client.pages(SECRET, namespace)
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
            return  # each is read by itself then, and says what is wrong


def _decoded(value: object) -> bytes:
    try:
        return base64.b64decode(value if isinstance(value, str) else "")
    except binascii.Error:
        return b""
