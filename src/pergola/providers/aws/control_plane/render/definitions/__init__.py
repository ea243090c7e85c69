"""CustomResourceDefinitions of other projects that controllers in a Shoot need (spec 31 §6).

`NOTICE.md` says where they come from, and `tools/definitions.py` writes them.
"""

from importlib.resources import files
from typing import Final

from pergola.api.objects import JsonObject
from pergola.manifests.definitions import Group, load_definitions

SNAPSHOTS: Final = Group(
    "snapshots",
    {
        "snapshot.storage.k8s.io": (
            "volumesnapshotclasses",
            "volumesnapshotcontents",
            "volumesnapshots",
        )
    },
)
LOAD_BALANCERS: Final = Group(
    "load-balancers", {"elbv2.k8s.aws": ("ingressclassparams", "targetgroupbindings")}
)
GROUPS: Final = (SNAPSHOTS, LOAD_BALANCERS)
_FOLDER: Final = files(__package__)


def definitions_for(*, load_balancers: bool) -> list[JsonObject]:
    """Return the definitions of snapshots and, if asked for, of load balancers."""
    chosen = GROUPS if load_balancers else (SNAPSHOTS,)
    return [each for group in chosen for each in load_definitions(group, _FOLDER)]
