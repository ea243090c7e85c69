"""The effect of the annotation that marks infrastructure as ready: pure (spec 50 §7)."""

from typing import Final, NamedTuple

from pergola.api.cluster_api import MANAGED_BY, READY_BY_HAND, SOURCE
from pergola.api.conditions import get_condition
from pergola.api.objects import JsonObject, annotations_of, finalizers_of, map_at, maps_at
from pergola.externally_managed.conditions import READY, conditions_of
from pergola.externally_managed.contract import (
    Contract,
    ContractError,
    effective_endpoint,
    is_provisioned,
)
from pergola.externally_managed.ownership import author_of
from pergola.externally_managed.predicate import manager_of
from pergola.externally_managed.status import PERGOLA_REASONS, Outcome

MARKED: Final = "MarkedReadyByUser"
WITHDRAWN: Final = "MarkWithdrawnByUser"
INVALID: Final = "MarkInvalid"
NO_ENDPOINT: Final = "EndpointMissing"
_OURS: Final = (MARKED, WITHDRAWN, INVALID, NO_ENDPOINT)

NOT_EXTERNAL: Final = "NotExternallyManaged"
IGNORED: Final = "MarkIgnored"


class Ignored(NamedTuple):
    """A mark without effect: the text of an Event, and the remedy."""

    reason: str
    note: str


def decide_mark(
    obj: JsonObject,
    cluster: JsonObject | None,
    contract: Contract,
    finalizers: tuple[str, ...],
    name: str,
) -> Outcome | Ignored | None:
    """Decide the effect of an InfraCluster's mark; None if there is nothing to report.

    Args:
        cluster: its Cluster, if any.
        finalizers: the finalizers that the provider adds to InfraClusters of the kind.
        name: the external manager of this process.
    """
    value = annotations_of(obj).get(READY_BY_HAND)
    reason = _ready_reason(obj)
    ignored = _ignored(obj, contract, finalizers, name)
    if ignored is not None:
        return ignored if value is not None else None
    if value is None:
        return Outcome(WITHDRAWN) if reason in (MARKED, WITHDRAWN) else None
    if value != "true":
        text = f'annotation {READY_BY_HAND} is "{value}"; only "true" marks it ready'
        return Outcome(INVALID, [text])
    given = effective_endpoint(obj, cluster)
    if given is None:
        text = "set host and port of spec.controlPlaneEndpoint, here or on the Cluster"
        return Outcome(NO_ENDPOINT, [text])
    if given.problem:
        return Outcome(NO_ENDPOINT, [f"spec.controlPlaneEndpoint: {given.problem}"])
    return Outcome(MARKED)


def _ignored(
    obj: JsonObject, contract: Contract, finalizers: tuple[str, ...], name: str
) -> Ignored | None:
    manager = manager_of(obj)
    if manager is None:
        return Ignored(
            NOT_EXTERNAL,
            f"annotation {READY_BY_HAND} has no effect without {MANAGED_BY}: the provider is "
            "in charge of this object",
        )
    if manager == name or SOURCE in annotations_of(obj):
        return Ignored(
            IGNORED,
            f'annotation {READY_BY_HAND} has no effect: Pergola as "{manager}" decides whether the '
            f"network is ready; to decide it by hand, remove annotation {SOURCE} and let "
            f"{MANAGED_BY} name another manager",
        )
    return _spoken_for(obj, contract, finalizers, manager)


def _spoken_for(
    obj: JsonObject, contract: Contract, finalizers: tuple[str, ...], manager: str
) -> Ignored | None:
    """Respect the report of another manager, but not leftovers of a previous one.

    Once the infrastructure is provisioned, the mark changes nothing for the Cluster, so no manager
    is overridden twice.
    """
    reason = _ready_reason(obj)
    if reason in _OURS:
        return None
    try:
        if is_provisioned(obj, contract.version):
            return Ignored(
                IGNORED, f"annotation {READY_BY_HAND} has no effect: it is ready already"
            )
    except ContractError as error:
        return Ignored(IGNORED, f"annotation {READY_BY_HAND} has no effect: {error}")
    writers = _condition_writers(obj)
    is_left = reason in PERGOLA_REASONS and author_of(manager) not in writers
    if reason is None or is_left or writers <= _provider(obj, finalizers):
        return None
    return Ignored(
        IGNORED,
        f"annotation {READY_BY_HAND} has no effect: {', '.join(sorted(writers))} reports "
        f'condition {READY} with reason "{reason}"; if that manager is gone, remove the condition '
        "with kubectl edit --subresource=status",
    )


def _ready_reason(obj: JsonObject) -> str | None:
    condition = get_condition(conditions_of(obj), READY)
    return str(condition.get("reason", "")) if condition else None


def _condition_writers(obj: JsonObject) -> set[str]:
    return {
        str(entry.get("manager"))
        for entry in maps_at(obj, "metadata", "managedFields")
        if "f:conditions" in map_at(entry, "fieldsV1", "f:status")
    }


def _provider(obj: JsonObject, finalizers: tuple[str, ...]) -> set[str]:
    """Return the field managers that added the provider's finalizer to an object."""
    left = {f'v:"{name}"' for name in finalizers_of(obj) if name in finalizers}
    return {
        str(entry.get("manager"))
        for entry in maps_at(obj, "metadata", "managedFields")
        if left & map_at(entry, "fieldsV1", "f:metadata", "f:finalizers").keys()
    }
