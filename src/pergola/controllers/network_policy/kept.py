"""Policies that stay when the annotation that requested them becomes malformed."""

from collections.abc import Iterator

from pergola.api.objects import Key
from pergola.controllers.network_policy.intents import id_of, target_ports
from pergola.controllers.network_policy.names import (
    FROM_INGRESS_CONTROLLER,
    FROM_ISTIO,
    FROM_WORLD,
    NAMESPACE_ALIAS,
    NAMESPACE_SELECTORS,
    POD_SELECTOR,
    alias_base,
    egress_policy,
    world_policy,
)
from pergola.controllers.network_policy.service import ServiceView


def is_kept(service: ServiceView, policy: Key) -> bool:
    """Return whether to keep a policy of a Service although no valid annotation requests it.

    A malformed annotation is reported, and must not cut connections (spec 11 §4.9).
    """
    if not service.broken:
        return False
    return (
        POD_SELECTOR in service.broken
        or (FROM_WORLD in service.broken and policy == world_policy(service.key))
        or any(_is_via(alias, policy.name) for alias in _broken_aliases(service))
        or (_is_cut_from_peers(service) and _is_for_a_peer(service, policy))
    )


def _broken_aliases(service: ServiceView) -> Iterator[str]:
    return (alias.name for alias in service.aliases if alias.annotation in service.broken)


def _is_via(alias: str, name: str) -> bool:
    return name.endswith(f"-via-{alias}") or f"-via-{alias}-from-" in name


def _is_cut_from_peers(service: ServiceView) -> bool:
    """Return whether the peer namespaces, or the labels of their pods, are unknown."""
    return not service.broken.isdisjoint((NAMESPACE_SELECTORS, NAMESPACE_ALIAS))


def _is_for_a_peer(service: ServiceView, policy: Key) -> bool:
    """Return whether a policy is for another namespace and for a port that is still open."""
    if policy.name.endswith((FROM_INGRESS_CONTROLLER, FROM_ISTIO)):
        return False
    if policy.namespace == service.key.namespace:
        return any(policy.name.startswith(f"ingress-to-{base}-from-") for base in _bases(service))
    peer = policy.namespace
    return any(policy == egress_policy(service.key, base, peer) for base in _bases(service))


def _bases(service: ServiceView) -> Iterator[str]:
    for port in target_ports(service):
        yield id_of(service, port)
    for alias in service.aliases:
        for open_port in alias.ports:
            yield alias_base(id_of(service, open_port), alias.name)
