"""Extensions that the runtime cluster requires: condition `RequiredRuntime` (spec 21 §13.4)."""

from collections.abc import Collection, Mapping
from contextlib import suppress
from dataclasses import replace
from typing import Final

from pergola.api.conditions import FALSE, TRUE
from pergola.api.objects import JsonObject, Key, deletion_timestamp_of, map_at, name_of
from pergola.api.operator_v1alpha1 import EXTENSION, GARDEN, garden_from
from pergola.api.operator_v1alpha1.extension import REQUIRED_RUNTIME
from pergola.extension_api import kinds
from pergola.extension_api.kinds import ExtensionKind
from pergola.garden.landscape.served import Need, extensions_for
from pergola.kube.client import Client
from pergola.kube.errors import UnknownKind
from pergola.operator.conditions import Conditions, is_true
from pergola.operator.oldest import oldest
from pergola.operator.reconcile.extension_resources.inputs import is_ours
from pergola.operator.reconcile.extension_resources.required import required
from pergola.operator.run.observed import Template
from pergola.runtime.caching.cache import Cache
from pergola.runtime.controlling.controller import DONE, Again, Outcome

KINDS: Final[tuple[ExtensionKind, ...]] = (
    kinds.BACKUP_BUCKET,
    kinds.BACKUP_ENTRY,
    kinds.DNS_RECORD,
    kinds.EXTENSION,
)
"""The kinds of extension resources that a garden uses."""

_LISTED_SECONDS: Final = 2.0


def _served_by(extension: JsonObject, types: Mapping[str, Collection[str]]) -> set[str]:
    """Return the kinds of which an Extension serves at least one type."""
    return {
        kind
        for kind, of_kind in types.items()
        if any(extensions_for(Need(kind, of_type), [extension]) for of_type in of_kind)
    }


def type_of(obj: JsonObject) -> str:
    """Return the type of an extension resource of the garden; empty for those of others."""
    return str(map_at(obj, "spec").get("type") or "") if is_ours(obj) else ""


class RequiredRuntime:
    """Decides whether the runtime cluster requires an Extension.

    The runtime cluster requires it while the Garden needs one of its kinds and types, and then
    until the last such object is deleted: the Extension must delete it.

    Args:
        client: Of the runtime cluster.
        types: The types of existing extension resources of the garden, by kind.
    """

    def __init__(
        self,
        client: Client,
        types: Mapping[str, Cache[str]],
        template: Template,
        conditions: Conditions,
    ) -> None:
        self._client = client
        self._types = types
        self._template = template
        self._conditions = conditions

    async def reconcile(self, key: Key) -> Outcome:
        """Write the condition of an Extension.

        Raises:
            Malformed: The Garden has values of wrong types.
            KubeError: The API server refused, or did not answer.
        """
        if not all(cache.is_synced or cache.served is False for cache in self._types.values()):
            return Again(_LISTED_SECONDS)
        extension = await self._client.find(EXTENSION, key)
        if extension is None:
            return DONE
        needed = _served_by(extension, self._seen()) | await self._by_garden(extension)
        if not needed and is_true(extension, REQUIRED_RUNTIME):
            needed = _served_by(extension, await self._existing())
        if needed:
            text = f"Extension required for kinds [{' '.join(sorted(needed))}]"
            await self._conditions.patch(key, REQUIRED_RUNTIME, TRUE, "ExtensionRequired", text)
        else:
            text = "Extension not required for any kind"
            await self._conditions.patch(key, REQUIRED_RUNTIME, FALSE, "ExtensionNotRequired", text)
        return DONE

    def _seen(self) -> dict[str, set[str]]:
        """Return the types that watches have delivered, by kind."""
        return {
            kind: {of_type for _, of_type in cache.items() if of_type}
            for kind, cache in self._types.items()
        }

    async def _existing(self) -> dict[str, set[str]]:
        """Return the types of the existing objects, by kind.

        A watch may lag: without its extension, nothing would delete an object that the watch has
        not delivered yet.
        """
        found: dict[str, set[str]] = {}
        for kind, cache in self._types.items():
            with suppress(UnknownKind):
                listed = await self._client.live.list(cache.gvk, cache.namespace)
                found[kind] = {of_type for of_type in map(type_of, listed) if of_type}
        return found

    async def _by_garden(self, extension: JsonObject) -> set[str]:
        garden = oldest(await self._client.list(GARDEN))
        if garden is None or deletion_timestamp_of(garden) is not None:
            return set()
        extensions = tuple(sorted(await self._client.list(EXTENSION), key=name_of))
        landscape = replace(self._template(garden_from(garden)), extensions=extensions)
        name = name_of(extension)
        return {need.kind for need, names in required(landscape).items() if name in names}
