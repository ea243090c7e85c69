"""A place, and the arguments of its checks."""

from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final, NamedTuple, TypeAlias

from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig

SORTS: Final = ("applied", "mutated", "approved", "refused")
"""The sorts of checks, in the order in which they are counted."""
SYSTEM: Final = "kube-system"
PATIENCE: Final = 45.0
"""Seconds after which a check fails."""


class Side(NamedTuple):
    """A cluster: an administrator's client, and the access for other users."""

    client: Client
    config: ClusterConfig


@dataclass(frozen=True)
class Site:
    """The clusters of a place, in which a resource manager is deployed.

    Attributes:
        place: which one.
        source: where it runs.
        target: which it serves; it may be the source.
    """

    place: "Place"
    source: Side
    target: Side

    @property
    def namespace(self) -> str:
        """The namespace of the target in which checks create objects."""
        return "places" if self.place.is_runtime else SYSTEM


class Check(NamedTuple):
    """A check.

    Attributes:
        sort: one of `SORTS`.
        title: what a resource manager does.
        run: raises an AssertionError unless it does.
    """

    sort: str
    title: str
    run: Callable[[Site], Awaitable[None]]


Checks: TypeAlias = tuple[Check, ...]


@dataclass(frozen=True)
class Place:
    """A place in which the original deploys a resource manager.

    Attributes:
        title: a noun phrase.
        namespace: where it is deployed.
        prefix: of the names of its objects.
        is_runtime: whether it is responsible for the cluster in which it runs.
        has_target: whether it serves another cluster.
        authorizes: whether the target's API server asks it about the requests of node agents.
    """

    name: str
    title: str
    namespace: str
    checks: Checks
    prefix: str = ""
    is_runtime: bool = False
    has_target: bool = False
    authorizes: bool = False

    @property
    def deployment(self) -> str:
        """The name of its Deployment, ServiceAccount and Service."""
        return f"{self.prefix}gardener-resource-manager"

    @property
    def users(self) -> tuple[str, ...]:
        """The users as which it sends requests."""
        own = f"system:serviceaccount:{self.namespace}:{self.deployment}"
        if not self.has_target:
            return (own,)
        target = f"system:serviceaccount:{SYSTEM}:gardener-resource-manager"
        return own, target, "gardener.cloud:system:gardener-resource-manager"
