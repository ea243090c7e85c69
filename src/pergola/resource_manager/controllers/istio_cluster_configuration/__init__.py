"""EnvoyFilters that tune the upstream connections of Istio ingress gateways (spec 11 §7.3).

`seen` has the facts about DestinationRules, Services, Namespaces and EnvoyFilters; `desired`
renders the EnvoyFilters of a namespace; `watches` has the caches and triggers; `controller` writes.
"""

from pergola.resource_manager.controllers.istio_cluster_configuration.controller import (
    Settings,
    istio_cluster_configuration,
)

__all__ = ["Settings", "istio_cluster_configuration"]
