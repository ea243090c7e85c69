"""The callers of a Service, and the reason for each: pure functions (spec 11 §4.3, §4.7, §4.8)."""

from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Final, Literal, NamedTuple, TypeAlias

import orjson

from pergola.api.objects import JsonObject
from pergola.controllers.network_policy.annotations import PolicyPort
from pergola.controllers.network_policy.names import (
    ALLOWED,
    FROM_WORLD,
    NAMESPACE_ALIAS,
    NAMESPACE_SELECTORS,
    POD_SELECTOR,
    LabelKey,
    caller_label,
    port_id,
)
from pergola.controllers.network_policy.service import ServiceView

Kind: TypeAlias = Literal["port", "alias", "world", "ingress", "istio"]
Labels: TypeAlias = tuple[tuple[str, str], ...]
_SPEC_PORTS: Final = "spec.ports"


class Intent(NamedTuple):
    """A set of callers that may reach ports of a Service.

    Attributes:
        peer: the namespace of the callers; empty for the world.
        ports: exactly one, except for the world: any number, and none means all.
        because: the annotation, field or object that requests it.
        label: the label key that callers need; empty if they need none.
        full_label: the label key before it was shortened.
        alias: the name of the alias, for kind `alias`.
        callers: the label selector of the callers' pods; empty for the world.
    """

    kind: Kind
    peer: str
    ports: tuple[PolicyPort, ...]
    because: str
    label: str = ""
    full_label: str = ""
    alias: str = ""
    callers: JsonObject = {}  # noqa: RUF012 - never changed

    @property
    def port(self) -> int | str | None:
        """The first port; None means all."""
        return self.ports[0].port if self.ports else None

    @property
    def protocol(self) -> str:
        """The protocol of the first port; empty for any."""
        return self.ports[0].protocol if self.ports else ""


class IngressController(NamedTuple):
    """The pods that must reach the backends of Ingresses."""

    namespace: str
    pod_selector: JsonObject


class Backend(NamedTuple):
    """A port of a Service, by name or number, to which an object sends traffic.

    A VirtualService may omit the port (None) if the Service has only one.
    """

    port: int | str | None
    because: str


class GatewayBackend(NamedTuple):
    """A port of a Service to which an Istio Gateway sends traffic.

    Attributes:
        namespace: a namespace with pods of the Gateway.
        labels: the labels of these pods, sorted.
    """

    port: int | str | None
    because: str
    namespace: str
    labels: Labels


@dataclass(frozen=True, slots=True)
class Environment:
    """The inputs of the decision besides the Service and its peers.

    Attributes:
        has_caller: whether a namespace has a pod with a label key whose value is `allowed`;
            labelled callers without such a pod get no policies. None disables this condition.
        ingress_controller: None if there is none, or if its namespace is being deleted.
        ingress_backends: the backends of Ingresses that name the Service.
        gateway_backends: the backends of VirtualServices, for each namespace with pods of a
            Gateway.
    """

    has_caller: Callable[[str, str], bool] | None = None
    ingress_controller: IngressController | None = None
    ingress_backends: Sequence[Backend] = ()
    gateway_backends: Sequence[GatewayBackend] = ()


ALONE: Final = Environment()


def intents(
    service: ServiceView, peers: Sequence[str], environment: Environment = ALONE
) -> list[Intent]:
    """Return who may talk to a Service, without duplicates.

    Args:
        peers: the namespaces of labelled callers, the Service's own first; empty if its namespace
            is not handled or is being deleted.
    """
    if not peers or not service.is_selecting or POD_SELECTOR in service.broken:
        return []
    if NAMESPACE_ALIAS in service.broken:
        peers = [service.key.namespace]  # the labels of callers in other namespaces are unknown
    labelled = [*_port_intents(service, peers), *_alias_intents(service, peers)]
    if has_caller := environment.has_caller:
        labelled = [intent for intent in labelled if has_caller(intent.peer, intent.label)]
    found = [
        *labelled,
        *_world_intents(service),
        *_ingress_intents(service, environment),
        *_gateway_intents(service, environment),
    ]
    return _once(found)


def own_labels(service: ServiceView) -> Iterator[LabelKey]:
    """Yield the labels of callers in the Service's own namespace."""
    for base in _bases(service):
        yield caller_label(base)


def peer_labels(service: ServiceView) -> Iterator[LabelKey]:
    """Yield the labels of callers in other namespaces."""
    for base in _bases(service):
        yield caller_label(service.caller_namespace, base)


def target_ports(service: ServiceView) -> list[PolicyPort]:
    """Return the distinct container ports of a Service."""
    return list(dict.fromkeys(PolicyPort(p.protocol, p.target) for p in service.ports))


def id_of(service: ServiceView, port: PolicyPort) -> str:
    """Return the id of a Service's port in names of policies and labels: `web-tcp-8080`."""
    return port_id(service.key.name, port.protocol, "" if port.port is None else port.port)


def _bases(service: ServiceView) -> Iterator[str]:
    """Yield the part of each label after the namespace: ports and aliases."""
    for port in target_ports(service):
        yield id_of(service, port)
    for alias in service.aliases:
        if alias.ports:
            yield alias.name


def _port_intents(service: ServiceView, peers: Sequence[str]) -> Iterator[Intent]:
    for port in target_ports(service):
        base = id_of(service, port)
        for peer in peers:
            away = peer != service.key.namespace
            because = NAMESPACE_SELECTORS if away else _SPEC_PORTS
            yield _labelled("port", service, peer, base, (port,), because)


def _alias_intents(service: ServiceView, peers: Sequence[str]) -> Iterator[Intent]:
    for alias in service.aliases:
        for port in alias.ports:
            for peer in peers:
                intent = _labelled("alias", service, peer, alias.name, (port,), alias.annotation)
                yield intent._replace(alias=alias.name)


def _labelled(
    kind: Kind,
    service: ServiceView,
    peer: str,
    base: str,
    ports: tuple[PolicyPort, ...],
    because: str,
) -> Intent:
    away = peer != service.key.namespace
    label = caller_label(service.caller_namespace, base) if away else caller_label(base)
    callers: JsonObject = {"matchLabels": {label.key: ALLOWED}}
    return Intent(kind, peer, ports, because, label.key, label.full, callers=callers)


def _world_intents(service: ServiceView) -> Iterator[Intent]:
    if service.from_world is not None:
        yield Intent("world", "", service.from_world, FROM_WORLD)


def _ingress_intents(service: ServiceView, environment: Environment) -> Iterator[Intent]:
    controller = environment.ingress_controller
    if controller is None:
        return
    for backend in environment.ingress_backends:
        for port in _translated(service, backend.port):
            yield Intent(
                "ingress",
                controller.namespace,
                (port,),
                backend.because,
                callers=controller.pod_selector,
            )


def _gateway_intents(service: ServiceView, environment: Environment) -> Iterator[Intent]:
    for backend in environment.gateway_backends:
        callers: JsonObject = {"matchLabels": dict(backend.labels)}
        for port in _translated(service, backend.port):
            yield Intent("istio", backend.namespace, (port,), backend.because, callers=callers)


def _translated(service: ServiceView, backend: int | str | None) -> list[PolicyPort]:
    """Return the container ports behind a port of the Service; none for an empty name."""
    if backend is None:
        found = [*service.ports] if len(service.ports) == 1 else []
    elif isinstance(backend, str):
        found = [port for port in service.ports if backend and port.name == backend]
    else:
        found = [port for port in service.ports if port.number == backend]
    return [PolicyPort(port.protocol, port.target) for port in found]


def _once(found: Iterable[Intent]) -> list[Intent]:
    kept: dict[tuple[Kind, str, str, str, tuple[PolicyPort, ...], bytes], Intent] = {}
    for intent in found:
        callers = b"" if intent.label else canonical(intent.callers)
        identity = (intent.kind, intent.peer, intent.alias, intent.label, intent.ports, callers)
        kept.setdefault(identity, intent)
    return list(kept.values())


def canonical(value: JsonObject) -> bytes:
    """Encode a value, independently of the order of its keys."""
    return orjson.dumps(value, option=orjson.OPT_SORT_KEYS)
