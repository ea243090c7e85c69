"""The desired status of an InfraCluster: pure functions (spec 50 §5, step 5)."""

from collections.abc import Sequence
from datetime import datetime
from typing import Any, Final, NamedTuple

from pergola.api.cluster_api import ContractVersion
from pergola.api.conditions import get_condition
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.externally_managed.conditions import (
    NEWER,
    OLDER,
    PAUSED,
    READY,
    has_newer,
    with_condition,
)
from pergola.externally_managed.contract import (
    Contract,
    FailureDomain,
    done,
    render_failure_domains,
)
from pergola.kube.patches import merge_patch

IS_READY: Final = "NetworkReady"
INCOMPLETE: Final = "NetworkIncomplete"
CONFLICT: Final = "Conflict"
WAITING_FOR_CLUSTER: Final = "WaitingForCluster"
REFUSED: Final = "SpecRefused"
"""The API server, or a webhook of the provider, refuses the spec."""
PERGOLA_REASONS: Final = (
    IS_READY,
    INCOMPLETE,
    CONFLICT,
    WAITING_FOR_CLUSTER,
    REFUSED,
    "SourceNotFound",
    "SourceInvalid",
    "SourceForbidden",
    "CredentialsInvalid",
    "CredentialsInsufficient",
)
"""The reasons that Pergola's external manager uses."""
_READY_MESSAGE: Final = "The network is complete."


class Outcome(NamedTuple):
    """The outcome of a reconciliation.

    Attributes:
        reason: the reason of the Ready condition, which is True without problems.
        problems: a sentence each.
        failure_domains: None keeps the current ones.
        extra: fields of the status in addition to those of the contract.
        notes: messages for users that do not affect readiness.
    """

    reason: str = IS_READY
    problems: Sequence[str] = ()
    failure_domains: Sequence[FailureDomain] | None = None
    extra: JsonObject | None = None
    notes: Sequence[str] = ()

    @property
    def message(self) -> str:
        """The message of the Ready condition."""
        if not self.problems and not self.notes:
            return _READY_MESSAGE
        return "; ".join([*(self.problems or [_READY_MESSAGE.rstrip(".")]), *self.notes])


def status_patch(
    obj: JsonObject, contract: Contract, outcome: Outcome, now: datetime
) -> JsonObject:
    """Return a merge patch of the status; empty if nothing changes.

    Infrastructure that was once declared provisioned stays provisioned.
    """
    status = map_at(obj, "status")
    desired: JsonObject = dict(outcome.extra or {})
    if not outcome.problems:
        for version in contract.versions:
            desired |= done(version)
    if outcome.failure_domains is not None:
        desired["failureDomains"] = _domains_change(status, outcome.failure_domains, contract)
    for place in _places(status, contract):
        conditions = with_condition(
            maps_at(status, *place.path),
            obj,
            place.version,
            READY,
            status=not outcome.problems,
            reason=outcome.reason,
            message=outcome.message,
            now=now,
        )
        paused = get_condition(conditions, PAUSED)
        if paused and paused.get("status") != "False":
            conditions = _paused(conditions, obj, place.version, now, paused=False)
        desired |= place.holding(conditions)
    return _missing(status, desired)


def paused_patch(obj: JsonObject, contract: Contract, now: datetime) -> JsonObject:
    """Return a merge patch with condition Paused, which only v1beta2 has; empty if it is set."""
    status = map_at(obj, "status")
    desired: JsonObject = {}
    for place in _places(status, contract):
        if place.version == "v1beta2":
            conditions = maps_at(status, *place.path)
            desired |= place.holding(_paused(conditions, obj, place.version, now, paused=True))
    return _missing(status, desired)


class _Place(NamedTuple):
    """A list of conditions in a status.

    Attributes:
        version: the contract whose format it has.
    """

    path: tuple[str, ...]
    version: ContractVersion

    def holding(self, conditions: list[JsonObject]) -> JsonObject:
        """Return the field of the status with these conditions."""
        found: Any = conditions
        for name in reversed(self.path):
            found = {name: found}
        return dict(found)


def _places(status: JsonObject, contract: Contract) -> list[_Place]:
    """Return the lists of conditions to write: that of the contract, and one that core prefers."""
    newer = [_Place(NEWER, "v1beta2")] if has_newer(status) else []
    return [_Place(OLDER, contract.version), *newer]


def _paused(
    conditions: list[JsonObject],
    obj: JsonObject,
    version: ContractVersion,
    now: datetime,
    *,
    paused: bool,
) -> list[JsonObject]:
    reason = "Paused" if paused else "NotPaused"
    return with_condition(
        conditions, obj, version, PAUSED, status=paused, reason=reason, message="", now=now
    )


def _domains_change(
    status: JsonObject, domains: Sequence[FailureDomain], contract: Contract
) -> JsonObject | list[JsonObject] | None:
    """Return the desired domains; in a map, removed ones are null."""
    if not domains:
        return None
    rendered = render_failure_domains(domains, contract.version)
    live = status.get("failureDomains")
    if isinstance(rendered, dict) and isinstance(live, dict):
        gone = {name: None for name in live if name not in rendered}
        return {**rendered, **gone}
    return rendered


def _missing(status: JsonObject, desired: JsonObject) -> JsonObject:
    """Return the effective part of a patch."""
    target = {**status, **desired}
    for name, value in desired.items():
        if isinstance(value, dict) and isinstance(status.get(name), dict):
            target[name] = {k: v for k, v in {**status[name], **value}.items() if v is not None}
    return merge_patch(status, target)
