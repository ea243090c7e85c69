"""Routing of control-plane pods to their API server through the load balancer in the cluster.

In pods that mount the generic kubeconfig, the API server's name resolves to the internal Istio
gateway, and a label allows traffic to it (spec 12 §12).
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final, NamedTuple, TypeAlias

from pergola.admission.draft import Draft
from pergola.admission.registration import Registration
from pergola.admission.review import Request, Verdict, allowed, denied
from pergola.admission.webhook import Webhook, sharing
from pergola.api import marks
from pergola.api.objects import JsonObject, JsonValue, Key
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.controllers.network_policy.names import caller_label, port_id
from pergola.kube.errors import KubeError, NotFound
from pergola.resource_manager.webhooks.decoding import (
    labels_in,
    map_in,
    maps_in,
    text_in,
    texts_in,
)
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.installation import (
    NAMESPACE_NAME,
    Installation,
    none_of,
    selector,
)
from pergola.resource_manager.webhooks.subjects import PODS, refused

NAME: Final = "pod-kube-apiserver-load-balancing.resources.gardener.cloud"
GARDEN_NAME: Final = "pod-virtual-garden-kube-apiserver-load-balancing.resources.gardener.cloud"
PATH: Final = "/webhooks/pod-kube-apiserver-load-balancing"
KUBECONFIG_PREFIX: Final = "generic-token-kubeconfig"
CONFIG_MAP: Final = "istio-internal-load-balancing"
GATEWAY: Final = "istio-ingressgateway-internal"

_ROLE_SHOOT: Final = "shoot"
_GARDEN: Final = "garden"
_ALIASES: Final = ("spec", "hostAliases")
_HEADLESS: Final = "None"
_GATEWAY_PORT: Final = 9443

Read: TypeAlias = Callable[[Key], Awaitable[JsonObject]]
"""Reads an object of a known kind; raises KubeError."""


def registrations(installation: Installation) -> list[Registration]:
    """Return an entry for control planes of shoots and, in a garden, a second one for its own."""
    shoots = _registration(
        NAME, selector(labels={marks.ROLE: _ROLE_SHOOT}), installation.pods(own=True)
    )
    if not installation.garden:
        return [shoots]
    # The garden's own resource manager must be able to start while no webhook is served.
    other = none_of("app", ["gardener-resource-manager"])
    garden = _registration(
        GARDEN_NAME,
        selector(labels={NAMESPACE_NAME: _GARDEN}),
        installation.pods(other, own=True),
    )
    return [shoots, garden]


def _registration(name: str, namespaces: JsonObject, objects: JsonObject) -> Registration:
    return Registration(
        name=name,
        path=PATH,
        kind="mutating",
        rules=(PODS.rule,),
        namespace_selector=namespaces,
        object_selector=objects,
    )


def webhooks(_: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook, with one entry for each configuration."""
    lookups = dependencies.lookups
    handler = PodKubeApiserverLoadBalancing(lookups.config_map, lookups.service)
    return sharing(handler, registrations(dependencies.installation))


class PodKubeApiserverLoadBalancing:
    """The handler.

    Args:
        config_map: read a ConfigMap live.
        service: read a Service live.
    """

    def __init__(self, config_map: Read, service: Read) -> None:
        self._config_map = config_map
        self._service = service

    async def __call__(self, request: Request) -> Verdict:
        """Add missing host aliases and the label."""
        return await PODS.answer_later(request, lambda pod: self._decide(pod, request.namespace))

    async def _decide(self, pod: JsonObject, namespace: str) -> Verdict:
        mounted = _kubeconfig(pod)
        if mounted is None:
            return allowed(because="the pod does not mount the generic kubeconfig")
        who = f"pod-kube-apiserver-load-balancing: the pod mounts Secret {mounted}"
        route = await self._route(who, Key(namespace, CONFIG_MAP))
        return route if isinstance(route, Verdict) else _routed(pod, route)

    async def _route(self, who: str, config: Key) -> "_Route | Verdict":
        """Return the route to the API server, or a verdict if there is none or it is unknown."""
        try:
            data = map_in(await self._config_map(config), "data")
        except NotFound:
            return allowed(because=f"ConfigMap {config} does not exist")
        except KubeError as error:
            return refused(error, f"{who}; cannot read ConfigMap {config}")
        hosts = [name.strip() for name in text_in(data, "hosts").split(",") if name.strip()]
        gateway = Key(text_in(data, "istio-namespace"), GATEWAY)
        for name, value in (("hosts", hosts), ("istio-namespace", gateway.namespace)):
            if not value:
                return denied(f'{who}; the key "{name}" of ConfigMap {config} is missing or empty')
        try:
            service = await self._service(gateway)
        except KubeError as error:
            where = f"ConfigMap {config} names Service {gateway} as the entry to its API server"
            return refused(error, f"{who}; {where}")
        addresses = texts_in(service, "spec", "clusterIPs")
        if _HEADLESS in addresses:
            return denied(f"{who}; Service {gateway} is headless; it must have a cluster IP")
        return _Route(gateway, addresses, hosts)


class _Route(NamedTuple):
    """The names of the API server, with the Service and addresses behind them."""

    gateway: Key
    addresses: Sequence[str]
    hosts: Sequence[str]


def _kubeconfig(pod: JsonObject) -> str | None:
    """Return the Secret of the generic kubeconfig, if the pod mounts it."""
    for index, volume in enumerate(maps_in(pod, "spec", "volumes")):
        names = [text_in(volume, "secret", "secretName")]
        path = ("spec", "volumes", index, "projected", "sources")
        names += [text_in(source, "secret", "name") for source in maps_in(pod, *path)]
        for name in names:
            if name.startswith(KUBECONFIG_PREFIX):
                return name
    return None


def _routed(pod: JsonObject, route: _Route) -> Verdict:
    labels_in(pod)
    draft = Draft(pod)
    because = f"Service {route.gateway} leads to the API server"
    for address in route.addresses:
        _alias(draft, pod, address, route.hosts, because)
    label = caller_label(route.gateway.namespace, port_id(GATEWAY, "TCP", _GATEWAY_PORT)).key
    draft.set(("metadata", "labels", label), "allowed", because)
    return draft.verdict("its aliases and its label are already set")


def _alias(draft: Draft, pod: JsonObject, address: str, hosts: Sequence[str], because: str) -> None:
    """Add host names to an address, keeping those that it has."""
    for index, alias in enumerate(maps_in(pod, *_ALIASES)):
        if alias.get("ip") == address:
            known = texts_in(pod, *_ALIASES, index, "hostnames")
            for host in hosts:
                if host not in known:
                    draft.append((*_ALIASES, index, "hostnames"), host, because)
            return
    names: list[JsonValue] = list(hosts)
    draft.append(_ALIASES, {"ip": address, "hostnames": names}, because)
