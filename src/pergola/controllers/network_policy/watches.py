"""The controller's caches, and lookups in them."""

from collections.abc import Collection, Iterable, Iterator
from dataclasses import dataclass

from pergola.api.kinds import INGRESS, NAMESPACE, NETWORK_POLICY, POD, SERVICE
from pergola.api.objects import JsonObject, Key
from pergola.controllers.network_policy.callers import Callers, Place
from pergola.controllers.network_policy.intents import (
    Backend,
    Environment,
    IngressController,
    Intent,
)
from pergola.controllers.network_policy.istio import Istio
from pergola.controllers.network_policy.names import SERVICE_NAME, SERVICE_NAMESPACE
from pergola.controllers.network_policy.peers import Peers
from pergola.controllers.network_policy.seen import (
    Destination,
    SeenNamespace,
    SeenPolicy,
    keep_ingress,
    keep_namespace,
    keep_pod,
    keep_policy,
)
from pergola.controllers.network_policy.service import ServiceView, read_service
from pergola.kube.client import Client
from pergola.kube.selectors import matches
from pergola.runtime.caching.cache import Cache
from pergola.runtime.caching.caches import Caches
from pergola.runtime.caching.index import Index
from pergola.runtime.controlling.unit import Watching


@dataclass(frozen=True, slots=True)
class Watches:
    """The caches and lookups; None for those that the configuration disables."""

    services: Caches[ServiceView]
    namespaces: Cache[SeenNamespace]
    policies: Caches[SeenPolicy]
    callers: Callers | None
    ingresses: Caches[frozenset[Destination]] | None
    istio: Istio
    peers: Peers
    services_by_namespace: Index[ServiceView, str]
    policies_by_owner: Index[SeenPolicy, Key]
    ingresses_by_service: Index[frozenset[Destination], Key] | None
    ingress_controller: IngressController | None
    selectors: tuple[JsonObject, ...]

    @classmethod
    def of(
        cls,
        client: Client,
        *,
        namespaces: Collection[str],
        selectors: tuple[JsonObject, ...],
        ingress_controller: IngressController | None,
        only_for_matching_pods: bool,
        grace: float = 0.0,
    ) -> "Watches":
        """Create the caches; they fill once they run."""
        services = Caches(client, SERVICE, read_service, namespaces=namespaces)
        seen = Cache(client, NAMESPACE, keep_namespace, metadata_only=True)
        labels = f"{SERVICE_NAME},{SERVICE_NAMESPACE}"
        policies = Caches(client, NETWORK_POLICY, keep_policy, namespaces=namespaces, labels=labels)
        pods = Caches(client, POD, keep_pod, namespaces=namespaces, metadata_only=True)
        ingresses = (
            Caches(client, INGRESS, keep_ingress, namespaces=namespaces)
            if ingress_controller is not None
            else None
        )
        return cls(
            services=services,
            namespaces=seen,
            policies=policies,
            callers=Callers(pods, services, grace) if only_for_matching_pods else None,
            ingresses=ingresses,
            istio=Istio(client, namespaces),
            peers=Peers(services, seen),
            services_by_namespace=Index(services, lambda key, _: [key.namespace]),
            policies_by_owner=Index(
                policies, lambda _, policy: [policy.owner] if policy.owner else []
            ),
            ingresses_by_service=Index(ingresses, _services_of) if ingresses is not None else None,
            ingress_controller=ingress_controller,
            selectors=selectors,
        )

    def caches(self) -> Iterator[Watching]:
        """Yield the caches that must be filled before the first decision."""
        yield self.namespaces
        optional = (self.ingresses, self.callers.pods if self.callers else None)
        for caches in (self.services, self.policies, *optional):
            yield from caches or ()
        yield from self.istio.virtual_services
        yield from self.istio.gateways

    def handles(self, namespace: SeenNamespace | None) -> bool:
        """Return whether the configuration selects a namespace; a missing one is unlabelled."""
        labels = namespace.labels if namespace is not None else {}
        return not self.selectors or any(matches(one, labels) for one in self.selectors)

    def is_open(self, name: str) -> bool:
        """Return whether objects can be created in a namespace."""
        namespace = self.namespaces.get(Key("", name))
        return namespace is not None and not namespace.terminating

    def policies_of(self, service: Key) -> dict[Key, SeenPolicy]:
        """Return the policies whose labels name a Service."""
        found = ((key, self.policies.get(key)) for key in self.policies_by_owner.keys(service))
        return {key: policy for key, policy in found if policy is not None}

    def until_unneeded(self, intended: Iterable[Intent]) -> float | None:
        """Return the seconds until the first intent ends whose last pod disappeared, if any."""
        if self.callers is None:
            return None
        places = [Place(one.peer, one.label) for one in intended if one.label]
        found = (self.callers.remaining(p) for p in places)
        return min((seconds for seconds in found if seconds is not None), default=None)

    async def environment(self, service: Key) -> Environment:
        """Return the inputs of the decision besides the Service and its peers."""
        backends = await self.istio.backends(service)
        controller = self.ingress_controller
        return Environment(
            has_caller=self.callers.has if self.callers else None,
            ingress_controller=controller
            if controller and self.is_open(controller.namespace)
            else None,
            ingress_backends=self._ingress_backends(service),
            gateway_backends=[b for b in backends if self.is_open(b.namespace)],
        )

    def _ingress_backends(self, service: Key) -> list[Backend]:
        if self.ingresses is None or self.ingresses_by_service is None:
            return []
        return [
            Backend(destination.port, f"Ingress {key.name}")
            for key in sorted(self.ingresses_by_service.keys(service))
            for destination in sorted(self.ingresses.get(key) or (), key=str)
            if destination.service == service
        ]


def _services_of(_: Key, destinations: frozenset[Destination]) -> set[Key]:
    return {destination.service for destination in destinations}
