"""The target cluster of an import: the objects that it lacks, and obstacles to the import.

Everything is checked before anything is written.
"""

from collections.abc import Iterable, Mapping
from typing import Final, NamedTuple

from pergola.api.kinds import CONFIG_MAP, NAMESPACE, SECRET
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.texts import abridged
from pergola.garden.landscape import NAMESPACE as GARDEN_NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.run.build import IDENTITY
from pergola.operator.transfer.export import Export, TransferError, identity_of
from pergola.secrets_manager import ManagedSecret, observe_managed

_KINDS: Final = {kind.kind: kind for kind in (SECRET, CONFIG_MAP)}


class Missing(NamedTuple):
    """The objects that an import must create.

    Attributes:
        credentials: Oldest first: the order of creation determines which is current.
        provided: Objects that users provide.
        kept: Existing objects with other content, which are kept.
        garden: Whether the Garden is missing.
    """

    credentials: tuple[JsonObject, ...]
    provided: tuple[JsonObject, ...]
    kept: tuple[str, ...]
    garden: bool


async def observe_missing(client: Client, export: Export) -> Missing:
    """Return the objects that a cluster lacks; an interrupted import resumes with them.

    Raises:
        TransferError: The cluster is not prepared, or belongs to another Garden.
        KubeError: The API server refused, or did not answer.
    """
    if await client.find(NAMESPACE, Key("", GARDEN_NAMESPACE), metadata_only=True) is None:
        raise TransferError(
            f"the cluster has no namespace {GARDEN_NAMESPACE}: install the operator first"
        )
    garden = await _garden(client, export)
    live = {name_of(obj): obj for obj in await client.list(SECRET, GARDEN_NAMESPACE)}
    _check_credentials(export, live, await observe_managed(client, GARDEN_NAMESPACE, IDENTITY))
    credentials = tuple(obj for obj in export.credentials if name_of(obj) not in live)
    provided, kept = await _provided(client, export.provided)
    return Missing(credentials, provided, kept, garden is None)


async def _garden(client: Client, export: Export) -> JsonObject | None:
    """Return the Garden of the cluster, if it is the one of the export."""
    try:
        gardens = await client.list(GARDEN)
    except UnknownKind:
        return None
    for live in gardens:
        if (name_of(live), identity_of(live)) != (export.name, export.identity):
            raise TransferError(
                f'the file is of Garden {export.name} (cluster identity "{export.identity}"), but '
                f'the cluster has Garden {name_of(live)} (cluster identity "{identity_of(live)}")'
            )
        if deletion_timestamp_of(live):
            raise TransferError(
                f"Garden {export.name} is being deleted in the cluster: wait until it is gone"
            )
    return gardens[0] if gardens else None


def _check_credentials(
    export: Export, live: Mapping[str, JsonObject], managed: Iterable[ManagedSecret]
) -> None:
    """Check that the cluster has no credentials other than those in the export."""
    exported = {name_of(obj): obj for obj in export.credentials}
    names = {ManagedSecret.of(obj).name for obj in export.credentials}
    changed = {
        name for name, obj in exported.items() if name in live and not is_same(obj, live[name])
    }
    others = {secret.object_name for secret in managed if secret.name in names} - exported.keys()
    if different := sorted(changed | others):
        raise TransferError(
            "the cluster has other credentials than the file: Secret "
            f"{GARDEN_NAMESPACE}/{abridged(different, 1)}; nothing was written: delete the Garden "
            "that they belong to, or import into another cluster"
        )


def is_same(exported: JsonObject, live: JsonObject) -> bool:
    """Return whether a live object has the content of an exported one."""
    return all(
        (exported.get(part) or {}) == (live.get(part) or {}) for part in ("data", "binaryData")
    )


async def _provided(
    client: Client, provided: Iterable[JsonObject]
) -> tuple[tuple[JsonObject, ...], tuple[str, ...]]:
    """Return the objects that the cluster lacks, and those that it has with other content."""
    missing: list[JsonObject] = []
    kept: list[str] = []
    for obj in provided:
        live = await client.find(_KINDS[obj["kind"]], Key.of(obj))
        if live is None:
            missing.append(obj)
        elif not is_same(obj, live):
            kept.append(f"{obj['kind']} {Key.of(obj)}")
    return tuple(missing), tuple(kept)
