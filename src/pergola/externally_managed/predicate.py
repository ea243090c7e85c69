"""Which objects a provider leaves alone (spec 50 §1.2, §2).

The event filter looks at the newest state only, so that a controller never sees a last event of an
object that was just handed over. It does not replace the check at the top of a reconciliation: what
is queued already comes through (§2, rule 3).
"""

from collections.abc import Mapping
from typing import Any, Final

from pergola.api.cluster_api import MANAGED_BY, PAUSED, WATCH_FILTER
from pergola.api.objects import JsonObject, annotations_of, labels_of, map_at, metadata_of
from pergola.runtime.caching.cache import Change


def is_externally_managed(obj: Mapping[str, Any]) -> bool:
    """Whether the object has the annotation; its value says nothing, not even `false`."""
    # Not the tolerant reader: a key whose value is no text is present all the same.
    annotations = map_at(obj, "metadata").get("annotations")
    return isinstance(annotations, dict) and MANAGED_BY in annotations


def manager_of(obj: Mapping[str, Any]) -> str | None:
    """Who manages the object, as the annotation says; None if its own provider does."""
    return annotations_of(obj).get(MANAGED_BY, "") if is_externally_managed(obj) else None


def resource_is_not_externally_managed(event: Change[JsonObject]) -> bool:
    """An event filter: whether a provider's controller may see the event."""
    obj = event.new if event.new is not None else event.old
    return obj is not None and not is_externally_managed(obj)


resource_externally_managed: Final = resource_is_not_externally_managed
"""The filter's first name; it passes the same events, and keeps *out* what others manage."""


def has_watch_label(obj: Mapping[str, Any], value: str) -> bool:
    """Whether the object is for the instance with this `--watch-filter`; all are if it is empty."""
    return not value or labels_of(obj).get(WATCH_FILTER) == value


def is_paused(obj: Mapping[str, Any], cluster: Mapping[str, Any] | None = None) -> bool:
    """Whether an object, or the Cluster to which it belongs, shall be left alone for now."""
    annotations = metadata_of(dict(obj)).get("annotations")
    if isinstance(annotations, dict) and PAUSED in annotations:
        return True
    return cluster is not None and map_at(cluster, "spec").get("paused") is True
