"""From observations to a verdict about each condition of a Garden (spec 21 §3.2); pure."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime
from typing import Final, NamedTuple

from pergola.api.managed_resource_conditions import APPLIED, HEALTHY, PROGRESSING
from pergola.api.marks import CARE_CONDITION_TYPE
from pergola.api.objects import JsonObject, Key, labels_of, map_at, maps_at
from pergola.api.operator_v1alpha1.garden import (
    CARE_CONDITIONS,
    OBSERVABILITY_COMPONENTS_HEALTHY,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE,
)
from pergola.api.texts import abridged
from pergola.garden.components.etcds import access
from pergola.garden.components.kube_controller_manager import (
    DEPLOYMENT as CONTROLLER_MANAGER,
)
from pergola.garden.components.managed_resources import Expected
from pergola.garden.components.resource_manager.virtual import NAME as RESOURCE_MANAGER
from pergola.garden.components.virtual_access import API_SERVER
from pergola.health import (
    CareFailure,
    care,
    check_control_plane,
    deployment_problem,
    etcd_problem,
)
from pergola.health.managed_resources import MISSING_CONDITION, OUTDATED_STATUS
from pergola.operator.care.servers import Probe, check_api_server

ETCDS: Final = tuple(access.name(role) for role in access.ROLES)
DEPLOYMENTS: Final = (API_SERVER, CONTROLLER_MANAGER, RESOURCE_MANAGER)
_OF_RESOURCES: Final = CARE_CONDITIONS[1:]
_NAMED: Final = frozenset({OUTDATED_STATUS, MISSING_CONDITION})
_ANY_TIME: Final = datetime.min.replace(tzinfo=UTC)

Signal = tuple[object, ...]
"""The reported state of an object; a change triggers a run."""


@dataclass(frozen=True, slots=True)
class SeenResource:
    """The facts about a ManagedResource.

    Attributes:
        label: The condition that it names; empty if it names none.
        has_class: Whether its objects are in the runtime cluster.
        failure: Its problem, if any.
    """

    label: str
    has_class: bool
    failure: CareFailure | None
    signal: Signal

    @classmethod
    def of(cls, resource: JsonObject) -> "SeenResource":
        """Return these facts about an object."""
        failure = care(resource, now=_ANY_TIME)
        if failure is not None and failure.reason not in _NAMED:
            message = failure.message or "no message"
            text = f"ManagedResource {Key.of(resource)}: {message}"
            failure = failure._replace(message=text)
        types, fields = (APPLIED, HEALTHY, PROGRESSING), ("type", "status", "reason", "message")
        return cls(
            labels_of(resource).get(CARE_CONDITION_TYPE, ""),
            bool(map_at(resource, "spec").get("class")),
            failure,
            tuple(_reported(resource, types, fields)),
        )


class SeenPart(NamedTuple):
    """An Etcd or Deployment of the control plane; the problem of healthy ones is empty."""

    problem: str
    signal: Signal

    @classmethod
    def of_etcd(cls, etcd: JsonObject) -> "SeenPart":
        """Return these facts about an Etcd."""
        ready = map_at(etcd, "status").get("ready")
        return cls(etcd_problem(etcd), (ready, *_reported(etcd, ("BackupReady",))))

    @classmethod
    def of_deployment(cls, deployment: JsonObject) -> "SeenPart":
        """Return these facts about a Deployment."""
        types = ("Available", "Progressing", "ReplicaFailure")
        return cls(deployment_problem(deployment), tuple(_reported(deployment, types)))


class Unable(NamedTuple):
    """A check that could not be executed, and why."""

    message: str


Verdict = CareFailure | Unable | None
"""The problem, the reason why the health is unknown, or None if all is well."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """The observations of a run.

    Attributes:
        resources: The ManagedResources.
        expected: Those that must exist.
        etcds: The problem of each Etcd of the control plane; empty for healthy ones.
        deployments: The problem of each of its Deployments; empty for healthy ones.
        probe: The answer of the virtual API server; None without access to it.
        prometheus: The verdict of the health queries; None if they found no problem.
        extras: The verdicts about conditions that the original does not have.
        once: Whether a ManagedResource without a class counts only for the condition that it names.
            Otherwise it also counts for the virtual components.
        seconds: The time that the observations for each condition took.
    """

    resources: Mapping[Key, SeenResource] | Unable
    expected: Sequence[Expected]
    etcds: Mapping[str, str] | Unable
    deployments: Mapping[str, str] | Unable
    probe: Probe | None
    prometheus: Verdict = None
    extras: Mapping[str, Verdict] = field(default_factory=dict)
    once: bool = False
    seconds: Mapping[str, float] = field(default_factory=dict)

    def failures(self, condition: str) -> dict[Key, CareFailure | None]:
        """Return the ManagedResources that a condition covers, sorted, including missing ones."""
        if isinstance(self.resources, Unable):
            return {}
        found = {
            key: seen.failure
            for key, seen in self.resources.items()
            if _counts(condition, seen, once=self.once)
        }
        for key in (each.key for each in self.expected if each.condition == condition):
            if key not in self.resources:
                message = f"ManagedResource {key} does not exist"
                found[key] = CareFailure("ManagedResourceMissing", message)
        return dict(sorted(found.items()))


def check(observed: Observed, reasons: Mapping[str, str]) -> dict[str, Verdict]:
    """Return the verdict about each condition, in the order in which they are stored.

    Args:
        reasons: The current reason of each condition.
    """
    if isinstance(observed.resources, Unable):
        return {**dict.fromkeys(CARE_CONDITIONS, observed.resources), **observed.extras}
    resources = {
        condition: _combined(observed.failures(condition), reasons.get(condition, ""))
        for condition in _OF_RESOURCES
    }
    prometheus, observability = observed.prometheus, resources[OBSERVABILITY_COMPONENTS_HEALTHY]
    return {
        VIRTUAL_GARDEN_API_SERVER_AVAILABLE: check_api_server(observed.probe),
        RUNTIME_COMPONENTS_HEALTHY: resources[RUNTIME_COMPONENTS_HEALTHY],
        VIRTUAL_COMPONENTS_HEALTHY: (
            _check_control_plane(observed) or resources[VIRTUAL_COMPONENTS_HEALTHY]
        ),
        OBSERVABILITY_COMPONENTS_HEALTHY: (
            prometheus if isinstance(prometheus, Unable) else observability or prometheus
        ),
        **observed.extras,
    }


def bounded(texts: Sequence[str]) -> str:
    """Join texts: the first ten, and the number of the others."""
    if len(texts) == 1:
        return texts[0]
    return abridged([text.rstrip(".") for text in texts], separator="; ")


def _check_control_plane(observed: Observed) -> CareFailure | Unable | None:
    etcds, deployments = observed.etcds, observed.deployments
    if isinstance(etcds, Unable):
        return etcds
    if isinstance(deployments, Unable):
        return deployments
    return check_control_plane(
        etcds, deployments, required_etcds=ETCDS, required_deployments=DEPLOYMENTS
    )


def _combined(found: Mapping[Key, CareFailure | None], previous: str) -> CareFailure | None:
    """Return the failures of ManagedResources as one, or None.

    Args:
        previous: The condition's current reason. It is kept as long as one fails for it, so that
            additional failures do not look like a different one.
    """
    failures = [failure for failure in found.values() if failure is not None]
    if not failures:
        return None
    reasons = [failure.reason for failure in failures]
    reason = previous if previous in reasons else reasons[0]
    return CareFailure(reason, bounded([failure.message for failure in failures]))


def _counts(condition: str, seen: SeenResource, *, once: bool) -> bool:
    if once:
        by_class = RUNTIME_COMPONENTS_HEALTHY if seen.has_class else VIRTUAL_COMPONENTS_HEALTHY
        return condition == (seen.label if seen.label in _OF_RESOURCES else by_class)
    if condition == RUNTIME_COMPONENTS_HEALTHY:
        return seen.has_class and seen.label in ("", condition)
    if condition == VIRTUAL_COMPONENTS_HEALTHY:
        return not seen.has_class or seen.label == condition
    return seen.label == condition


def _reported(
    obj: JsonObject, types: Sequence[str], fields: Sequence[str] = ("type", "status")
) -> Iterator[Signal]:
    for condition in maps_at(obj, "status", "conditions"):
        if condition.get("type") in types:
            yield tuple(condition.get(name) for name in fields)
