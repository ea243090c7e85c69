"""Conversion of writes into changes of objects, which users of a plan read.

A ManagedResource is written together with Secrets that contain its objects. A plan shows the
objects instead of these Secrets.
"""

from collections.abc import Iterable, Iterator, Sequence
from typing import Final, NamedTuple

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupKind, GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.managed_resource import secret_name, secret_names
from pergola.garden.components.component import Target
from pergola.kube.applied import changes as applied_changes
from pergola.kube.client import Client
from pergola.kube.equality import EXACT, Difference, differences
from pergola.operator.compare.placed import without_hash
from pergola.operator.compare.recorded import objects_in
from pergola.operator.plan.client import Write
from pergola.operator.plan.model import Change, Field, Verb
from pergola.secrets_manager.managed import MANAGED_BY, MANAGER

OWNERSHIP: Final = Field("metadata.managedFields", None, "the operator takes over the fields")
"""The change of an object that has all desired values, but not from the operator."""

_DATA: Final = ("data", "stringData")
# Determined by the Secrets of a ManagedResource, whose objects are compared instead.
_DERIVED: Final = ("spec.secretRefs",)
# Determined by the fields that name these objects.
_REFERENCE: Final = "metadata.annotations.reference.resources.gardener.cloud/"
# Maintained by a server.
_SERVERS: Final = ("metadata.managedFields", "metadata.resourceVersion", "metadata.generation")


class _Kept(NamedTuple):
    """An object in a ManagedResource."""

    managed: str
    cluster: Target
    obj: JsonObject


async def changes_of(
    writes: Sequence[Write], client: Client, cluster: Target = Target.RUNTIME
) -> list[Change]:
    """Return the changes that writes amount to, in order.

    Args:
        client: Reads the Secrets of ManagedResources as the writes leave them.
        cluster: The target cluster of the writes.

    Raises:
        KubeError: The API server refused, or did not answer.
        BundleError: A ManagedResource has a Secret that cannot be read.
    """
    bundles = [write for write in writes if write.identity.gvk == MANAGED_RESOURCE]
    hidden = {key for write in bundles for key in _secrets_of(write)}
    before = {
        each.identity.key: each.before or {} for each in writes if each.identity.gvk == SECRET
    }
    found: list[Change] = []
    for write in writes:
        if write.identity.gvk == SECRET and write.identity.key in hidden:
            continue
        found += _own(write, cluster)
        if write in bundles:
            found += await _objects(write, client, before)
    return found


def _own(write: Write, cluster: Target) -> Iterator[Change]:
    """Yield the change of the written object itself, if it is shown."""
    gvk, key = write.identity
    if write.before is None or write.after is None:
        verb = Verb.CREATE if write.before is None else Verb.DELETE
        if labels_of(write.after or {}).get(MANAGED_BY) == MANAGER:
            # The suffix of a credential's name is unknown before it is generated.
            key = key._replace(name=without_hash(key.name))
        yield Change(verb=verb, gvk=gvk, key=key, cluster=cluster)
        return
    found = tuple(_fields(gvk, _differences(write)))
    if gvk == MANAGED_RESOURCE:
        found = tuple(each for each in found if not each.path.startswith(_DERIVED))
        if not found:  # its objects are shown instead
            return
    yield Change(verb=Verb.CHANGE, gvk=gvk, key=key, cluster=cluster, fields=found or (OWNERSHIP,))


def _differences(write: Write) -> Iterator[Difference]:
    before, after = write.before or {}, write.after or {}
    if write.applied is not None:
        yield from applied_changes(write.applied, before, write.manager)
    else:
        yield from differences(before, after, EXACT)


def _fields(gvk: GroupVersionKind, found: Iterable[Difference]) -> Iterator[Field]:
    """Yield the changed fields; for a Secret's data, only the keys."""
    keys: list[str] = []
    for path, old, new in found:
        if path.startswith(_SERVERS) or _REFERENCE in path:
            continue
        top, _, key = path.partition(".")
        if gvk == SECRET and top in _DATA:
            keys += [key] if key else [*_keys(old), *_keys(new)]
        else:
            yield Field(path, old, new)
    if keys:
        yield Field("data", keys=tuple(sorted(set(keys))))


def _keys(value: object) -> Iterable[str]:
    return value if isinstance(value, dict) else ()


# Objects in ManagedResources


async def _objects(write: Write, client: Client, before: dict[Key, JsonObject]) -> list[Change]:
    """Return the changes of the objects in a ManagedResource."""
    left = {} if write.after is None else await _kept(write.after, client, {})
    there = {} if write.before is None else await _kept(write.before, client, before)
    if write.after is None and map_at(write.before or {}, "spec").get("keepObjects"):
        return []
    return [
        change
        for identity in dict.fromkeys([*there, *left])
        for change in _of_object(there.get(identity), left.get(identity))
    ]


async def _kept(
    resource: JsonObject, client: Client, before: dict[Key, JsonObject]
) -> dict[tuple[GroupKind, Key], _Kept]:
    """Return the objects in the Secrets of a ManagedResource."""
    namespace, name = Key.of(resource)
    cluster = Target.RUNTIME if map_at(resource, "spec").get("class") else Target.VIRTUAL
    found: dict[tuple[GroupKind, Key], _Kept] = {}
    for secret in sorted(secret_names(resource)):
        key = Key(namespace, secret)
        content = before.get(key) or await client.find(SECRET, key) or {}
        for obj in objects_in(content):
            found[GroupVersionKind.of(obj).group_kind, Key.of(obj)] = _Kept(name, cluster, obj)
    return found


def _of_object(old: _Kept | None, new: _Kept | None) -> Iterator[Change]:
    kept = new or old
    if kept is None:
        return
    gvk, key = GroupVersionKind.of(kept.obj), Key.of(kept.obj)
    verb = Verb.CHANGE if old and new else Verb.CREATE if new else Verb.DELETE
    found: tuple[Field, ...] = ()
    if old and new:
        found = tuple(_fields(gvk, differences(old.obj, new.obj, EXACT)))
        if not found:
            return
    yield Change(
        verb=verb, gvk=gvk, key=key, cluster=kept.cluster, managed=kept.managed, fields=found
    )


def _secrets_of(write: Write) -> Iterator[Key]:
    """Yield the Secrets that were written for a ManagedResource."""
    namespace, name = write.identity.key
    yield Key(namespace, secret_name(name))
    for resource in (write.before, write.after):
        yield from (Key(namespace, each) for each in secret_names(resource or {}))
