"""Objects of the original extensions, for comparisons and takeovers.

    table = OriginalTable("calico_original.yaml")
    fields = table.variant("overlay off")["Service calico-typha"]

A table is data of our own: the fields of each object as `readable` shows them. The variant
`default` lists every field, the others what differs from it; null means absent.
"""

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from functools import cached_property
from importlib.resources import files
from pathlib import Path
from typing import Final, NamedTuple, cast

from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.yaml import parse
from tests.support.readable import fields, readable, title

Fields = Mapping[str, JsonValue]
DEFAULT: Final = "default"
_RBAC: Final = "rbac.authorization.k8s.io"
_KINDS: Final = {
    "CiliumClusterwideNetworkPolicy": ("cilium.io/v2", False),
    "CiliumLocalRedirectPolicy": ("cilium.io/v2", True),
    "CiliumNetworkPolicy": ("cilium.io/v2", True),
    "ClusterRole": (f"{_RBAC}/v1", False),
    "ClusterRoleBinding": (f"{_RBAC}/v1", False),
    "ConfigMap": ("v1", True),
    "CronJob": ("batch/v1", True),
    "DaemonSet": ("apps/v1", True),
    "Deployment": ("apps/v1", True),
    "IPPool": ("crd.projectcalico.org/v1", False),
    "Job": ("batch/v1", True),
    "NetworkPolicy": ("networking.k8s.io/v1", True),
    "PodDisruptionBudget": ("policy/v1", True),
    "Role": (f"{_RBAC}/v1", True),
    "RoleBinding": (f"{_RBAC}/v1", True),
    "Service": ("v1", True),
    "ServiceAccount": ("v1", True),
}


class OriginalTable:
    """The objects of one original extension, by variant."""

    def __init__(self, file: str) -> None:
        """Store the name of a file of this package, which is read at the first use."""
        self._file = file

    def variant(self, name: str) -> dict[str, Fields]:
        """Return the fields of every object in a variant, by kind and name."""
        found: dict[str, Fields] = {k: v for k, v in self._table[DEFAULT].items() if v is not None}
        if name == DEFAULT:
            return found
        for obj, changes in self._table[name].items():
            if changes is None:
                del found[obj]
            else:
                merged = {**found.get(obj, {}), **changes}
                found[obj] = {path: value for path, value in merged.items() if value is not None}
        return found

    @cached_property
    def _table(self) -> dict[str, dict[str, dict[str, JsonValue] | None]]:
        content = parse((files(__package__) / self._file).read_bytes())
        return cast("dict[str, dict[str, dict[str, JsonValue] | None]]", content)


class Difference(NamedTuple):
    """An object and a field; in documentation, both may be patterns."""

    title: str
    field: str

    def covers(self, other: "Difference") -> bool:
        """Return whether this row of the documentation explains another difference."""
        return fnmatchcase(other.title, _escaped(self.title)) and fnmatchcase(
            other.field, _escaped(self.field)
        )


def documented(page: Path) -> list[Difference]:
    """Return the rows of the first table of a page, whose columns are object, field and reason."""
    rows = [line.split("|") for line in page.read_text().splitlines() if line.startswith("| ")]
    return [Difference(row[1].strip(), row[2].strip().strip("`")) for row in rows[2:]]


def differences(theirs: Mapping[str, Fields], ours: Mapping[str, Fields]) -> Iterator[Difference]:
    """Yield every field that two renderings do not share."""
    for name in theirs.keys() | ours.keys():
        one, other = theirs.get(name, {}), ours.get(name, {})
        for field in one.keys() | other.keys():
            if not _same(one.get(field), other.get(field)):
                yield Difference(name, field)


def rendered_fields(objects: list[JsonObject]) -> dict[str, Fields]:
    """Return the fields of objects in the form of the table."""
    return {title(obj): dict(fields(readable(obj))) for obj in objects}


def takeover_object(name: str, of: Fields) -> JsonObject:
    """Return an object with the original's immutable fields, as an API server may have it."""
    kind, _, own_name = name.partition(" ")
    version, namespaced = _KINDS[kind]
    metadata: JsonObject = {"name": own_name} | ({"namespace": "kube-system"} if namespaced else {})
    if annotations := _below("annotations", of):
        metadata["annotations"] = annotations
    obj: JsonObject = {"apiVersion": version, "kind": kind, "metadata": metadata}
    return obj | _immutable(kind, of)


def _immutable(kind: str, of: Fields) -> JsonObject:
    pod: JsonObject = {"containers": [{"name": "original", "image": "original"}]}
    job: JsonObject = {"template": {"spec": pod | {"restartPolicy": "OnFailure"}}}
    if kind in ("DaemonSet", "Deployment"):
        labels = _below("spec.selector.matchLabels", of)
        template = {"metadata": {"labels": labels}, "spec": pod}
        return {"spec": {"selector": {"matchLabels": labels}, "template": template}}
    if kind == "Job":
        return {"spec": job}
    if kind == "CronJob":
        return {"spec": {"schedule": of["spec.schedule"], "jobTemplate": {"spec": job}}}
    if kind == "Service":
        numbers = [int(path.split(".")[2]) for path in of if path.endswith(".targetPort")]
        address = {"clusterIP": "None"} if of.get("spec.clusterIP") == "None" else {}
        ports = [{"name": f"port-{number}", "port": number} for number in numbers]
        return {"spec": {**address, "selector": _below("spec.selector", of), "ports": ports}}
    if kind.endswith("Binding"):
        role_kind, _, role_name = str(of["roleRef"]).partition(" ")
        return {"roleRef": {"apiGroup": _RBAC, "kind": role_kind, "name": role_name}}
    if kind == "IPPool":
        return {"spec": {"cidr": of["spec.cidr"]}}
    if kind == "NetworkPolicy":
        return {"spec": {"podSelector": {}}}
    return {"immutable": True, "data": {"original": "true"}} if of.get("immutable") else {}


def _below(parent: str, of: Fields) -> JsonObject:
    """Return the leaves directly below a path, as in `parent.app` and `parent[io.cilium/app]`."""
    steps = ((path.removeprefix(parent), value) for path, value in of.items()
             if path.startswith((f"{parent}.", f"{parent}[")))  # fmt: skip
    return {step.strip(".[]"): value for step, value in steps}


def _same(theirs: JsonValue, ours: JsonValue) -> bool:
    """Return whether values are equal; omitted texts are equal if both sides have one."""
    return ours is not None if theirs == "…" else theirs == ours


def _escaped(pattern: str) -> str:
    """Escape brackets, which are part of a field's path."""
    return pattern.replace("[", "[[]")
