"""Reading ManagedResources' Secrets: individually, or by a list if many are needed."""

import asyncio
from collections.abc import Iterable
from typing import Final, NamedTuple

from pergola.api.kinds import SECRET
from pergola.api.object_names import name_problem
from pergola.api.objects import JsonObject, Key, map_at, resource_version_of
from pergola.bundle.content import MOST_BYTES, decode_data
from pergola.kube.errors import KubeError
from pergola.resource_manager.controllers.managed_resource.secret_list import SecretList, Space
from pergola.resource_manager.source import Source

_MANY: Final = 20
_SHARE: Final = 0.2
_IDLE_SECONDS: Final = 60.0


class ReadSecret(NamedTuple):
    """The version of a Secret, as in `SeenSecret`, and its decoded data."""

    version: str
    data: dict[str, bytes]


class UnreadableSecret(Exception):
    """A Secret of a ManagedResource could not be read; the text says which one and why."""


def referenced_secrets(resource: JsonObject) -> list[str]:
    """Return the names of the Secrets that a ManagedResource reads, in order.

    Raises:
        UnreadableSecret: an entry has no usable name. Ignoring it would delete the objects it
            described.
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
    """Reads Secrets of the source cluster.

    A namespace is listed if many of its Secrets are needed that were never read. A list that is not
    used for a while ends, and releases its memory.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self._lists: dict[str, SecretList] = {}
        self._timers: dict[str, asyncio.TimerHandle] = {}
        self._space = Space()
        self._read: dict[str, set[Key]] = {}

    async def read_all(self, namespace: str, names: Iterable[str]) -> dict[str, ReadSecret]:
        """Read several Secrets of a namespace, each once.

        Raises:
            UnreadableSecret: one does not exist or cannot be read, or together they are too large.
        """
        secrets: dict[str, ReadSecret] = {}
        size = 0
        for name in names:
            if name not in secrets:
                secrets[name] = await self.read(Key(namespace, name))
                size += sum(map(len, secrets[name].data.values()))
            if size > MOST_BYTES:
                raise UnreadableSecret(f"the Secrets contain more than {MOST_BYTES} bytes")
        return secrets

    async def read(self, key: Key) -> ReadSecret:
        """Read one Secret.

        Raises:
            UnreadableSecret: it does not exist, or cannot be read.
        """
        version, data = await self._listed(key) or await self._get(key)
        self._remember(key)
        return ReadSecret(version, decode_data(data))

    def _remember(self, key: Key) -> None:
        desired = self._source.desired_secrets(key.namespace)
        if key in desired:
            read = self._read.setdefault(key.namespace, set())
            read.add(key)
            if len(read) > len(desired):
                read &= desired

    def forget(self, namespace: str) -> None:
        """Forget a namespace if no ManagedResource names a Secret there any more."""
        if not self._source.desired_secrets(namespace):
            self._read.pop(namespace, None)
            self._end(namespace)

    async def _listed(self, key: Key) -> tuple[str, JsonObject] | None:
        namespace = key.namespace
        if not self._needs(key):
            return None
        if namespace not in self._lists and self._is_worth_a_list(namespace):
            client = self._source.client
            self._lists[namespace] = SecretList(client, namespace, self._needs, self._space)
        listed = self._lists.get(namespace)
        if listed is None:
            return None
        if not listed.has_ended:
            self._keep_for_a_while(namespace)
        found = await listed.take(key)
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
        unread = self._source.desired_secrets(namespace) - self._read.get(namespace, set())
        if len(unread) < _MANY:
            return False
        needed = sum(map(self._source.is_desired_here, unread))
        return needed >= _MANY and needed >= _SHARE * self._source.secret_count(namespace)

    def _needs(self, secret: Key) -> bool:
        """Return whether a Secret was never read, but will be."""
        was_read = secret in self._read.get(secret.namespace, ())
        return not was_read and self._source.is_desired_here(secret)

    def _keep_for_a_while(self, namespace: str) -> None:
        if timer := self._timers.pop(namespace, None):
            timer.cancel()
        loop = asyncio.get_running_loop()
        self._timers[namespace] = loop.call_later(_IDLE_SECONDS, self._end, namespace)

    def _end(self, namespace: str) -> None:
        if timer := self._timers.pop(namespace, None):
            timer.cancel()
        listed = self._lists.pop(namespace, None)
        if listed is not None:
            listed.end()
