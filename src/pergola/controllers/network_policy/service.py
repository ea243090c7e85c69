"""The facts about a Service that its NetworkPolicies depend on."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, NamedTuple

from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    deletion_timestamp_of,
    map_at,
    maps_at,
    uid_of,
)
from pergola.controllers.network_policy.annotations import (
    TCP,
    Malformed,
    PolicyPort,
    check_alias,
    check_namespace_alias,
    merged,
    parse_alias_ports,
    parse_namespace_selectors,
    parse_pod_selector,
    parse_world_ports,
    port_of,
)
from pergola.controllers.network_policy.names import (
    FROM_WORLD,
    LEGACY_ALIAS,
    LEGACY_PORTS,
    NAMESPACE_ALIAS,
    NAMESPACE_SELECTORS,
    POD_SELECTOR,
    PREFIX,
    alias_of,
)

_EXTERNAL_NAME: Final = "ExternalName"


class ServicePort(NamedTuple):
    """A port of a Service; `target` is the container's port, by number or name."""

    name: str
    number: int
    protocol: str
    target: int | str


class Alias(NamedTuple):
    """The ports that an alias opens to its callers, and the annotation behind it."""

    name: str
    ports: tuple[PolicyPort, ...]
    annotation: str


@dataclass(frozen=True, slots=True)
class ServiceView:
    """The facts about a Service that its NetworkPolicies depend on.

    Attributes:
        selector: `spec.selector`; empty for a Service without pods.
        pod_selector: the label selector of the pods in policies.
        namespace_alias: replaces the namespace in the labels of callers elsewhere; may be empty.
        from_world: the ports that are open to the world, all if empty; None if the annotation is
            absent or broken.
        broken: the annotations that are at least partly malformed.
        problems: one sentence each, starting with the annotation.
    """

    key: Key
    uid: str
    deleting: bool
    selector: Mapping[str, str]
    pod_selector: JsonObject
    ports: tuple[ServicePort, ...]
    namespace_selectors: tuple[JsonObject, ...] = ()
    namespace_alias: str | None = None
    aliases: tuple[Alias, ...] = ()
    from_world: tuple[PolicyPort, ...] | None = None
    broken: frozenset[str] = frozenset()
    problems: tuple[str, ...] = ()

    @property
    def is_selecting(self) -> bool:
        """Whether the Service selects pods and is not being deleted."""
        return bool(self.selector) and not self.deleting

    @property
    def caller_namespace(self) -> str:
        """The name of its namespace in the labels of callers in other namespaces."""
        return self.key.namespace if self.namespace_alias is None else self.namespace_alias


def read_service(obj: JsonObject) -> ServiceView:
    """Return the facts about a Service; malformed parts are reported, and the rest is used."""
    spec = map_at(obj, "spec")
    annotations = {k: v for k, v in annotations_of(obj).items() if k.startswith(PREFIX)}
    external = spec.get("type") == _EXTERNAL_NAME
    selector: dict[str, str] = {} if external else map_at(spec, "selector")
    reading = _Reading(annotations)
    return ServiceView(
        key=Key.of(obj),
        uid=uid_of(obj),
        deleting=deletion_timestamp_of(obj) is not None,
        selector=selector,
        pod_selector=reading.pod_selector() or {"matchLabels": selector},
        ports=_ports(spec),
        namespace_selectors=reading.namespace_selectors(),
        namespace_alias=reading.namespace_alias(),
        aliases=reading.aliases(),
        from_world=reading.from_world(),
        broken=frozenset(reading.broken),
        problems=tuple(reading.problems),
    )


class _Reading:
    """A reader of one Service's annotations that collects their problems."""

    def __init__(self, annotations: Mapping[str, str]) -> None:
        self._annotations = annotations
        self.broken: set[str] = set()
        self.problems: list[str] = []

    def pod_selector(self) -> JsonObject | None:
        text = self._annotations.get(POD_SELECTOR)
        try:
            return parse_pod_selector(text) if text is not None else None
        except Malformed as error:
            self._wrong(POD_SELECTOR, str(error))
            return None

    def namespace_selectors(self) -> tuple[JsonObject, ...]:
        text = self._annotations.get(NAMESPACE_SELECTORS)
        try:
            selectors, problems = parse_namespace_selectors(text) if text is not None else ((), ())
        except Malformed as error:
            selectors, problems = (), (str(error),)
        self._wrong(NAMESPACE_SELECTORS, *problems)
        return selectors

    def namespace_alias(self) -> str | None:
        alias = self._annotations.get(NAMESPACE_ALIAS)
        try:
            if alias is not None:
                check_namespace_alias(alias)
        except Malformed as error:
            self._wrong(NAMESPACE_ALIAS, str(error))
            return None
        return alias

    def from_world(self) -> tuple[PolicyPort, ...] | None:
        text = self._annotations.get(FROM_WORLD)
        try:
            return parse_world_ports(text) if text is not None else None
        except Malformed as error:
            self._wrong(FROM_WORLD, str(error))
            return None

    def aliases(self) -> tuple[Alias, ...]:
        found: dict[str, Alias] = {}
        for annotation, text in sorted(self._annotations.items()):
            alias = alias_of(annotation)
            if alias is None:
                continue
            ports = self._alias_ports(annotation, text)
            self._open(found, alias, ports, annotation, annotation)
            if annotation == LEGACY_PORTS and LEGACY_ALIAS in self._annotations:
                legacy = self._annotations[LEGACY_ALIAS]
                self._open(found, legacy, ports, annotation, LEGACY_ALIAS)
        return tuple(found.values())

    def _alias_ports(self, annotation: str, text: str) -> tuple[PolicyPort, ...]:
        try:
            ports, problems = parse_alias_ports(text)
        except Malformed as error:
            ports, problems = (), (str(error),)
        self._wrong(annotation, *problems)
        return ports

    def _open(
        self,
        found: dict[str, Alias],
        alias: str,
        ports: tuple[PolicyPort, ...],
        annotation: str,
        named_by: str,
    ) -> None:
        try:
            check_alias(alias)
        except Malformed as error:
            self._wrong(named_by, str(error))
            return
        known = found.get(alias)
        if known is not None:
            ports = merged([*known.ports, *ports])
            annotation = known.annotation if known.annotation in self.broken else annotation
        found[alias] = Alias(alias, ports, annotation)

    def _wrong(self, annotation: str, *sentences: str) -> None:
        for sentence in sentences:
            self.broken.add(annotation)
            self.problems.append(f"annotation {annotation}: {sentence}")


def _ports(spec: JsonObject) -> tuple[ServicePort, ...]:
    found = []
    for port in maps_at(spec, "ports"):
        number = port.get("port")
        # The API server defaults the target to the port.
        target = port_of(port.get("targetPort")) or port_of(number)
        if target and isinstance(number, int):
            protocol = port.get("protocol") or TCP
            found.append(ServicePort(port.get("name") or "", number, protocol, target))
    return tuple(found)
