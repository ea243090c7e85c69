"""The caches of the controller, and the source namespaces that an event triggers."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

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
from pergola.runtime.controlling.watches import Watch, changed

_INGRESS: Final = "ingress"


@dataclass(frozen=True, slots=True)
class Watches:
    """The caches and lookups. The keys of source namespaces consist of a name only."""

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
        """Create the caches."""
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
            filters_by_source=Index(filters, lambda key, _: _sources(key)),
            ingress_namespaces=Index(
                namespaces, lambda _, seen: [_INGRESS] if seen.is_ingress else []
            ),
        )

    def rules_of(self, namespace: str) -> dict[str, SeenRule]:
        """Return the DestinationRules of a namespace, by name."""
        found = ((k.name, self.rules.get(k)) for k in self.rules_by_namespace.keys(namespace))
        return {name: rule for name, rule in found if rule is not None}

    def services_of(self, rules: dict[str, SeenRule]) -> dict[Key, SeenService]:
        """Return the existing Services that rules name."""
        keys = {rule.service for rule in rules.values() if rule.service is not None}
        found = ((key, self.services.get(key)) for key in keys)
        return {key: service for key, service in found if service is not None}

    def filters_of(self, source: str) -> dict[str, SeenFilter]:
        """Return the EnvoyFilters of a source namespace, by their own namespace."""
        found = ((k.namespace, self.filters.get(k)) for k in self.filters_by_source.keys(source))
        return {namespace: seen for namespace, seen in found if seen is not None}

    def namespaces_for(self, source: str) -> dict[str, SeenNamespace]:
        """Return a source namespace, if it exists, and all ingress namespaces."""
        names = [Key("", source), *self.ingress_namespaces.keys(_INGRESS)]
        found = ((key.name, self.namespaces.get(key)) for key in names)
        return {name: seen for name, seen in found if seen is not None}


def triggers(watches: Watches) -> list[Watch[Any, str]]:
    """Return the triggers of source namespaces."""

    def of_service(change: Change[SeenService]) -> Iterator[str]:
        """Yield the namespaces of the DestinationRules that name a Service."""
        for rule in watches.rules_by_service.keys(change.key):
            yield rule.namespace

    def of_namespace(change: Change[SeenNamespace]) -> Iterator[str]:
        """Yield the namespace, and all source namespaces if it has ingress gateways."""
        yield change.key.name
        if any(seen is not None and seen.is_ingress for seen in (change.old, change.new)):
            yield from watches.rules_by_namespace.values()

    return [
        Watch(watches.rules, to=lambda change: [change.key.namespace], when=changed),
        Watch(watches.services, to=of_service, when=changed),
        Watch(watches.namespaces, to=of_namespace, when=changed),
        # Someone may have edited an EnvoyFilter.
        Watch(watches.filters, to=lambda change: _sources(change.key), when=changed),
    ]


def _sources(key: Key) -> list[str]:
    """Return the source namespace in an EnvoyFilter's name, if the filter is one of ours."""
    source = source_of(key.name)
    return [source] if source else []
