"""The files that a pod mounts, from the objects that its volumes name."""

import base64
from collections.abc import Callable, Iterator
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of, namespace_of

Find = Callable[[str, Key], JsonObject | None]
"""Returns a Secret or ConfigMap by kind and key."""

TOKEN: Final = "serviceAccountToken"  # noqa: S105 - a field of Kubernetes
_SECRET: Final = "Secret"  # noqa: S105 - a kind
_CONFIG_MAP: Final = "ConfigMap"
_FIELDS: Final = {"metadata.namespace": namespace_of, "metadata.name": name_of}


class MissingFile(Exception):
    """A volume cannot be mounted yet; the text names the missing object."""


class Source(NamedTuple):
    """A Secret or ConfigMap in a volume.

    Attributes:
        items: the keys to mount with their paths; all keys if empty.
    """

    kind: str
    name: str
    items: tuple[tuple[str, str], ...]
    is_optional: bool


def referenced(pod: JsonObject) -> set[tuple[str, Key]]:
    """Return the kinds and keys of the objects that a pod mounts."""
    namespace = namespace_of(pod)
    volumes = maps_at(pod, "spec", "volumes")
    sources = (source for volume in volumes for source in _sources(volume))
    return {(source.kind, Key(namespace, source.name)) for source in sources}


def mounted_files(
    pod: JsonObject, container: JsonObject, find: Find, token: str
) -> dict[str, bytes]:
    """Return the contents of a container's files by path.

    Args:
        token: of the pod's ServiceAccount.

    Raises:
        MissingFile: an object, or a key of it, does not exist.
    """
    volumes = {volume["name"]: volume for volume in maps_at(pod, "spec", "volumes")}
    found: dict[str, bytes] = {}
    for mount in maps_at(container, "volumeMounts"):
        files = dict(_volume_files(pod, volumes.get(mount["name"], {}), find, token))
        part = mount.get("subPath")
        if part:
            found |= {mount["mountPath"]: files[part]} if part in files else {}
        else:
            found |= {f"{mount['mountPath']}/{path}": data for path, data in files.items()}
    return found


def mounts_token(pod: JsonObject) -> bool:
    """Return whether a pod mounts a token of its ServiceAccount."""
    volumes = maps_at(pod, "spec", "volumes")
    return any(
        TOKEN in each for volume in volumes for each in maps_at(volume, "projected", "sources")
    )


def _volume_files(
    pod: JsonObject, volume: JsonObject, find: Find, token: str
) -> Iterator[tuple[str, bytes]]:
    for source in _sources(volume):
        yield from _source_files(source, find(source.kind, Key(namespace_of(pod), source.name)))
    for projection in maps_at(volume, "projected", "sources"):
        if TOKEN in projection:
            yield projection[TOKEN]["path"], token.encode()
        for item in maps_at(projection, "downwardAPI", "items"):
            read = _FIELDS[map_at(item, "fieldRef")["fieldPath"]]
            yield item["path"], read(pod).encode()


def _sources(volume: JsonObject) -> Iterator[Source]:
    if "secret" in volume:
        yield _source(_SECRET, volume["secret"], volume["secret"]["secretName"])
    if "configMap" in volume:
        yield _source(_CONFIG_MAP, volume["configMap"], volume["configMap"]["name"])
    for projection in maps_at(volume, "projected", "sources"):
        for field, kind in (("secret", _SECRET), ("configMap", _CONFIG_MAP)):
            if field in projection:
                yield _source(kind, projection[field], projection[field]["name"])


def _source(kind: str, fields: JsonObject, name: str) -> Source:
    items = tuple((item["key"], item["path"]) for item in maps_at(fields, "items"))
    return Source(kind, name, items, is_optional=bool(fields.get("optional")))


def _source_files(source: Source, obj: JsonObject | None) -> Iterator[tuple[str, bytes]]:
    if obj is None:
        if not source.is_optional:
            raise MissingFile(f"{source.kind} {source.name} does not exist")
        return
    data = dict(_data(obj))
    for key, path in source.items or ((key, key) for key in data):
        if key in data:
            yield path, data[key]
        elif not source.is_optional:
            raise MissingFile(f'{source.kind} {source.name} has no key "{key}"')


def _data(obj: JsonObject) -> Iterator[tuple[str, bytes]]:
    encoded = map_at(obj, "data" if obj["kind"] == _SECRET else "binaryData")
    for key, value in encoded.items():
        yield key, base64.b64decode(value)
    if obj["kind"] == _CONFIG_MAP:
        for key, value in map_at(obj, "data").items():
            yield key, str(value).encode()
