"""The kinds that the dashboard watches; kinds that a cluster does not serve have no objects."""

from typing import Final

from pergola.api.cluster_api import INFRASTRUCTURE_GROUP
from pergola.api.objects import GroupVersionKind
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.kinds import EXTENSION_KINDS, GROUP, VERSION

AWS_CLUSTER: Final = GroupVersionKind(INFRASTRUCTURE_GROUP, "v1beta2", "AWSCluster")
WATCHED: Final = (
    GARDEN,
    EXTENSION,
    *(GroupVersionKind(GROUP, VERSION, kind) for kind in sorted(EXTENSION_KINDS)),
    AWS_CLUSTER,
    MANAGED_RESOURCE,
)
"""In the order in which the page lists them."""
