"""Adding and removing our finalizer does not count as a change of a Secret: spec 11 §6."""

import base64
from typing import cast

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.resource_manager.controllers.managed_resource.secrets import ReadSecret, SecretReader
from pergola.resource_manager.controllers.managed_resource.triggers import secret_triggers
from pergola.resource_manager.responsibility import Responsibility
from pergola.resource_manager.source import SeenSecret, Source
from pergola.runtime.caching.cache import Change

KEY = Key("garden", "demo")


class Server:
    """A server with one Secret."""

    def __init__(self) -> None:
        self.secret = secret("1")

    async def get(self, gvk: GroupVersionKind, key: Key) -> JsonObject:
        """Return the current Secret."""
        return self.secret


def secret(version: str, *finalizers: str) -> JsonObject:
    """Return the Secret in a version."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": KEY.name,
            "namespace": KEY.namespace,
            "uid": "u",
            "resourceVersion": version,
            "finalizers": [*finalizers],
        },
        "data": {"a": base64.b64encode(b"b").decode()},
    }


def seen(source: Source) -> SeenSecret:
    """Return the cached facts."""
    kept = source.secret(KEY)
    assert kept is not None
    return kept


def observing() -> tuple[Source, Server, list[Change[SeenSecret]]]:
    """Return a source with the Secret in version 1 and a ManagedResource that refers to it."""
    server = Server()
    source = Source(cast("Client", server), Responsibility("resources"))
    source.secrets.observe(server.secret)
    source.observe(
        {
            "apiVersion": "resources.gardener.cloud/v1alpha1",
            "kind": "ManagedResource",
            "metadata": {"name": "demo", "namespace": KEY.namespace, "resourceVersion": "1"},
            "spec": {"secretRefs": [{"name": KEY.name}]},
        }
    )
    changes: list[Change[SeenSecret]] = []
    source.secrets.subscribe(changes.append)
    changes.clear()
    return source, server, changes


def test_our_own_write_keeps_the_version_and_triggers_nothing() -> None:
    source, _, changes = observing()
    source.observe_secret(secret("2", "ours"), seen(source))
    source.observe_secret(secret("3"), seen(source))
    assert (seen(source).version, seen(source).resource_version) == ("1", "3")
    assert len(changes) == 2
    assert not [key for change in changes for key in secret_triggers(change, source)]


def test_a_foreign_write_is_a_new_version_and_triggers_the_reader() -> None:
    source, _, changes = observing()
    source.observe_secret(secret("2", "ours"), seen(source))
    (cache,) = source.secrets
    cache.observe(secret("3", "ours"))
    assert (seen(source).version, seen(source).resource_version) == ("3", "3")
    assert list(secret_triggers(changes[-1], source)) == [KEY]


def test_a_foreign_write_in_between_triggers_the_reader_too() -> None:
    source, _, changes = observing()
    before = seen(source)
    (cache,) = source.secrets
    cache.observe(secret("3", "ours"))  # the watch is already ahead
    source.observe_secret(secret("2", "ours"), before)
    assert seen(source).version == "3"
    assert list(secret_triggers(changes[-1], source)) == [KEY]


async def test_a_read_has_the_observed_version() -> None:
    source, server, _ = observing()
    reader = SecretReader(source)
    assert await reader.read(KEY) == ReadSecret("1", {"a": b"b"})
    server.secret = secret("2", "ours")
    source.observe_secret(server.secret, seen(source))
    assert await reader.read(KEY) == ReadSecret("1", {"a": b"b"})
    server.secret = secret("3", "ours")
    assert await reader.read(KEY) == ReadSecret("3", {"a": b"b"})  # the watch will report it
