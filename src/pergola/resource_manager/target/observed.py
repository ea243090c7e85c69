"""The cached parts of managed objects.

They are facts that controllers need repeatedly: the origin, a digest of the revertible fields,
health and rollout. The object itself is kept as packed bytes, unless it is large or a Secret.
"""

import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final, NamedTuple

import orjson

from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    metadata_of,
    resource_version_of,
    uid_of,
)
from pergola.health import check, progressing
from pergola.resource_manager.target.content import content_digest
from pergola.runtime.caching.cache import Change
from pergola.runtime.caching.packed import pack, unpack

_PACKED_AT_MOST: Final = 16 * 1024


@dataclass(frozen=True, slots=True)
class Observed:
    """The cached parts of a managed object.

    Attributes:
        digest: changes exactly when an edit changes what a reconciliation could revert.
        problem: why the object is unhealthy, or None.
        rollout: why the object is still progressing, or None.
        packed: the object without its managed fields, if it is small and not a Secret.
    """

    uid: str
    version: str
    origin: str
    digest: bytes
    problem: str | None
    rollout: str | None
    deleting: bool
    packed: bytes | None

    def unpack(self) -> JsonObject | None:
        """Return the object, if it was kept."""
        return unpack(self.packed) if self.packed else None


class TargetChange(NamedTuple):
    """A managed object appeared, changed or disappeared."""

    gvk: GroupVersionKind
    change: Change[Observed]


def keeper(
    gvk: GroupVersionKind, is_here: Callable[[str], bool]
) -> Callable[[JsonObject], Observed]:
    """Return the function that decides which facts to keep about objects of a kind.

    Args:
        is_here: whether objects with an origin are handled here; others are not kept as a whole.
    """
    packs = gvk.group_kind != SECRET.group_kind

    def keep(obj: JsonObject) -> Observed:
        metadata_of(obj).pop("managedFields", None)
        origin = sys.intern(annotations_of(obj).get(marks.ORIGIN, ""))
        is_kept = packs and is_here(origin)
        return Observed(
            uid=uid_of(obj),
            version=resource_version_of(obj),
            origin=origin,
            digest=content_digest(obj),
            problem=check(obj),
            rollout=progressing(obj),
            deleting=deletion_timestamp_of(obj) is not None,
            packed=pack(obj) if is_kept and len(orjson.dumps(obj)) <= _PACKED_AT_MOST else None,
        )

    return keep
