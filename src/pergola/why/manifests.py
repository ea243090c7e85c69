"""The manifests of a ManagedResource: its Secrets, decoded as the resource manager decodes them."""

from typing import NamedTuple

from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    map_at,
    maps_at,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle.content import decode_data
from pergola.kube.errors import ApiError, UnknownKind
from pergola.resource_manager.controllers.managed_resource.decode import (
    Decoded,
    Place,
    SecretData,
    decode,
)
from pergola.resource_manager.controllers.managed_resource.references import (
    object_key,
    object_key_of,
)
from pergola.resource_manager.controllers.managed_resource.secrets import (
    UnreadableSecret,
    referenced_secrets,
)
from pergola.resource_manager.origin import parse_origin
from pergola.why.answer import Evidence, Kind, Statement, Topic
from pergola.why.reading import Reader


class Content(NamedTuple):
    """The content of a ManagedResource's Secrets, or why it is unknown."""

    decoded: Decoded
    problem: str = ""
    lost: tuple[Key, ...] = ()


def lists(resource: JsonObject, gvk: GroupVersionKind, key: Key) -> bool:
    """Return whether the status of a ManagedResource lists an object."""
    desired = object_key_of(gvk, key)
    return any(object_key(ref) == desired for ref in maps_at(resource, "status", "resources"))


async def content_of(resource: JsonObject, reader: Reader, target: Reader) -> Content:
    """Read and decode the Secrets of a ManagedResource, as the resource manager does.

    Args:
        reader: For the cluster with the ManagedResource.
        target: For the cluster with its objects.
    """
    try:
        names = referenced_secrets(resource)
    except UnreadableSecret as error:
        return Content(Decoded(), str(error))
    read, lost = [], []
    for name in names:
        key = Key(Key.of(resource).namespace, name)
        secret = await reader.find(SECRET, key)
        if secret is not None:
            read.append(SecretData(name, decode_data(map_at(secret, "data"))))
        elif await reader.is_missing(SECRET, key):
            lost.append(key)
        else:
            return Content(Decoded(), f"Secret {key} cannot be read")
    scopes = await _scopes(read, target)
    problem = f"Secret {lost[0]} does not exist" if lost else ""
    return Content(decode(read, scopes.get), problem, tuple(lost))


async def _scopes(read: list[SecretData], reader: Reader) -> dict[GroupVersionKind, bool]:
    """Return, for each kind in the Secrets that the server serves, whether it is namespaced."""
    scopes = {}
    for gvk in decode(read, lambda _: None).unknown:
        try:
            scopes[gvk] = (await reader.client.resource(gvk)).namespaced
        except (ApiError, UnknownKind):
            continue
    return scopes


async def managed_by(obj: JsonObject, reader: Reader) -> Statement | None:
    """Return the ManagedResource of an object, with its document; None if it has none."""
    origin = parse_origin(annotations_of(obj).get(marks.ORIGIN, ""))
    if origin is None:
        return None
    subject = f"ManagedResource {origin.namespace}/{origin.name}"
    resource = await reader.source.find(MANAGED_RESOURCE, Key(origin.namespace, origin.name))
    if resource is None:
        where = f"cluster {origin.cluster_id}" if origin.cluster_id else "another cluster"
        return Statement(
            topic=Topic.WANTED,
            subject=subject,
            text=f"which is not in this cluster, but in {where}",
        )
    place = await place_of(resource, obj, reader)
    evidence = (Evidence(Kind.SOURCE, str(place)),) if place else ()
    return Statement(topic=Topic.WANTED, subject=subject, evidence=evidence)


async def place_of(resource: JsonObject, obj: JsonObject, reader: Reader) -> Place | None:
    """Return the Secret, key and document that describe an object, or None."""
    content = await content_of(resource, reader.source, reader)
    identity = (GroupVersionKind.of(obj).group_kind, Key.of(obj))
    place = content.decoded.places.get(identity)
    if place is None:
        return None
    return place._replace(secret=str(Key(Key.of(resource).namespace, place.secret)))
