"""Tunes the upstream connections of Istio ingress gateways by EnvoyFilters (spec 11 §7.3).

`seen` is what is kept of DestinationRules, Services, Namespaces and EnvoyFilters; `desired` renders
the EnvoyFilters of a namespace; `watches` says what wakes whom; `controller` writes.
"""

from pergola.resource_manager.controllers.istio_cluster_configuration.controller import (
    Settings,
    istio_cluster_configuration,
)

__all__ = ["Settings", "istio_cluster_configuration"]
