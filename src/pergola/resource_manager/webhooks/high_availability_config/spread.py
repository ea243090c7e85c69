"""Spreading pods over nodes and zones with topology spread constraints (spec 12 §3.5)."""

from dataclasses import dataclass
from typing import Final

from pergola.api.objects import JsonObject
from pergola.resource_manager.webhooks.decoding import map_in, maps_in
from pergola.resource_manager.webhooks.facts.high_availability import (
    NamespaceSettings,
    Profile,
)
from pergola.resource_manager.webhooks.high_availability_config.affinity import ZONE_KEY

HOST_KEY: Final = "kubernetes.io/hostname"
TEMPLATE_HASH: Final = "pod-template-hash"
STRICT: Final = "DoNotSchedule"
LAX: Final = "ScheduleAnyway"
PATH: Final = ("spec", "template", "spec", "topologySpreadConstraints")
_HOST_DOMAINS: Final = 3


@dataclass(frozen=True, slots=True)
class Spread:
    """The inputs for the spreading of a workload's pods.

    Attributes:
        replicas: the new number of replicas.
        most: the maximum if the workload is autoscaled, else the same number.
        host_spread: whether the object requests spreading over hosts.
        many_nodes: whether the cluster has more than one node.
    """

    namespace: NamespaceSettings
    profile: Profile
    replicas: int
    most: int
    host_spread: bool = False
    many_nodes: bool = True

    @property
    def host_is_strict(self) -> bool:
        """Whether two pods must not run on the same node."""
        if not self.profile.is_modern:
            return bool(self.namespace.tolerance)
        return self.many_nodes and (bool(self.namespace.tolerance) or self.host_spread)

    @property
    def spreads_zones(self) -> bool:
        """Whether there is a constraint for zones."""
        return len(self.namespace.zones) > 1 and self.namespace.tolerance in (None, "zone")


def spread_constraints(obj: JsonObject, spread: Spread) -> list[JsonObject]:
    """Return all constraints: existing ones in order, then ours for hosts and zones.

    With one replica, nothing is added or removed.
    """
    present = maps_in(obj, *PATH)
    if spread.replicas > 1:
        others = [c for c in present if c.get("topologyKey") not in (HOST_KEY, ZONE_KEY)]
        selector = _selector(obj)
        present = [*others, _hosts(spread, selector)]
        if spread.spreads_zones:
            present.append(_zones(spread, selector))
    if spread.profile.is_modern and obj.get("kind") == "Deployment":
        return [_by_template(constraint) for constraint in present]
    return present


def _hosts(spread: Spread, selector: JsonObject) -> JsonObject:
    constraint: JsonObject = {
        "topologyKey": HOST_KEY,
        "maxSkew": 1,
        "whenUnsatisfiable": STRICT if spread.host_is_strict else LAX,
        "labelSelector": selector,
    }
    if spread.host_is_strict and spread.profile.is_modern:
        constraint["minDomains"] = min(_HOST_DOMAINS, spread.most)
    return constraint


def _zones(spread: Spread, selector: JsonObject) -> JsonObject:
    count = len(spread.namespace.zones)
    is_wide = spread.profile.widens_zone_skew and spread.most >= 2 * count
    return {
        "topologyKey": ZONE_KEY,
        "minDomains": min(count, spread.most),
        "maxSkew": 2 if is_wide else 1,
        "whenUnsatisfiable": STRICT,
        "labelSelector": selector,
    }


def _selector(obj: JsonObject) -> JsonObject:
    """Return the selector of the counted pods; a StatefulSet's own survives new labels (D5)."""
    if obj.get("kind") == "StatefulSet":
        return map_in(obj, "spec", "selector")
    return {"matchLabels": dict(map_in(obj, "spec", "template", "metadata", "labels"))}


def _by_template(constraint: JsonObject) -> JsonObject:
    """Return fields that count only the pods of one ReplicaSet, if supported (Beyond 5)."""
    selector = map_in(constraint, "labelSelector")
    keys = constraint.get("matchLabelKeys")
    present = keys if isinstance(keys, list) else []
    expressions = maps_in(selector, "matchExpressions")
    selects_already = TEMPLATE_HASH in map_in(selector, "matchLabels") or any(
        expression.get("key") == TEMPLATE_HASH for expression in expressions
    )
    counts_all = constraint.get("labelSelector") is None
    if counts_all or selects_already or TEMPLATE_HASH in present:
        return constraint
    return {**constraint, "matchLabelKeys": [*present, TEMPLATE_HASH]}
