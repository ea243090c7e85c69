"""Health of components that installers wait for, in addition to managed objects (10 appendix A).

Each check returns why the object is unhealthy, or None. The annotation that skips health checks
applies only to managed objects, and is ignored here.
"""

from typing import Final

from pergola.api.conditions import TRUE
from pergola.api.objects import JsonObject, map_at, name_of
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.health.conditions import Requirement, condition, conditions_problem
from pergola.health.numbers import generation_problem

_NODE: Final = (
    Requirement("Ready"),
    Requirement("DiskPressure", "False", optional=True),
    Requirement("MemoryPressure", "False", optional=True),
    Requirement("NetworkUnavailable", "False", optional=True),
    Requirement("PIDPressure", "False", optional=True),
)
_MACHINE_DEPLOYMENT: Final = (
    Requirement("Available"),
    Requirement("Progressing", optional=True),
    Requirement("ReplicaFailure", "False", optional=True),
    Requirement("Frozen", "False", optional=True),
)
_MANAGED_SEED: Final = (Requirement("ShootReconciled"), Requirement("SeedRegistered"))
_GARDEN: Final = tuple(map(Requirement, CARE_CONDITIONS))
_SEED: Final = (Requirement("GardenletReady"), Requirement("SeedSystemComponentsHealthy"))


def check_node(obj: JsonObject) -> str | None:
    """Check that a Node is ready and reports no pressure."""
    return conditions_problem(obj, _NODE)


def check_api_service(obj: JsonObject) -> str | None:
    """Check that an APIService is available."""
    return conditions_problem(obj, (Requirement("Available"),))


def check_etcd(obj: JsonObject) -> str | None:
    """Check that an Etcd of etcd-druid is ready, and so is its backup if it has one."""
    name = name_of(obj)
    if map_at(obj, "status").get("ready") is not True:
        return f'etcd "{name}" is not ready yet'
    backup = condition(obj, "BackupReady")
    if backup is None or backup.get("status") == TRUE:
        return None
    message = backup.get("message") or "no message"
    return f'backup for etcd "{name}" is reported as unready: {message}'


def check_machine_deployment(obj: JsonObject) -> str | None:
    """Check that a MachineDeployment has its minimum availability and is not frozen."""
    return generation_problem(obj) or conditions_problem(obj, _MACHINE_DEPLOYMENT)


def check_managed_seed(obj: JsonObject) -> str | None:
    """Check that the Shoot of a ManagedSeed is reconciled and registered as a Seed."""
    return generation_problem(obj) or conditions_problem(obj, _MANAGED_SEED)


def check_garden(obj: JsonObject) -> str | None:
    """Check that the operator has reconciled the current generation and reports good health.

    This is the definition of "ready" for a Garden (spec 21 §12.5).
    """
    return generation_problem(obj) or _reconcile_problem(obj) or conditions_problem(obj, _GARDEN)


def check_seed(obj: JsonObject, gardener: JsonObject) -> str | None:
    """Check that the expected Gardener runs a Seed, and that its components are healthy.

    Args:
        gardener: the identity (`id`, `name`, `version`) that `status.gardener` must equal.
    """
    return (
        _identity_problem(map_at(obj, "status", "gardener"), gardener)
        or generation_problem(obj)
        or conditions_problem(obj, _SEED)
    )


def _reconcile_problem(obj: JsonObject) -> str | None:
    operation = map_at(obj, "status", "lastOperation")
    fields = ("type", "state", "progress")
    if tuple(operation.get(name) for name in fields) == ("Reconcile", "Succeeded", 100):
        return None
    kind, state, progress = (operation.get(name) or "unknown" for name in fields)
    return f"the last operation is {kind} {state} at {progress} %, expected Reconcile Succeeded"


def _identity_problem(observed: JsonObject, expected: JsonObject) -> str | None:
    for field in sorted({*observed, *expected}):
        seen, desired = observed.get(field), expected.get(field)
        if seen != desired:
            return (
                f"status.gardener.{field} is {seen or 'not set'}, expected {desired or 'not set'}"
            )
    return None
