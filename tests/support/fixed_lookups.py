"""Reads of the operator's webhooks that return fixed objects."""

from collections.abc import Sequence
from dataclasses import dataclass, field

from pergola.api.objects import JsonObject, Key
from pergola.kube.errors import KubeError


@dataclass
class FixedLookups:
    """Objects that exist, or the error of every read."""

    existing_gardens: Sequence[JsonObject] = ()
    existing_extensions: Sequence[JsonObject] = ()
    config_maps: dict[Key, JsonObject] = field(default_factory=dict)
    error: KubeError | None = None

    async def gardens(self) -> list[JsonObject]:
        """Return the Gardens."""
        self._fail()
        return list(self.existing_gardens)

    async def extensions(self) -> list[JsonObject]:
        """Return the Extensions."""
        self._fail()
        return list(self.existing_extensions)

    async def config_map(self, key: Key) -> JsonObject | None:
        """Return a ConfigMap, or None if it does not exist."""
        self._fail()
        return self.config_maps.get(key)

    def _fail(self) -> None:
        if self.error is not None:
            raise self.error
