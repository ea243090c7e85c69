"""Health of what an installer waits for and the health controller leaves alone (10 appendix A).

Each check answers why the object is unhealthy, or None. The annotation that skips health checks is
for managed objects and means nothing here.
"""

from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.health.conditions import Wanted, conditions_problem
from pergola.health.numbers import generation_problem

_NODE: Final = (
    Wanted("Ready"),
    Wanted("DiskPressure", "False", optional=True),
    Wanted("MemoryPressure", "False", optional=True),
    Wanted("NetworkUnavailable", "False", optional=True),
    Wanted("PIDPressure", "False", optional=True),
)
_MACHINE_DEPLOYMENT: Final = (
    Wanted("Available"),
    Wanted("Progressing", optional=True),
    Wanted("ReplicaFailure", "False", optional=True),
    Wanted("Frozen", "False", optional=True),
)
_MANAGED_SEED: Final = (Wanted("ShootReconciled"), Wanted("SeedRegistered"))
_SEED: Final = (Wanted("GardenletReady"), Wanted("SeedSystemComponentsHealthy"))


def check_node(obj: JsonObject) -> str | None:
    """Check that a Node is ready and reports no pressure."""
    return conditions_problem(obj, _NODE)


def check_api_service(obj: JsonObject) -> str | None:
    """Check that an APIService is available."""
    return conditions_problem(obj, (Wanted("Available"),))


def check_etcd(obj: JsonObject) -> str | None:
    """Check that an Etcd of etcd-druid is ready, and so is its backup if it has one."""
    if map_at(obj, "status").get("ready") is not True:
        return "status.ready is not true"
    return conditions_problem(obj, (Wanted("BackupReady", optional=True),))


def check_machine_deployment(obj: JsonObject) -> str | None:
    """Check that a MachineDeployment has its minimum availability and is not frozen."""
    return generation_problem(obj) or conditions_problem(obj, _MACHINE_DEPLOYMENT)


def check_managed_seed(obj: JsonObject) -> str | None:
    """Check that the Shoot of a ManagedSeed is reconciled and registered as a Seed."""
    return generation_problem(obj) or conditions_problem(obj, _MANAGED_SEED)


def check_seed(obj: JsonObject, gardener: JsonObject) -> str | None:
    """Check that the expected Gardener runs a Seed, and that its components are healthy.

    Args:
        gardener: the identity (`id`, `name`, `version`) that `status.gardener` must be equal to.
    """
    return (
        _identity_problem(map_at(obj, "status", "gardener"), gardener)
        or generation_problem(obj)
        or conditions_problem(obj, _SEED)
    )


def _identity_problem(observed: JsonObject, expected: JsonObject) -> str | None:
    for field in sorted({*observed, *expected}):
        seen, wanted = observed.get(field), expected.get(field)
        if seen != wanted:
            return f"status.gardener.{field} is {seen or 'not set'}, expected {wanted or 'not set'}"
    return None
