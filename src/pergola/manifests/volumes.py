"""Volumes of pods, and their mounts in containers."""

from collections.abc import Mapping

from pergola.api.objects import JsonObject, JsonValue


def mount(name: str, path: str, **options: JsonValue) -> JsonObject:
    """Return a mount of a volume, with options such as `readOnly=True`."""
    return {"name": name, "mountPath": path, **options}


def empty_dir(name: str, **options: JsonValue) -> JsonObject:
    """Return a volume that lives as long as its pod, with options such as `medium="Memory"`."""
    return {"name": name, "emptyDir": dict(options)}


def host_path(name: str, path: str, kind: str = "") -> JsonObject:
    """Return a volume on the node; `kind` is a type such as `DirectoryOrCreate`."""
    source: JsonObject = {"path": path, **({"type": kind} if kind else {})}
    return {"name": name, "hostPath": source}


def config_map_volume(name: str, config_map: str, **options: JsonValue) -> JsonObject:
    """Return a volume with the keys of a ConfigMap as files."""
    return {"name": name, "configMap": {"name": config_map, **options}}


def projected(name: str, *sources: JsonObject, mode: int | None = None) -> JsonObject:
    """Return a volume with files from several sources."""
    content: JsonObject = {"sources": list(sources)}
    return {"name": name, "projected": content | ({} if mode is None else {"defaultMode": mode})}


def secret_files(
    secret: str, files: Mapping[str, str], *, optional: bool | None = None
) -> JsonObject:
    """Return the source of a projected volume with keys of a Secret.

    Args:
        files: maps each key to its path.
        optional: whether pods may start before the Secret exists; None leaves the field out,
            which means the same as False.
    """
    items = [{"key": key, "path": path} for key, path in files.items()]
    source: JsonObject = {"name": secret, "items": items}
    return {"secret": source | ({} if optional is None else {"optional": optional})}
