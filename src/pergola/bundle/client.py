"""Writing and deleting ManagedResources and their Secrets (spec 10 §12).

Writes that would change nothing are not sent. Every function here can be called again after an
interruption.
"""

from collections.abc import Collection
from contextlib import aclosing, suppress
from typing import Final

from pergola.api import marks
from pergola.api.conditions import timestamp
from pergola.api.kinds import SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    labels_of,
    map_at,
    name_of,
    namespace_of,
    uid_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.managed_resource import Bundle, merge_into, secret_name, secret_names
from pergola.bundle.names import check_same_content, immutability_patch
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, Conflict, NotFound
from pergola.kube.selectors import format_selector
from pergola.runtime.clock import Clock, SystemClock

_ATTEMPTS: Final = 10


async def apply(client: Client, bundle: Bundle, *, clock: Clock | None = None) -> JsonObject:
    """Create or update the Secrets and then the ManagedResource.

    Secrets that are no longer read stay, labelled for the garbage collector.

    Returns:
        The ManagedResource as stored.

    Raises:
        NameTaken: a Secret with a unique name has other content.
        AlreadyExists: another client created the ManagedResource concurrently.
        KubeError: the API server refused, or did not answer.
    """
    live = await client.find(MANAGED_RESOURCE, bundle.key)
    await _apply_secrets(client, bundle, live, clock or SystemClock())
    return await _replace(client, bundle, live) or await client.create(bundle.managed_resource)


async def update(
    client: Client, bundle: Bundle, *, clock: Clock | None = None
) -> JsonObject | None:
    """Like `apply`, but return None without writing if the ManagedResource does not exist."""
    live = await client.find(MANAGED_RESOURCE, bundle.key)
    if live is None:
        return None
    await _apply_secrets(client, bundle, live, clock or SystemClock())
    return await _replace(client, bundle, live)


async def delete(client: Client, key: Key, *, secret_prefix: bool = True) -> None:
    """Delete the Secrets of a ManagedResource, and request its own deletion.

    The Secrets can be deleted first, because the resource manager deletes objects by its records.
    The ManagedResource remains until its objects are gone: see `wait_deleted`. Secrets that it
    reads but that no bundle created are kept.

    Raises:
        Conflict: the ManagedResource, or a Secret, was concurrently replaced by another one.
    """
    live = await client.find(MANAGED_RESOURCE, key)
    base = secret_name(key.name, prefix=secret_prefix)
    for name in sorted({base} | secret_names(live or {})):
        secret = await client.find(SECRET, Key(key.namespace, name), metadata_only=True)
        if secret is not None and _is_bundled(secret, base):
            with suppress(NotFound):
                await client.delete(SECRET, Key.of(secret), uid=uid_of(secret))
    if live is not None:
        with suppress(NotFound):
            await client.delete(MANAGED_RESOURCE, key, uid=uid_of(live))


async def delete_by_origin(client: Client, namespace: str, origin: str) -> list[Key]:
    """Request the deletion of all ManagedResources of a creator; return their keys."""
    labels = format_selector({"matchLabels": {marks.ORIGIN_LABEL: origin}})
    found = await client.list(MANAGED_RESOURCE, namespace, labels=labels, metadata_only=True)
    for resource in found:
        with suppress(NotFound):
            await client.delete(MANAGED_RESOURCE, Key.of(resource), uid=uid_of(resource))
    return [Key.of(resource) for resource in found]


async def set_keep_objects(client: Client, key: Key, keep: bool) -> None:
    """Set whether the objects outlive the ManagedResource; do nothing if it is gone."""
    with suppress(NotFound):
        await client.patch(MANAGED_RESOURCE, key, {"spec": {"keepObjects": keep}})


async def exists(
    client: Client,
    resource_class: str | None,
    *,
    namespace: str | None = None,
    excluded_names: Collection[str] = (),
    excluded_namespaces: Collection[str] = (),
) -> bool:
    """Return whether a ManagedResource of a class exists, apart from excluded ones.

    Args:
        resource_class: the exact class in the spec; None for an unset class, which differs from an
            empty one.
        namespace: where to look; everywhere if None.
    """
    pages = client.pages(MANAGED_RESOURCE, namespace)
    async with aclosing(pages):
        async for page in pages:
            for resource in page.items:
                if (
                    map_at(resource, "spec").get("class") == resource_class
                    and name_of(resource) not in excluded_names
                    and namespace_of(resource) not in excluded_namespaces
                ):
                    return True
    return False


async def _apply_secrets(
    client: Client, bundle: Bundle, live: JsonObject | None, clock: Clock
) -> None:
    read_now = secret_names(live or {})
    for secret in bundle.secrets:
        there = await _read_or_create(client, secret)
        if there is None:
            continue
        check_same_content(there, secret)
        patch = immutability_patch(there, secret)
        if name_of(secret) not in read_now:
            # A garbage collector may be about to delete it as unused. It deletes only the state
            # that it checked, so a new state keeps the Secret until the ManagedResource names it.
            touch = {"annotations": {marks.TIMESTAMP: timestamp(clock.now())}}
            patch["metadata"] = patch.get("metadata", {}) | touch
        if patch:
            await client.patch(SECRET, Key.of(secret), patch)


async def _read_or_create(client: Client, secret: JsonObject) -> JsonObject | None:
    """Return the existing Secret, or None if it was created."""
    there = await client.find(SECRET, Key.of(secret))
    if there is not None:
        return there
    try:
        await client.create(secret)
    except AlreadyExists:  # another producer was faster
        return await client.get(SECRET, Key.of(secret))
    return None


async def _replace(client: Client, bundle: Bundle, live: JsonObject | None) -> JsonObject | None:
    """Update the ManagedResource to match the bundle; return None if it does not exist.

    Decide again after a conflict: the resource manager often writes concurrently.
    """
    for attempt in range(_ATTEMPTS):
        if live is None:
            return None
        merged = merge_into(live, bundle.managed_resource)
        if merged == live:
            return live
        for name in sorted(secret_names(live) - secret_names(merged)):
            await _make_collectable(client, Key(bundle.key.namespace, name))
        try:
            return await client.update(merged)
        except Conflict:
            if attempt + 1 == _ATTEMPTS:
                raise
            live = await client.find(MANAGED_RESOURCE, bundle.key)
    raise AssertionError("the last attempt returns or raises")


def _is_bundled(secret: JsonObject, base: str) -> bool:
    """Return whether a Secret was created for a ManagedResource, by its name or its label."""
    return name_of(secret) == base or marks.is_truthy(
        labels_of(secret).get(marks.GARBAGE_COLLECTABLE)
    )


async def _make_collectable(client: Client, key: Key) -> None:
    with suppress(NotFound):
        secret = await client.get(SECRET, key, metadata_only=True)
        if labels_of(secret).get(marks.GARBAGE_COLLECTABLE) != "true":
            label = {marks.GARBAGE_COLLECTABLE: "true"}
            await client.patch(SECRET, key, {"metadata": {"labels": label}})
