"""The IP families of a Network while the nodes of its Shoot migrate (spec 40 §1.4)."""

from typing import Final

from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.cluster import Shoot

DUAL_STACK_NODES_MIGRATION: Final = "DualStackNodesMigrationReady"
_DEFAULT: Final = ("IPv4",)


def desired_families(network: JsonObject) -> tuple[str, ...]:
    """Return the families in the spec of a Network, primary first; IPv4 by default."""
    families = map_at(network, "spec").get("ipFamilies")
    return tuple(families) if isinstance(families, list) and families else _DEFAULT


def effective_families(desired: tuple[str, ...], shoot: Shoot) -> tuple[str, ...]:
    """Return the families to roll out now: the first until all nodes are ready for the second.

    The constraint exists only during a migration, so new clusters get all families at once.
    """
    ready = shoot.constraint(DUAL_STACK_NODES_MIGRATION)
    return desired if ready in (None, "True") else desired[:1]
