"""The part of the feed that a viewer may see, while their permissions change."""

from collections.abc import Sequence

from pergola.api.objects import Key
from pergola.dashboard.access.viewer import Viewer
from pergola.dashboard.state.feed import Changes
from pergola.dashboard.state.scope import Item, Place, Scope


class Visible:
    """A filter of the feed for one open page."""

    def __init__(self, viewer: Viewer) -> None:
        self._viewer = viewer
        self._allowed: dict[Place, bool] = {}
        self._shown: set[str] = set()

    @property
    def places(self) -> frozenset[Place]:
        """The places that the viewer may see, of those in the feed."""
        return frozenset(place for place, is_allowed in self._allowed.items() if is_allowed)

    async def has_changed(self) -> bool:
        """Return whether the viewer's permissions for the filtered places have changed."""
        before = self._allowed
        self._allowed = await self._ask(before)
        return before != self._allowed

    async def of(self, changes: Changes) -> tuple[Sequence[Item], Sequence[str]]:
        """Return the entries that the viewer may see, and those to remove from the page."""
        if changes.is_complete:
            self._allowed.clear()
            self._shown.clear()
        new = {item.scope.place for item in changes.items} - self._allowed.keys()
        self._allowed |= await self._ask(dict.fromkeys(new, False))
        items = [item for item in changes.items if self._allowed[item.scope.place]]
        gone = [name for name in changes.gone if name in self._shown]
        self._shown.difference_update(gone)
        self._shown.update(item.id for item in items)
        return items, gone

    async def _ask(self, places: dict[Place, bool]) -> dict[Place, bool]:
        scopes = [Scope(place.gvk, Key(place.namespace, "")) for place in places]
        return dict(zip(places, await self._viewer.may_see(scopes), strict=True))
