"""Webhooks that change objects of control planes, or inside of Shoots (spec 40 §6.5, §7).

The changes are given as data: kinds, names, and a function for each.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal, NamedTuple

from pergola.admission.registration import Registration, Rule
from pergola.admission.review import GroupVersionResource, Handler, Request
from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject, name_of
from pergola.extensions.webhooks.declare import selects, webhook_name
from pergola.extensions.webhooks.mutation import Mutate, mutating
from pergola.extensions.webhooks.network_mutator import CLOUD_LABEL, NETWORK_LABEL

SEED_LABEL: Final = "seed.gardener.cloud/provider"
KUBE_SYSTEM: Final[JsonObject] = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
"""A selector for the namespace `kube-system`, by the label that API servers set.

The original selects `gardener.cloud/purpose`, which a new Shoot lacks at first."""


class ByCaller(NamedTuple):
    """A mutator that depends on the Shoot that asks.

    Attributes:
        of: returns it, given the address of the API server.
    """

    of: Callable[[str], Mutate]


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectMutation:
    """The mutator of a kind.

    Attributes:
        prefixes: how their names start.
        names: their names; all if there are no prefixes either.
    """

    resource: GroupVersionResource
    mutate: Mutate | ByCaller
    prefixes: tuple[str, ...] = field(default=())
    names: tuple[str, ...] = field(default=())

    def concerns(self, request: Request, obj: JsonObject) -> bool:
        """Return whether it applies to the object of a request."""
        name = name_of(obj) or request.name
        if request.resource != self.resource:
            return False
        is_any = not (self.prefixes or self.names)
        return is_any or name in self.names or name.startswith(self.prefixes)

    def mutator(self, request: Request) -> Mutate:
        """Return the mutator for a request."""
        return self.mutate.of(request.peer) if isinstance(self.mutate, ByCaller) else self.mutate


def control_plane_mutator(
    component: str,
    mutations: Sequence[ObjectMutation],
    *,
    purpose: str = "controlplane",
    cloud: str = "",
    network: str = "",
    seed: str = "",
    object_selector: JsonObject | None = None,
    path: str = "",
) -> Webhook:
    """Return a provider's webhook on objects in the seed.

    Args:
        component: such as `provider-azure`.
        purpose: the first part of its name, and its default path.
        cloud: only namespaces of Shoots on this infrastructure.
        network: only namespaces of Shoots with this network plugin.
        seed: only namespaces of a seed on this infrastructure.
    """
    labels = ((CLOUD_LABEL, cloud), (NETWORK_LABEL, network), (SEED_LABEL, seed))
    expressions = [selects(label, [value]) for label, value in labels if value]
    registration = _registration(
        webhook_name(purpose, component),
        path or f"/{purpose}",
        mutations,
        namespace_selector={"matchExpressions": expressions} if expressions else {},
        object_selector=object_selector,
    )
    return Webhook(registration=registration, handler=_handler(mutations))


def shoot_objects_mutator(
    component: str,
    purpose: str,
    mutations: Sequence[ObjectMutation],
    *,
    namespace_selector: JsonObject = KUBE_SYSTEM,
    object_selector: JsonObject | None = None,
    failure_policy: Literal["Fail", "Ignore"] = "Ignore",
    path: str = "",
) -> Webhook:
    """Return a webhook on objects inside Shoots; `shoot_configurations` registers it.

    Args:
        purpose: such as `node-local-dns`: the first part of its name, and its default path.
        failure_policy: `Fail` only for objects that must not exist unchanged, since while the seed
            is down they cannot be created.
    """
    registration = _registration(
        webhook_name(purpose, component),
        path or f"/{purpose}",
        mutations,
        namespace_selector=namespace_selector,
        object_selector=object_selector,
        failure_policy=failure_policy,
    )
    return Webhook(registration=registration, handler=_handler(mutations), of_shoots=True)


def _handler(mutations: Sequence[ObjectMutation]) -> Handler:
    def choose(request: Request, obj: JsonObject) -> Iterator[Mutate]:
        return (m.mutator(request) for m in mutations if m.concerns(request, obj))

    return mutating(choose)


def _registration(
    name: str,
    path: str,
    mutations: Sequence[ObjectMutation],
    *,
    namespace_selector: JsonObject,
    object_selector: JsonObject | None = None,
    failure_policy: Literal["Fail", "Ignore"] = "Fail",
) -> Registration:
    return Registration(
        name=name,
        path=path,
        kind="mutating",
        rules=tuple(_rules(mutations)),
        namespace_selector=namespace_selector,
        object_selector=object_selector or {},
        failure_policy=failure_policy,
    )


def _rules(mutations: Sequence[ObjectMutation]) -> Iterator[Rule]:
    for resource in dict.fromkeys(mutation.resource for mutation in mutations):
        yield Rule(
            ("CREATE", "UPDATE"), (resource.group,), (resource.version,), (resource.resource,)
        )
