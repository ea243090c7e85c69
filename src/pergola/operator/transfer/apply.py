"""Creating what an import lacks."""

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.operator.transfer.export import Export, TransferError
from pergola.operator.transfer.target import Missing, is_same


async def apply_import(client: Client, missing: Missing) -> None:
    """Create credentials and objects that users provide; the order of credentials is kept.

    Raises:
        TransferError: Another client creates other ones at the same time.
        KubeError: The API server refused, or did not answer.
    """
    for obj in (*missing.credentials, *missing.provided):
        await _create(client, obj)


async def create_garden(client: Client, export: Export) -> None:
    """Create the Garden, which starts its etcds; raises as `apply_import` does."""
    await client.create(export.garden)


async def _create(client: Client, obj: JsonObject) -> None:
    kind, key = GroupVersionKind.of(obj), Key.of(obj)
    try:
        await client.create(obj)
    except AlreadyExists:
        if not is_same(obj, await client.get(kind, key)):
            raise TransferError(
                f"{kind.kind} {key} was created with other content at the same time: import into "
                "a cluster without a running Garden"
            ) from None
