"""From observations to a verdict about each condition of a Garden (spec 21 §3.2); pure."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Final, NamedTuple

from pergola.api.objects import Key
from pergola.api.operator_v1alpha1.garden import (
    CARE_CONDITIONS,
    OBSERVABILITY_COMPONENTS_HEALTHY,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
    VIRTUAL_GARDEN_API_SERVER_AVAILABLE,
)
from pergola.garden.components.etcds import access
from pergola.garden.components.kube_controller_manager import (
    DEPLOYMENT as CONTROLLER_MANAGER,
)
from pergola.garden.components.managed_resources import Expected
from pergola.garden.components.resource_manager.virtual import NAME as RESOURCE_MANAGER
from pergola.garden.components.virtual_access import API_SERVER
from pergola.health import CareFailure, check_control_plane
from pergola.operator.care.api_server import OK, Probe
from pergola.operator.care.components import Item, SeenResource, failure_of, items_of

ETCDS: Final = tuple(access.name(role) for role in access.ROLES)
DEPLOYMENTS: Final = (API_SERVER, CONTROLLER_MANAGER, RESOURCE_MANAGER)

NO_ACCESS: Final = CareFailure(
    "VirtualGardenAPIServerDown",
    "Could not reach virtual garden API server during client initialization.",
)


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
        once: Whether a ManagedResource counts for one condition only.
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

    def items(self, condition: str) -> list[Item]:
        """Return the ManagedResources that a condition reports on; none if they are unknown."""
        if isinstance(self.resources, Unable):
            return []
        return items_of(condition, self.resources, self.expected, once=self.once)


def check(observed: Observed, reasons: Mapping[str, str]) -> dict[str, Verdict]:
    """Return the verdict about each condition, in the order in which they are stored.

    Args:
        reasons: The current reason of each condition.
    """
    if isinstance(observed.resources, Unable):
        return {**dict.fromkeys(CARE_CONDITIONS, observed.resources), **observed.extras}
    resources = {
        condition: failure_of(observed.items(condition), reasons.get(condition, ""))
        for condition in CARE_CONDITIONS[1:]
    }
    return {
        VIRTUAL_GARDEN_API_SERVER_AVAILABLE: check_api_server(observed.probe),
        RUNTIME_COMPONENTS_HEALTHY: resources[RUNTIME_COMPONENTS_HEALTHY],
        VIRTUAL_COMPONENTS_HEALTHY: (
            _check_control_plane(observed) or resources[VIRTUAL_COMPONENTS_HEALTHY]
        ),
        OBSERVABILITY_COMPONENTS_HEALTHY: _observability(
            observed.prometheus, resources[OBSERVABILITY_COMPONENTS_HEALTHY]
        ),
        **observed.extras,
    }


def check_api_server(probe: Probe | None) -> CareFailure | None:
    """Return the problem of an API server, judging by the answer of its health endpoint, or None.

    Messages never contain response times: they differ from run to run, and each would cost a write.
    """
    if probe is None:
        return NO_ACCESS
    if probe.code == OK:
        return None
    if not probe.code:
        text = f"Request to API server /healthz endpoint failed. ({probe.text})"
        return CareFailure("HealthzRequestFailed", text)
    return CareFailure(
        "HealthzRequestError",
        "API server /healthz endpoint check returned a non ok status code "
        f"{probe.code}. ({probe.text})",
    )


def _check_control_plane(observed: Observed) -> CareFailure | Unable | None:
    etcds, deployments = observed.etcds, observed.deployments
    if isinstance(etcds, Unable):
        return etcds
    if isinstance(deployments, Unable):
        return deployments
    return check_control_plane(
        etcds, deployments, required_etcds=ETCDS, required_deployments=DEPLOYMENTS
    )


def _observability(prometheus: Verdict, resources: CareFailure | None) -> Verdict:
    return prometheus if isinstance(prometheus, Unable) else resources or prometheus
