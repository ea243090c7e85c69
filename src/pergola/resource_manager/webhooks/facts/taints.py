"""The taints of nodes that system components tolerate (spec 12 §2)."""

from collections.abc import Awaitable, Callable, Iterable, Sequence
from typing import Final, NamedTuple, TypeAlias

from pergola.api.objects import JsonObject, maps_at

_KUBERNETES: Final = "kubernetes.io/"
_AUTOSCALER: Final = "ToBeDeletedByClusterAutoscaler"


class Taint(NamedTuple):
    """A taint of a node; value and effect may be empty."""

    key: str
    value: str
    effect: str

    def toleration(self) -> JsonObject:
        """Return the matching toleration (spec 12 §2.6)."""
        toleration = {"key": self.key, "operator": "Equal" if self.value else "Exists"}
        if self.value:
            toleration["value"] = self.value
        if self.effect:
            toleration["effect"] = self.effect
        return toleration

    def __str__(self) -> str:
        value = f"={self.value}" if self.value else ""
        return f"{self.key}{value}:{self.effect}"


SystemTaints: TypeAlias = Callable[[], Awaitable[Sequence[Taint]]]
"""Returns the taints of the nodes for system components, sorted by `in_order`; raises KubeError."""


def taints_of(node: JsonObject) -> tuple[Taint, ...]:
    """Return the taints of a node that system components must tolerate."""
    found = (
        Taint(*(_text(taint.get(name)) for name in Taint._fields))
        for taint in maps_at(node, "spec", "taints")
    )
    return tuple(taint for taint in found if not _is_ignored(taint))


def in_order(taints: Iterable[Taint]) -> list[Taint]:
    """Return the distinct taints by key, operator of their toleration, value, and effect."""
    return sorted(set(taints), key=lambda t: (t.key, not t.value, t.value, t.effect))


def _is_ignored(taint: Taint) -> bool:
    """Return whether a taint reflects the state of a node rather than its purpose."""
    return _KUBERNETES in taint.key or taint.key == _AUTOSCALER


def _text(value: object) -> str:
    return value if isinstance(value, str) else ""
