"""What the controller watches, and which source namespaces an event is about."""

from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import DESTINATION_RULE, ENVOY_FILTER, NAMESPACE, SERVICE
from pergola.api.objects import Key
from pergola.kube.client import Client
from pergola.resource_manager.controllers.istio_cluster_configuration.desired import source_of
from pergola.resource_manager.controllers.istio_cluster_configuration.seen import (
    MANAGED_BY,
    MANAGED_BY_VALUE,
    SeenFilter,
    SeenNamespace,
    SeenRule,
    SeenService,
    keep_filter,
    keep_namespace,
    keep_rule,
    keep_service,
)
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.caching.index import Index
from pergola.runtime.controlling.queue import Queue

_INGRESS: Final = "ingress"


@dataclass(frozen=True, slots=True)
class Watches:
    """What is watched, and how it is looked up. Keys of source namespaces have only a name."""

    rules: Cache[SeenRule]
    services: Cache[SeenService]
    namespaces: Cache[SeenNamespace]
    filters: Cache[SeenFilter]
    rules_by_namespace: Index[SeenRule, str]
    rules_by_service: Index[SeenRule, Key]
    filters_by_source: Index[SeenFilter, str]
    ingress_namespaces: Index[SeenNamespace, str]

    @classmethod
    def of(cls, client: Client) -> "Watches":
        """The caches, which fill when they run."""
        rules = Cache(client, DESTINATION_RULE, keep_rule)
        labels = f"{MANAGED_BY}={MANAGED_BY_VALUE}"
        filters = Cache(client, ENVOY_FILTER, keep_filter, labels=labels)
        namespaces = Cache(client, NAMESPACE, keep_namespace, metadata_only=True)
        return cls(
            rules=rules,
            services=Cache(client, SERVICE, keep_service),
            namespaces=namespaces,
            filters=filters,
            rules_by_namespace=Index(rules, lambda key, _: [key.namespace]),
            rules_by_service=Index(rules, lambda _, rule: [rule.service] if rule.service else []),
            filters_by_source=Index(filters, _source),
            ingress_namespaces=Index(
                namespaces, lambda _, seen: [_INGRESS] if seen.is_ingress else []
            ),
        )

    def rules_of(self, namespace: str) -> dict[str, SeenRule]:
        """The DestinationRules of a namespace, by name."""
        found = ((k.name, self.rules.get(k)) for k in self.rules_by_namespace.keys(namespace))
        return {name: rule for name, rule in found if rule is not None}

    def services_of(self, rules: dict[str, SeenRule]) -> dict[Key, SeenService]:
        """The Services that rules name, as far as there are any."""
        keys = {rule.service for rule in rules.values() if rule.service is not None}
        found = ((key, self.services.get(key)) for key in keys)
        return {key: service for key, service in found if service is not None}

    def filters_of(self, source: str) -> dict[str, SeenFilter]:
        """The EnvoyFilters of a source namespace, by the namespace that they are in."""
        found = ((k.namespace, self.filters.get(k)) for k in self.filters_by_source.keys(source))
        return {namespace: seen for namespace, seen in found if seen is not None}

    def namespaces_for(self, source: str) -> dict[str, SeenNamespace]:
        """A source namespace, if it is there, and all ingress namespaces."""
        names = [Key("", source), *self.ingress_namespaces.keys(_INGRESS)]
        found = ((key.name, self.namespaces.get(key)) for key in names)
        return {name: seen for name, seen in found if seen is not None}


@dataclass(frozen=True, slots=True)
class Wakes:
    """Which events want a run for which source namespaces."""

    watches: Watches
    queue: Queue[str]

    def subscribe(self) -> None:
        """Listens from now on."""
        self.watches.rules.subscribe(self.on_rule)
        self.watches.services.subscribe(self.on_service)
        self.watches.namespaces.subscribe(self.on_namespace)
        self.watches.filters.subscribe(self.on_filter)

    def on_rule(self, change: Change[SeenRule]) -> None:
        """The namespace of a DestinationRule."""
        if change.old != change.new:
            self.queue.add(change.key.namespace)

    def on_service(self, change: Change[SeenService]) -> None:
        """The namespaces of the DestinationRules that name a Service."""
        if change.old != change.new:
            for rule in self.watches.rules_by_service.keys(change.key):
                self.queue.add(rule.namespace)

    def on_namespace(self, change: Change[SeenNamespace]) -> None:
        """A source namespace itself; all of them for one with ingress gateways."""
        if change.old == change.new:
            return
        self.queue.add(change.key.name)
        if any(seen is not None and seen.is_ingress for seen in (change.old, change.new)):
            for source in self.watches.rules_by_namespace.values():
                self.queue.add(source)

    def on_filter(self, change: Change[SeenFilter]) -> None:
        """The source namespace of an EnvoyFilter, which may have been edited by hand."""
        if change.old != change.new and (source := source_of(change.key.name)):
            self.queue.add(source)


def _source(key: Key, _: SeenFilter) -> list[str]:
    source = source_of(key.name)
    return [source] if source else []
