"""Which IP families a Network has now, while the nodes of its Shoot are migrated (spec 40 §1.4)."""

from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.cluster import Shoot

DUAL_STACK_NODES_MIGRATION: Final = "DualStackNodesMigrationReady"
_DEFAULT: Final = ("IPv4",)


def wanted_families(network: JsonObject) -> tuple[str, ...]:
    """The families that a Network asks for, primary first; IPv4 if it does not say."""
    families = map_at(network, "spec").get("ipFamilies")
    return tuple(families) if isinstance(families, list) and families else _DEFAULT


def effective_families(wanted: tuple[str, ...], shoot: Shoot) -> tuple[str, ...]:
    """The families to be rolled out now: only the first until all nodes are ready for the second.

    The constraint is there only during a migration, so that new clusters have all at once.
    """
    ready = shoot.constraint(DUAL_STACK_NODES_MIGRATION)
    return wanted if ready in (None, "True") else wanted[:1]
