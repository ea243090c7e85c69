"""Machines of a cloud: the generic actuator for Workers (spec 31 §1, §4, §5).

pool       a worker pool, as an extension receives it
plan       what a provider renders from, and what it renders
contract   what a provider implements
provider   the base class for providers

pool_hash, distribution, desired, deployments   what the plan asks for; pure
live, rollout                                  what there is, and what is missing
inputs, writes                                 reads and writes
reconcile, removal, restoring, updates         runs
"""

from pergola.extensions.workers.plan import (
    HashInput,
    Machines,
    PoolMachines,
    WorkerPlan,
    ZoneMachines,
)
from pergola.extensions.workers.pool import Pool
from pergola.extensions.workers.provider import WorkerProvider

__all__ = [
    "HashInput",
    "Machines",
    "Pool",
    "PoolMachines",
    "WorkerPlan",
    "WorkerProvider",
    "ZoneMachines",
]
