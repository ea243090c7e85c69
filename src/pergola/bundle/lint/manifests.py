"""Objects that are checked together, and the views that rules need."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from fnmatch import fnmatchcase
from typing import Final, NamedTuple

from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    map_at,
    maps_at,
    namespace_of,
)
from pergola.kube.selectors import SelectorError, matches

DEPLOYMENT: Final = GroupKind("apps", "Deployment")
STATEFUL_SET: Final = GroupKind("apps", "StatefulSet")
DAEMON_SET: Final = GroupKind("apps", "DaemonSet")
REPLICA_SET: Final = GroupKind("apps", "ReplicaSet")
JOB: Final = GroupKind("batch", "Job")
CRON_JOB: Final = GroupKind("batch", "CronJob")
POD: Final = GroupKind("", "Pod")

_POD_TEMPLATES: Final[Mapping[GroupKind, tuple[str, ...]]] = {
    POD: (),
    DEPLOYMENT: ("spec", "template"),
    STATEFUL_SET: ("spec", "template"),
    DAEMON_SET: ("spec", "template"),
    REPLICA_SET: ("spec", "template"),
    JOB: ("spec", "template"),
    CRON_JOB: ("spec", "jobTemplate", "spec", "template"),
}


class Finding(NamedTuple):
    """A finding of a rule about an object."""

    object: JsonObject
    path: str
    sentence: str


class Container(NamedTuple):
    """A container of a workload.

    Attributes:
        ends: whether it is meant to terminate, like an init container that is not a sidecar.
    """

    spec: JsonObject
    path: str
    ends: bool

    @property
    def name(self) -> str:
        """Its description in messages."""
        return str(self.spec.get("name") or "without a name")

    @property
    def security(self) -> JsonObject:
        """Its security context."""
        return map_at(self.spec, "securityContext")

    @property
    def is_privileged(self) -> bool:
        """Whether it has full access to its node."""
        return self.security.get("privileged") is True


@dataclass(frozen=True, slots=True)
class Workload:
    """An object with pods.

    Attributes:
        template: the labels and spec of its pods.
        path: the path of the pods' spec in the object.
    """

    object: JsonObject
    kind: GroupKind
    template: JsonObject
    path: str

    @property
    def namespace(self) -> str:
        """The namespace of its pods."""
        return namespace_of(self.object)

    @property
    def pod(self) -> JsonObject:
        """The spec of its pods."""
        return map_at(self.template, "spec")

    @property
    def labels(self) -> dict[str, str]:
        """The labels of its pods."""
        return labels_of(self.template)

    def containers(self) -> Iterator[Container]:
        """Yield all containers, init containers first."""
        short_lived = self.kind in (JOB, CRON_JOB)
        for i, spec in enumerate(maps_at(self.pod, "initContainers")):
            ends = short_lived or spec.get("restartPolicy") != "Always"
            yield Container(spec, f"{self.path}.initContainers[{i}]", ends)
        for i, spec in enumerate(maps_at(self.pod, "containers")):
            yield Container(spec, f"{self.path}.containers[{i}]", short_lived)

    def is_selected_by(self, selector: JsonObject) -> bool:
        """Return whether a selector matches its pods; an invalid selector matches none."""
        try:
            return matches(selector, self.labels)
        except SelectorError:
            return False


@dataclass(frozen=True, slots=True)
class Manifests:
    """The objects of a component.

    Attributes:
        external: titles of existing objects that are not part of the manifests; `*` matches any.
    """

    objects: tuple[JsonObject, ...]
    workloads: tuple[Workload, ...]
    external: tuple[str, ...]
    _titles: frozenset[str]

    @classmethod
    def of(cls, objects: Sequence[JsonObject], external: Collection[str] = ()) -> "Manifests":
        """Return the views of some objects."""
        workloads = tuple(filter(None, map(_workload, objects)))
        return cls(tuple(objects), workloads, tuple(external), frozenset(map(title, objects)))

    def of_kind(self, *kinds: GroupKind) -> Iterator[JsonObject]:
        """Yield the objects of some kinds, in any version."""
        return (o for o in self.objects if GroupVersionKind.of(o).group_kind in kinds)

    def selected(self, namespace: str, selector: JsonObject) -> Iterator[Workload]:
        """Yield the workloads in a namespace whose pods a selector matches."""
        for workload in self.workloads:
            if workload.namespace == namespace and workload.is_selected_by(selector):
                yield workload

    def has(self, kind: str, key: Key) -> bool:
        """Return whether an object is among the manifests or declared external."""
        name = f"{kind} {key}"
        return name in self._titles or any(fnmatchcase(name, known) for known in self.external)


def title(obj: JsonObject) -> str:
    """Return the title of an object, such as `Deployment kube-system/coredns`."""
    return f"{GroupVersionKind.of(obj).kind or 'object'} {Key.of(obj)}"


def _workload(obj: JsonObject) -> Workload | None:
    kind = GroupVersionKind.of(obj).group_kind
    path = _POD_TEMPLATES.get(kind)
    if path is None:
        return None
    return Workload(obj, kind, map_at(obj, *path), ".".join((*path, "spec")))
