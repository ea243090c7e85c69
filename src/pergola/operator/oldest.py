"""The single Garden of a cluster: the oldest, if there are several (spec 20 'Beyond' 11)."""

from collections.abc import Iterable

from pergola.api.objects import JsonObject, Key, metadata_of, name_of, uid_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.landscape.errors import OperatorError
from pergola.kube.client import Client


def seniority(garden: JsonObject) -> tuple[str, str]:
    """Return a sort key that is the smallest for the oldest Garden.

    Creation times are whole seconds: if two Gardens share one, the name decides.
    """
    return str(metadata_of(garden).get("creationTimestamp") or ""), name_of(garden)


def oldest(gardens: Iterable[JsonObject]) -> JsonObject | None:
    """Return the Garden of the cluster; None if there is none."""
    return min(gardens, key=seniority, default=None)


async def check_only_one(client: Client, garden: JsonObject) -> None:
    """Check that no Garden is older than this one.

    Raises:
        OperatorError: An older one exists, and only that is reconciled.
        KubeError: The API server refused, or did not answer.
    """
    first = min([*await client.list(GARDEN), garden], key=seniority)
    if uid_of(first) != uid_of(garden):
        raise OperatorError(
            f"there can be only one Garden, and {Key.of(first).name} is older: delete one of them"
        )
