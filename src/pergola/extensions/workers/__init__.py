"""Machines of a cloud: the generic actuator for Workers (spec 31 §1, §4, §5).

pool       a worker pool, as an extension receives it
plan       what a provider renders from, and what it renders
contract   what a provider implements
"""

from pergola.extensions.workers.plan import (
    HashInput,
    Machines,
    PoolMachines,
    WorkerPlan,
    ZoneMachines,
)
from pergola.extensions.workers.pool import Pool

__all__ = ["HashInput", "Machines", "Pool", "PoolMachines", "WorkerPlan", "ZoneMachines"]
