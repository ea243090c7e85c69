"""Kubernetes objects in a form for comparing two implementations field by field.

Lists whose items have a name become maps, environment variables become `name: value`, the rules of
a role become `group/resource: verbs`, and scripts, checksums and image references become a word:
two renderings may differ in them without a difference to a cluster.
"""

from collections.abc import Iterator, Mapping, Sequence
from typing import Final

from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at

_LONGEST: Final = 160
_DEFAULTS: Final = (
    ("readOnly", False),
    ("privileged", False),
    ("readOnlyRootFilesystem", False),
    ("protocol", "TCP"),
    ("scheme", "HTTP"),
    ("type", "ClusterIP"),
    ("imagePullPolicy", "IfNotPresent"),
)
_KEYS: Final = {
    "initContainers": "name",
    "containers": "name",
    "volumes": "name",
    "volumeMounts": "mountPath",
}


def title(obj: JsonObject) -> str:
    """Return the kind and the name of an object."""
    return f"{obj['kind']} {obj['metadata']['name']}"


def readable(obj: JsonObject) -> JsonObject:
    """Return the fields of an object that matter to a cluster, without its name and kind."""
    metadata = map_at(obj, "metadata")
    found: JsonObject = {name: metadata[name] for name in ("labels", "annotations")
                         if metadata.get(name)}  # fmt: skip
    for name, value in obj.items():
        if name == "rules":
            found[name] = _rules(obj)
        elif name == "roleRef":
            found[name] = f"{value['kind']} {value['name']}"
        elif name == "subjects":
            found[name] = sorted(f"{s['kind']} {s['name']}" for s in value)
        elif name not in ("apiVersion", "kind", "metadata"):
            found[name] = value
    return _shown("", found)  # type: ignore[return-value]


def fields(value: JsonValue, path: str = "") -> Iterator[tuple[str, JsonValue]]:
    """Yield the path and the value of every leaf; an empty map is a leaf too, except at the root.

    `pod` is short for `spec.template.spec`.
    """
    if isinstance(value, dict) and (value or not path):
        for name, inner in value.items():
            step = f"[{name}]" if "." in name or "/" in name else name
            joined = path + step if step[0] == "[" else f"{path}.{step}".removeprefix(".")
            yield from fields(inner, "pod" if joined == "spec.template.spec" else joined)
    else:
        yield path, value


def _shown(name: str, value: JsonValue) -> JsonValue:
    if isinstance(value, dict):
        if name == "metadata":  # of a pod template: its name is ignored
            value = {k: v for k, v in value.items() if k in ("labels", "annotations")}
        if name == "annotations":
            return {k: "…" if k.startswith("checksum/") else v for k, v in value.items()}
        return {k: _shown(k, v) for k, v in value.items() if not _is_default(k, v)}
    if isinstance(value, list):
        return _list(name, value)
    if name == "image":
        return "…"
    if isinstance(value, str) and ("\n" in value or len(value) > _LONGEST):
        return "…"
    return value


def _is_default(name: str, value: JsonValue) -> bool:
    """Return whether leaving the field out means the same."""
    return (name, value) in _DEFAULTS


def _list(name: str, items: list[JsonValue]) -> JsonValue:
    maps = [item for item in items if isinstance(item, dict)]
    if name == "env":
        return {str(item["name"]): _variable(item) for item in maps}
    if key := _key(name, maps):
        return {str(item[key]): _shown("", _without(item, key)) for item in maps}
    return [_shown("", item) for item in items]


def _key(name: str, items: Sequence[JsonObject]) -> str | None:
    """Return the field that distinguishes the items of a list, or None."""
    if name == "ports":  # of a Service; those of a container need not be unique
        return "port" if all("port" in item for item in items) else None
    return _KEYS.get(name)


def _without(item: JsonObject, key: str) -> JsonObject:
    return {name: value for name, value in item.items() if name != key}


def _variable(variable: JsonObject) -> JsonValue:
    source = map_at(variable, "valueFrom")
    if key := map_at(source, "configMapKeyRef"):
        return f"ConfigMap {key['name']}: {key['key']}"
    if path := map_at(source, "fieldRef"):
        return f"field {path['fieldPath']}"
    value: JsonValue = variable.get("value", "")
    return value


def _rules(obj: JsonObject) -> Mapping[str, JsonValue]:
    found: dict[str, set[str]] = {}
    for rule in maps_at(obj, "rules"):
        names = f" {','.join(rule['resourceNames'])}" if rule.get("resourceNames") else ""
        for group in rule["apiGroups"]:
            for resource in rule["resources"]:
                found.setdefault(f"{group}/{resource}{names}", set()).update(rule["verbs"])
    return {key: " ".join(sorted(verbs)) for key, verbs in sorted(found.items())}
