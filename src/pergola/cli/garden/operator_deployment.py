"""The files and variables that a Deployment passes to the operator."""

from itertools import pairwise
from pathlib import PurePosixPath
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, map_at, maps_at

_CONTAINER: Final = "gardener-operator"
_OPTION: Final = "--config"


class Mounted(NamedTuple):
    """A file in a pod: a key of a ConfigMap."""

    name: str
    key: str


def configuration_file(deployment: JsonObject) -> str:
    """Return the path of the operator's configuration file; empty if no argument names it."""
    container = _container(deployment)
    words = [str(word) for part in ("command", "args") for word in container.get(part) or ()]
    for word, following in pairwise([*words, ""]):
        option, equals, value = word.partition("=")
        if option == _OPTION:
            return value if equals else following
    return ""


def variable(deployment: JsonObject, name: str) -> str:
    """Return the value of an environment variable; empty if it is not set."""
    values = {
        each.get("name"): each.get("value") for each in maps_at(_container(deployment), "env")
    }
    return str(values.get(name) or "")


def mounted(deployment: JsonObject, path: str) -> Mounted | None:
    """Return what is mounted at a path; None if that is not a ConfigMap."""
    volumes = {each.get("name"): each for each in maps_at(_pod(deployment), "volumes")}
    for mount in maps_at(_container(deployment), "volumeMounts"):
        source = map_at(volumes.get(mount.get("name")) or {}, "configMap")
        file = _file(mount, path)
        if source and file:
            keys = {each.get("path"): each.get("key") for each in maps_at(source, "items")}
            return Mounted(str(source.get("name")), str(keys.get(file, file)))
    return None


def _file(mount: JsonObject, path: str) -> str:
    """Return the path of a file in its volume; empty if the mount does not contain it."""
    at = PurePosixPath(str(mount.get("mountPath")))
    part = str(mount.get("subPath") or "")
    if not path or not PurePosixPath(path).is_relative_to(at):
        return ""
    inside = str(PurePosixPath(part) / PurePosixPath(path).relative_to(at))
    return "" if inside == "." else inside


def _container(deployment: JsonObject) -> JsonObject:
    containers = maps_at(_pod(deployment), "containers")
    return next((each for each in containers if each.get("name") == _CONTAINER), {})


def _pod(deployment: JsonObject) -> JsonObject:
    return map_at(deployment, "spec", "template", "spec")
