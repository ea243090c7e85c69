"""The handler: the steps of spec 12 §3.3, in their order."""

from http import HTTPStatus
from typing import Final, Literal, Protocol

from pergola.admission.draft import Draft
from pergola.admission.registration import Registration, Rule
from pergola.admission.review import Request, Verdict, allowed, denied, errored
from pergola.admission.webhook import Webhook, sharing
from pergola.api import marks
from pergola.api.objects import (
    GroupKind,
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    annotations_of,
    labels_of,
)
from pergola.api.resource_manager_config.webhooks import Webhooks
from pergola.kube.errors import KubeError
from pergola.resource_manager.webhooks.decoding import Undecodable, map_in, text_in
from pergola.resource_manager.webhooks.dependencies import Dependencies
from pergola.resource_manager.webhooks.facts.high_availability import (
    CONSIDER,
    FAILURE_TOLERANCE,
    HOST_SPREAD,
    REPLICAS,
    SKIP,
    TYPE,
    ZONES,
    NamespaceSettings,
    Profile,
    profile_for,
)
from pergola.resource_manager.webhooks.high_availability_config import (
    affinity,
    spread,
    tolerations,
)
from pergola.resource_manager.webhooks.high_availability_config.replicas import (
    TYPES,
    ReplicasError,
    desired_replicas,
    range_of,
    replicas_of,
)
from pergola.resource_manager.webhooks.installation import Installation, absent

NAME: Final = "high-availability-config.resources.gardener.cloud"
PATH: Final = "/webhooks/high-availability-config"

_WRITES: Final[tuple[Literal["CREATE", "UPDATE"], ...]] = ("CREATE", "UPDATE")
_WORKLOADS: Final = (GroupKind("apps", "Deployment"), GroupKind("apps", "StatefulSet"))
_HPA: Final = GroupKind("autoscaling", "HorizontalPodAutoscaler")
_HVPA: Final = GroupKind("autoscaling.k8s.io", "Hvpa")
_HPA_VERSIONS: Final = ("v2", "v2beta1")
_RANGES: Final[dict[GroupKind, tuple[str, ...]]] = {
    _HPA: ("spec",),
    _HVPA: ("spec", "hpa", "template", "spec"),
}


class Cluster(Protocol):
    """The reads of the handler; each method may raise KubeError."""

    async def namespace(self, name: str) -> NamespaceSettings:
        """Return the settings of a namespace."""
        ...

    async def most_replicas(self, workload: GroupVersionKind, key: Key) -> int | None:
        """Return the maximum of a workload's autoscaler, or None without one."""
        ...

    async def many_nodes(self) -> bool:
        """Return whether there is more than one node."""
        ...


def registrations(installation: Installation) -> list[Registration]:
    """Return the entry: changes of workloads and autoscalers in labelled namespaces."""
    rules = [
        Rule(_WRITES, ("apps",), ("v1",), ("deployments", "statefulsets")),
        Rule(_WRITES, ("autoscaling",), ("v2",), ("horizontalpodautoscalers",)),
    ]
    if installation.hvpa:
        rules.append(Rule(_WRITES, ("autoscaling.k8s.io",), ("v1alpha1",), ("hvpas",)))
    return [
        Registration(
            name=NAME,
            path=PATH,
            kind="mutating",
            rules=tuple(rules),
            namespace_selector=installation.namespaces(labels={CONSIDER: "true"}),
            object_selector=installation.objects(absent(SKIP), managed=True),
            match_policy="Equivalent",
        )
    ]


def webhooks(config: Webhooks, dependencies: Dependencies) -> list[Webhook]:
    """Return the webhook."""
    handler = high_availability(config, dependencies)
    return sharing(handler, registrations(dependencies.installation))


def high_availability(config: Webhooks, dependencies: Dependencies) -> "HighAvailability":
    """Return the handler."""
    settings = config.high_availability_config
    return HighAvailability(
        dependencies.lookups,
        profile_for(settings.profile, dependencies.version),
        not_ready=settings.default_not_ready_toleration_seconds,
        unreachable=settings.default_unreachable_toleration_seconds,
    )


class HighAvailability:
    """The handler.

    Args:
        not_ready: the seconds that pods stay on a node that is not ready; None adds no toleration.
        unreachable: the same for an unreachable node.
    """

    def __init__(
        self,
        cluster: Cluster,
        profile: Profile,
        *,
        not_ready: int | None = None,
        unreachable: int | None = None,
    ) -> None:
        self._cluster = cluster
        self._profile = profile
        self._seconds = (not_ready, unreachable)

    async def __call__(self, request: Request) -> Verdict:
        """Decide on one request."""
        unasked = _unasked(request)
        if unasked is not None:
            return unasked
        kind = request.kind.group_kind
        if request.object is None:
            return errored(HTTPStatus.BAD_REQUEST, f"cannot decode the {kind}: there is no object")
        try:
            namespace = await self._cluster.namespace(request.namespace)
        except KubeError as error:
            return errored(
                HTTPStatus.INTERNAL_SERVER_ERROR,
                f"cannot read namespace {request.namespace}: {error}",
            )
        try:
            if kind in _RANGES:
                return self._autoscaler(request.object, kind, namespace)
            return await self._workload(request, request.object, namespace)
        except Undecodable as error:
            return errored(HTTPStatus.BAD_REQUEST, f"cannot decode the {kind}: {error}")
        except ReplicasError as error:
            return denied(f"annotation {REPLICAS}: {error}")

    def _autoscaler(
        self, obj: JsonObject, kind: GroupKind, namespace: NamespaceSettings
    ) -> Verdict:
        path = _RANGES[kind]
        least, most = (_number(obj, (*path, name)) for name in ("minReplicas", "maxReplicas"))
        desired = _desired(obj, namespace, least)
        new_least, new_most = range_of(least, most, desired)
        draft = Draft(obj)
        if new_least != least:
            draft.set((*path, "minReplicas"), new_least, _why(obj, namespace))
        if new_most != most and desired is not None:
            draft.set((*path, "maxReplicas"), new_most, "the maximum must not be below the minimum")
        return draft.verdict(
            "it already has the desired number of replicas", warnings=_warnings(obj)
        )

    async def _workload(
        self, request: Request, obj: JsonObject, namespace: NamespaceSettings
    ) -> Verdict:
        key = Key(request.namespace, request.name or _name(obj))
        try:
            most = await self._cluster.most_replicas(request.kind, key)
        except KubeError as error:
            return errored(HTTPStatus.INTERNAL_SERVER_ERROR, f"failed to list all HPAs: {error}")
        present = _number(obj, ("spec", "replicas"))
        desired = _desired(obj, namespace, present)
        replicas = replicas_of(present, desired, is_scaled=most is not None)
        map_in(obj, "spec", "template", "spec")
        draft = Draft(obj)
        if replicas != present:
            draft.set(("spec", "replicas"), replicas, _why(obj, namespace))
        if namespace.pins_zones:
            draft.set(
                affinity.PATH,
                [*affinity.pinned_terms(obj, namespace.zones)],
                f"namespace annotation {ZONES}",
            )
        try:
            chosen = await self._spread(obj, namespace, replicas, most)
        except KubeError as error:
            return errored(HTTPStatus.INTERNAL_SERVER_ERROR, f"failed to list nodes: {error}")
        self._set_constraints(draft, obj, chosen)
        for toleration in tolerations.missing_tolerations(obj, *self._seconds):
            draft.append(tolerations.PATH, toleration, "the configured toleration seconds")
        return draft.verdict("it is already highly available", warnings=_warnings(obj))

    async def _spread(
        self, obj: JsonObject, namespace: NamespaceSettings, replicas: int, most: int | None
    ) -> spread.Spread:
        asks_nodes = self._profile.is_modern and replicas > 1
        return spread.Spread(
            namespace,
            self._profile,
            replicas,
            most if most is not None and replicas <= most else replicas,
            marks.is_truthy(text_in(obj, "metadata", "annotations", HOST_SPREAD)),
            await self._cluster.many_nodes() if asks_nodes else True,
        )

    def _set_constraints(self, draft: Draft, obj: JsonObject, chosen: spread.Spread) -> None:
        constraints = spread.spread_constraints(obj, chosen)
        if not constraints and draft.get(*spread.PATH) is None:
            return
        tolerance = chosen.namespace.tolerance
        said = "unset" if tolerance is None else f'"{tolerance}"'
        draft.set(
            spread.PATH,
            [*constraints],
            f"{chosen.replicas} replicas, {len(chosen.namespace.zones)} zones, failure tolerance "
            f"type {said}",
        )


def _unasked(request: Request) -> Verdict | None:
    """Return the answer to a request that is not reviewed, or None."""
    kind = request.kind.group_kind
    if request.operation not in _WRITES:
        return allowed(because=f"{request.operation} is not reviewed")
    if request.subresource:
        return allowed(because=f"the subresource {request.subresource} is not reviewed")
    if kind not in _WORKLOADS and kind not in _RANGES:
        return allowed(f"unexpected resource: {kind}")
    if kind == _HPA and request.kind.version not in _HPA_VERSIONS:
        return denied(f'autoscaling version "{request.kind.version}" in request is not supported')
    if SKIP in labels_of(request.object or {}):
        # API servers may still call the webhook while the label is being added.
        return allowed(because=f"it has the label {SKIP}")
    return None


def _desired(obj: JsonObject, namespace: NamespaceSettings, present: int) -> int | None:
    """Return the desired number of replicas; None, whatever the annotation says, if there are 0."""
    if present == 0:
        return None
    kind = text_in(obj, "metadata", "labels", TYPE)
    override = text_in(obj, "metadata", "annotations", REPLICAS)
    return desired_replicas(kind, namespace.tolerance, override)


def _why(obj: JsonObject, namespace: NamespaceSettings) -> str:
    if annotations_of(obj).get(REPLICAS):
        return f"annotation {REPLICAS}"
    kind = labels_of(obj).get(TYPE, "")
    said = "unset" if namespace.tolerance is None else f'"{namespace.tolerance}"'
    return f"label {TYPE}={kind}, annotation {FAILURE_TOLERANCE} {said}"


def _warnings(obj: JsonObject) -> tuple[str, ...]:
    kind = labels_of(obj).get(TYPE, "")
    if not kind or kind in TYPES:
        return ()
    return (f'label {TYPE}: "{kind}" is unknown and counts as "server"; write one of {TYPES}',)


def _number(obj: JsonObject, path: tuple[str, ...]) -> int:
    """Return the number at a path; 0 if it is absent."""
    *above, name = path
    value: JsonValue = map_in(obj, *above).get(name)
    if value is None:
        return 0
    if not isinstance(value, int) or isinstance(value, bool):
        raise Undecodable(path, "a number", value)
    return value


def _name(obj: JsonObject) -> str:
    return Key.of(obj).name
