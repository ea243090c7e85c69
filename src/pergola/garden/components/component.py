"""The type of a Garden's components: data about one, and a pure function that renders it."""

from collections.abc import Awaitable, Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from enum import Enum
from typing import Protocol, Self, TypeAlias

from pergola.api.objects import GroupVersionKind, Identity, JsonObject, Key
from pergola.bundle import annotate, references
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.credentials import Credential
from pergola.kube.client import Client
from pergola.runtime.clock import Clock


class Target(Enum):
    """The cluster that objects are applied to."""

    RUNTIME = "runtime"
    VIRTUAL = "virtual"


@dataclass(frozen=True, slots=True, kw_only=True)
class Managed:
    """Objects that a resource manager maintains, as one ManagedResource.

    Attributes:
        name: The name of the ManagedResource.
        condition: The Garden's condition that covers it; empty for the default of the target.
        keep: Whether the objects outlive the ManagedResource.
        deployment: The Deployment among the objects whose rollout is awaited, rather than the
            health of all objects.
        follows: Whether it is applied only when the ManagedResource before it is ready.
        labels: Extra labels of the ManagedResource.
    """

    name: str
    objects: tuple[JsonObject, ...]
    target: Target = Target.RUNTIME
    namespace: str = NAMESPACE
    condition: str = ""
    keep: bool = False
    deployment: str = ""
    follows: bool = False
    labels: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Rendered:
    """The objects of a component.

    Attributes:
        managed: Objects that a resource manager maintains.
        direct: Objects that the operator itself applies to the runtime cluster.
    """

    managed: tuple[Managed, ...] = ()
    direct: tuple[JsonObject, ...] = ()

    def annotated(self) -> Self:
        """Return the same objects, with workloads annotated with the objects that they refer to.

        The resource manager's garbage collector keeps the objects that these annotations name.
        """
        managed = [
            replace(each, objects=tuple(map(_annotated, each.objects))) for each in self.managed
        ]
        return replace(self, managed=tuple(managed), direct=tuple(map(_annotated, self.direct)))

    def outline(self) -> Self:
        """Return what is needed to await the objects: their kinds and keys.

        A Garden awaits many components at once, and definitions of kinds are large.
        """
        managed = tuple(replace(each, objects=()) for each in self.managed)
        return replace(self, managed=managed, direct=tuple(map(_outline, self.direct)))


def _outline(obj: JsonObject) -> JsonObject:
    key = Key.of(obj)
    metadata = {"namespace": key.namespace, "name": key.name}
    return {"apiVersion": obj["apiVersion"], "kind": obj["kind"], "metadata": metadata}


@dataclass(frozen=True, slots=True)
class Removable:
    """The objects to remove when a Garden no longer has a component.

    Attributes:
        managed: Its ManagedResources.
        direct: Its objects that the operator applied itself.
    """

    managed: tuple[Key, ...] = ()
    direct: tuple[Identity, ...] = ()


class Clusters(Protocol):
    """The clusters of a Garden, as far as its components learn from them."""

    @property
    def client(self) -> Client:
        """A client of the runtime cluster."""

    @property
    def clock(self) -> Clock:
        """The time."""

    async def virtual_client(self) -> Client:
        """Return a client of the virtual cluster.

        Raises:
            OperatorError: It cannot be reached yet.
        """

    async def wait(
        self,
        gvk: GroupVersionKind,
        key: Key,
        problem_of: Callable[[JsonObject | None], str | None],
        limit: float,
    ) -> JsonObject | None:
        """Return an object of the runtime cluster once it has no problem.

        Args:
            limit: In seconds.

        Raises:
            NotReady: The time is over; the text says what the problem is.
        """

    async def wait_ready(self, rendered: Rendered, limit: float) -> None:
        """Wait until applied objects are healthy and rolled out; raises as `wait` does."""


Learn: TypeAlias = Callable[[Landscape, Clusters], Awaitable[Landscape | None]]
"""Returns a landscape with what one stage of a component needs from the clusters, and only that
component sees; None if the stage has nothing to do."""
Finish: TypeAlias = Callable[[Landscape, Clusters], Awaitable[None]]
"""Does what follows once the objects of a stage are applied, such as a wait."""


def always(landscape: Landscape) -> None:
    """Return None: every Garden has the component."""
    del landscape


def no_credentials(landscape: Landscape) -> Iterable[Credential]:
    """Return no credentials."""
    del landscape
    return ()


async def learn_nothing(landscape: Landscape, clusters: Clusters) -> Landscape:
    """Return the landscape as it is."""
    del clusters
    return landscape


async def finished(landscape: Landscape, clusters: Clusters) -> None:
    """Do nothing."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Stage:
    """One round of the deployment of a component.

    Attributes:
        learn: Reads what rendering needs, and may wait for it.
        credentials: Returns the credentials that the objects need, besides the authorities.
        render: Returns the objects. Pure: equal landscapes yield equal objects.
        finish: Called when the objects are applied.
    """

    render: Callable[[Landscape], Rendered]
    learn: Learn = learn_nothing
    credentials: Callable[[Landscape], Iterable[Credential]] = no_credentials
    finish: Finish = finished


@dataclass(frozen=True, slots=True, kw_only=True)
class Component:
    """One part of a Garden.

    Attributes:
        name: Unique, for commands and messages.
        deploy: The name of the task that applies its objects (spec 20 §12).
        wait: The name of the task that waits until it is ready; empty if `deploy` does.
        after: Names of the tasks that come before `deploy`.
        absent: Returns why a Garden does not have it, or None if it does. Absent components are
            removed.
        learn: See `Stage`, as for the three below: these are its main stage, and for most
            components the only one.
        credentials: See `Stage`.
        render: See `Stage`.
        finish: See `Stage`.
        before: The stages that precede the main one.
        then: The stages that follow it.
        removable: The objects to remove if it is absent; by default its namesake ManagedResource.
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
    learn: Learn = learn_nothing
    credentials: Callable[[Landscape], Iterable[Credential]] = no_credentials
    finish: Finish = finished
    before: tuple[Stage, ...] = ()
    then: tuple[Stage, ...] = ()
    removable: Removable | None = None
    is_setup: bool = False
    waits: bool = True
    limit: float = 300.0

    def objects(self, landscape: Landscape) -> Rendered:
        """Return its objects with the annotations that protect their references."""
        return self.render(landscape).annotated()

    @property
    def stages(self) -> tuple[Stage, ...]:
        """Its stages, in order."""
        main = Stage(
            render=self.render,
            learn=self.learn,
            credentials=self.credentials,
            finish=self.finish,
        )
        return (*self.before, main, *self.then)

    @property
    def leftovers(self) -> Removable:
        """The objects to remove if it is absent."""
        return self.removable or Removable(managed=(Key(NAMESPACE, self.name),))

    @property
    def ready(self) -> str:
        """The name of the task that completes when it can be used."""
        return self.wait or self.deploy


def _annotated(obj: JsonObject) -> JsonObject:
    return annotate(obj) if references(obj) else obj
