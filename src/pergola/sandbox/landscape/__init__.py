"""A Gardener landscape on this machine: a Garden, Seeds in clusters of their own, and Shoots.

Gardener's control plane and gardenlet are the original's programs. The caller runs the operator;
Pergola is the resource manager of every cluster. All nodes are simulated.

clusters   that of the Garden, and those of Seeds
objects    Seeds, Shoots and what they refer to
following  their progress
aws        an account for Shoots on AWS
"""

from pergola.sandbox.landscape.clusters import Landscape, in_aws, landscape
from pergola.sandbox.landscape.following import (
    Reconciliation,
    following,
    is_reconciled,
    succeeded,
)
from pergola.sandbox.landscape.objects import (
    ONE_ZONE,
    ZONES,
    admin_kubeconfig,
    create_prerequisites,
    create_project,
    create_seed,
    create_shoot,
    register,
)

__all__ = [
    "ONE_ZONE",
    "ZONES",
    "Landscape",
    "Reconciliation",
    "admin_kubeconfig",
    "create_prerequisites",
    "create_project",
    "create_seed",
    "create_shoot",
    "following",
    "in_aws",
    "is_reconciled",
    "landscape",
    "register",
    "succeeded",
]
