"""What a component of a Garden is: data about it, and one pure function (design §8)."""

from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Final, NamedTuple, Self

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.bundle import annotate, references
from pergola.operator.garden.credentials import Credential
from pergola.operator.garden.landscape import NAMESPACE, Landscape

SYNC_POINT: Final = (
    "Generating generic token kubeconfig",
    "Generating observability ingress password",
    "Reconciling Kubernetes vertical pod autoscaler",
    "Deploying ETCD Druid",
    "Deploying Istio",
    "Deploying nginx-ingress controller",
    "Reconcile Istio internal load balancing ConfigMap",
)
"""The tasks after which the runtime cluster is ready for what faces outwards (spec 20 §12)."""


class Target(Enum):
    """The cluster in which objects are kept."""

    RUNTIME = "runtime"
    VIRTUAL = "virtual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """Objects that a resource manager keeps, as one ManagedResource.

    Attributes:
        name: Of the ManagedResource.
        condition: The condition of the Garden that reports on it; empty for the one of the target.
        keep: Whether the objects outlive the ManagedResource.
        rolled_out: Whether waiting includes that nothing progresses any more.
        labels: More labels of the ManagedResource.
    """

    name: str
    objects: tuple[JsonObject, ...]
    target: Target = Target.RUNTIME
    namespace: str = NAMESPACE
    condition: str = ""
    keep: bool = False
    rolled_out: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rendered:
    """The objects of a component.

    Attributes:
        managed: Kept by a resource manager.
        direct: Applied to the runtime cluster by the operator itself.
    """

    managed: tuple[Managed, ...] = ()
    direct: tuple[JsonObject, ...] = ()

    def annotated(self) -> Self:
        """Return the same objects, those that run pods annotated with what they refer to.

        The garbage collector of the resource manager keeps what these annotations name.
        """
        managed = [
            replace(each, objects=tuple(map(_annotated, each.objects))) for each in self.managed
        ]
        return replace(self, managed=tuple(managed), direct=tuple(map(_annotated, self.direct)))


class Identity(NamedTuple):
    """An object of the runtime cluster."""

    gvk: GroupVersionKind
    key: Key


@dataclass(frozen=True, slots=True)
class Removable:
    """What a component leaves behind when a Garden does not have it any more.

    Attributes:
        managed: Its ManagedResources.
        direct: The objects that the operator applied itself.
    """

    managed: tuple[Key, ...] = ()
    direct: tuple[Identity, ...] = ()


def always(landscape: Landscape) -> None:
    """Keep a component in every Garden."""
    del landscape


def no_credentials(landscape: Landscape) -> Iterable[Credential]:
    """Need no credentials."""
    del landscape
    return ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One part of a Garden.

    Attributes:
        name: Unique, for commands and messages.
        deploy: The name of the task that applies its objects (spec 20 §12).
        wait: The name of the task that waits until it is ready; empty if `deploy` does.
        after: Names of the tasks that come before `deploy`.
        absent: Returns why a Garden does not have it, or None if it does. What is absent is
            removed.
        credentials: Returns what to generate before it is rendered.
        render: Returns its objects. Pure: equal landscapes give equal objects.
        removable: What to remove if it is absent. By default the ManagedResource of its name.
        is_setup: Whether it belongs to the flow that prepares the runtime cluster (spec 20 §11).
        waits: Whether anything waits until it is ready.
        limit: Seconds until waiting for it fails.
    """

    name: str
    deploy: str
    render: Callable[[Landscape], Rendered]
    wait: str = ""
    after: tuple[str, ...] = ()
    absent: Callable[[Landscape], str | None] = always
    credentials: Callable[[Landscape], Iterable[Credential]] = no_credentials
    removable: Removable | None = None
    is_setup: bool = False
    waits: bool = True
    limit: float = 300.0

    def objects(self, landscape: Landscape) -> Rendered:
        """Return its objects as they are applied."""
        return self.render(landscape).annotated()

    @property
    def leftovers(self) -> Removable:
        """What to remove if it is absent."""
        return self.removable or Removable(managed=(Key(NAMESPACE, self.name),))

    @property
    def ready(self) -> str:
        """The name of the task after which it can be used."""
        return self.wait or self.deploy


def _annotated(obj: JsonObject) -> JsonObject:
    return annotate(obj) if references(obj) else obj
