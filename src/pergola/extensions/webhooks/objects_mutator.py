"""Webhooks that change objects of control planes, or inside of Shoots (spec 40 §6.5, §7).

The changes are given as data: kinds, names, and a function for each.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from typing import Final, Literal

from pergola.admission.registration import Registration, Rule
from pergola.admission.review import GroupVersionResource, Handler, Request
from pergola.admission.webhook import Webhook
from pergola.api.objects import JsonObject, name_of
from pergola.extensions.webhooks.declare import selects, webhook_name
from pergola.extensions.webhooks.mutation import Mutate, mutating
from pergola.extensions.webhooks.network_mutator import CLOUD_LABEL, NETWORK_LABEL

KUBE_SYSTEM: Final[JsonObject] = {"matchLabels": {"kubernetes.io/metadata.name": "kube-system"}}
"""A selector for the namespace `kube-system`, by the label that API servers set.

The original selects `gardener.cloud/purpose`, which a new Shoot lacks at first."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ObjectMutation:
    """The mutator of a kind.

    Attributes:
        prefixes: how their names start; all names if empty.
    """

    resource: GroupVersionResource
    mutate: Mutate
    prefixes: tuple[str, ...] = field(default=())

    def concerns(self, request: Request, obj: JsonObject) -> bool:
        """Return whether it applies to the object of a request."""
        name = name_of(obj) or request.name
        return request.resource == self.resource and (
            not self.prefixes or name.startswith(self.prefixes)
        )


def control_plane_mutator(
    component: str,
    mutations: Sequence[ObjectMutation],
    *,
    cloud: str = "",
    network: str = "",
    path: str = "/controlplane",
) -> Webhook:
    """Return a provider's webhook on objects in the namespaces of its Shoots in the seed.

    Args:
        component: such as `provider-azure`.
        cloud: only Shoots on this infrastructure.
        network: only Shoots with this network plugin.
    """
    labels = ((CLOUD_LABEL, cloud), (NETWORK_LABEL, network))
    expressions = [selects(label, [value]) for label, value in labels if value]
    registration = _registration(
        webhook_name("controlplane", component),
        path,
        mutations,
        namespace_selector={"matchExpressions": expressions},
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
        object_selector=object_selector or {},
        failure_policy=failure_policy,
    )
    return Webhook(registration=registration, handler=_handler(mutations), of_shoots=True)


def _handler(mutations: Sequence[ObjectMutation]) -> Handler:
    def choose(request: Request, obj: JsonObject) -> Iterator[Mutate]:
        return (m.mutate for m in mutations if m.concerns(request, obj))

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
