"""Creating the objects that an import lacks."""

from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.operator.transfer.export import Export, TransferError
from pergola.operator.transfer.target import Missing, is_same


async def apply_import(client: Client, missing: Missing) -> None:
    """Create credentials and user-provided objects, keeping the order of the credentials.

    Raises:
        TransferError: Another client concurrently creates different ones.
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
                f"{kind.kind} {key} was concurrently created with other content: import into a "
                "cluster without a running Garden"
            ) from None
