"""The facts about a Garden that Extensions depend on."""

from typing import Final, NamedTuple

from pergola.api.objects import (
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    map_at,
    name_of,
)
from pergola.garden.components.virtual_access import GENERIC_NAME

_COMPLETE: Final = 100


class GardenFacts(NamedTuple):
    """The facts about a Garden that Extensions depend on.

    Attributes:
        is_reconciled: Whether its last operation is a successful reconciliation.
        generic_kubeconfig: The Secret with the kubeconfig of the virtual cluster that all
            components share; empty until it exists.
    """

    name: str
    is_deleted: bool
    is_reconciled: bool
    generic_kubeconfig: str

    @classmethod
    def of(cls, garden: JsonObject) -> "GardenFacts":
        """Return these facts about a Garden."""
        operation = map_at(garden, "status", "lastOperation")
        state = operation.get("type"), operation.get("state"), operation.get("progress")
        return cls(
            name=name_of(garden),
            is_deleted=deletion_timestamp_of(garden) is not None,
            is_reconciled=state == ("Reconcile", "Succeeded", _COMPLETE),
            generic_kubeconfig=annotations_of(garden).get(GENERIC_NAME, ""),
        )
