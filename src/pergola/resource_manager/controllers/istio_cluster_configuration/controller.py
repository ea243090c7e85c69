"""Writing the EnvoyFilters of a source namespace into the namespaces of ingress gateways."""

from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import ENVOY_FILTER, NAMESPACE
from pergola.api.objects import JsonObject, Key, labels_of, map_at, owner_references_of
from pergola.api.texts import abridged
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, KubeError, NotFound
from pergola.kube.patches import merge_patch
from pergola.resource_manager.controllers.istio_cluster_configuration.desired import (
    envoy_filters,
    filter_name,
)
from pergola.resource_manager.controllers.istio_cluster_configuration.seen import (
    MANAGED_BY,
    SeenFilter,
    digest,
)
from pergola.resource_manager.controllers.istio_cluster_configuration.watches import (
    Watches,
    triggers,
)
from pergola.runtime.controlling.controller import DONE, Outcome, ReconcileError
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.logging import get_logger
from pergola.runtime.metrics import Metrics

log = get_logger("istio-cluster-configuration")

NAME: Final = "istio-cluster-configuration"
_DEADLINE: Final = 180.0


@dataclass(frozen=True, slots=True)
class Settings:
    """Settings of this controller."""

    workers: int = 5


def istio_cluster_configuration(client: Client, settings: Settings, *, metrics: Metrics) -> Unit:
    """Return the controller `istio-cluster-configuration`, for a cluster that is source and target.

    It is idle until the API server serves Istio's kinds.
    """
    watches = Watches.of(client)
    reconciler = IstioClusterConfiguration(client, watches)
    return Controller(
        NAME,
        reconciler.reconcile,
        watches=triggers(watches),
        workers=settings.workers,
        metrics=metrics,
        deadline=_DEADLINE,
    )


class ForeignFilter(ReconcileError):
    """An EnvoyFilter with the name of one of ours belongs to another manager."""


class IstioClusterConfiguration:
    """The reconciler of source namespaces."""

    def __init__(self, client: Client, watches: Watches) -> None:
        self._client = client
        self._watches = watches

    async def reconcile(self, namespace: str) -> Outcome:
        """Apply the EnvoyFilters of one source namespace."""
        watches = self._watches
        rules = watches.rules_of(namespace)
        present = watches.filters_of(namespace)
        if not (rules or present) or watches.rules.served is False:
            return DONE  # while the kind is not served, the desired state is unknown
        namespaces = watches.namespaces_for(namespace)
        source = namespaces.get(namespace)
        if source is not None and source.is_ending:
            return DONE  # it owns the EnvoyFilters, so the garbage collector deletes them
        desired = envoy_filters(namespace, rules, watches.services_of(rules), namespaces)
        problems = [await self._put(w, present.get(name)) for name, w in desired.items()]
        for name, seen in present.items():
            if name not in desired:
                problems.append(await self._delete(Key(name, filter_name(namespace)), seen))
        if reported := [problem for problem in problems if problem]:
            raise ReconcileError(abridged(reported, separator="; "))
        return DONE

    async def _put(self, desired: JsonObject, present: SeenFilter | None) -> str | None:
        if present is not None and present.digest == digest(desired):
            return None
        key = Key.of(desired)
        try:
            if present is None:
                written = await self._create(desired)
            else:
                written = await self._patch(desired)
        except (KubeError, ForeignFilter) as error:
            return f"EnvoyFilter {key} not written: {error}"
        self._watches.filters.observe(written)
        log.info("envoy filter written", object=str(key))
        return None

    async def _create(self, desired: JsonObject) -> JsonObject:
        try:
            return await self._client.create(desired)
        except AlreadyExists:
            return await self._patch(desired)  # it lost our label, or the cache lags

    async def _patch(self, desired: JsonObject) -> JsonObject:
        """Patch the parts of a live object that we own, if they differ."""
        live = await self._client.get(ENVOY_FILTER, Key.of(desired))
        if owner := _other_controller(live):
            raise ForeignFilter(f"it belongs to {owner}; rename or delete it")
        patch = merge_patch(_written(live), _written(desired))
        if not patch:
            return live
        patch["metadata"] = {
            **patch.get("metadata", {}),
            "resourceVersion": live["metadata"]["resourceVersion"],
        }
        return await self._client.patch(ENVOY_FILTER, Key.of(desired), patch)

    async def _delete(self, key: Key, seen: SeenFilter) -> str | None:
        try:
            await self._client.delete(ENVOY_FILTER, key, uid=seen.uid)
        except NotFound:
            return None
        except KubeError as error:
            return f"EnvoyFilter {key} not deleted: {error}"
        log.info("envoy filter deleted", object=str(key))
        return None


def _other_controller(envoy_filter: JsonObject) -> str:
    """Return the other manager of an EnvoyFilter with our name; empty if there is none."""
    for owner in owner_references_of(envoy_filter):
        if owner.get("controller") and owner.get("kind") != NAMESPACE.kind:
            return f"{owner.get('kind')} {owner.get('name')}"
    return ""


def _written(envoy_filter: JsonObject) -> JsonObject:
    """Return the parts of an EnvoyFilter that we write."""
    label = labels_of(envoy_filter).get(MANAGED_BY)
    return {
        "metadata": {
            "labels": {MANAGED_BY: label},
            "ownerReferences": owner_references_of(envoy_filter),
        },
        "spec": map_at(envoy_filter, "spec"),
    }
