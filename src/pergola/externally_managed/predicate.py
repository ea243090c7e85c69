"""Predicates for objects that a provider must leave alone (spec 50 §1.2, §2).

The event filter considers only the newest state, so that a controller does not see the event that
hands over an object. It does not replace the check at the start of a reconciliation: keys that are
already queued still run (§2, rule 3).
"""

from collections.abc import Mapping
from typing import Any, Final

from pergola.api.cluster_api import MANAGED_BY, PAUSED, WATCH_FILTER
from pergola.api.objects import JsonObject, annotations_of, labels_of, map_at, metadata_of
from pergola.runtime.caching.cache import Change


def is_externally_managed(obj: Mapping[str, Any]) -> bool:
    """Return whether the object has the annotation with any value, even `false`."""
    # Not annotations_of, which skips values that are not strings: the key counts, not the value.
    annotations = map_at(obj, "metadata").get("annotations")
    return isinstance(annotations, dict) and MANAGED_BY in annotations


def manager_of(obj: Mapping[str, Any]) -> str | None:
    """Return the value of the annotation, or None if the provider manages the object."""
    return annotations_of(obj).get(MANAGED_BY, "") if is_externally_managed(obj) else None


def resource_is_not_externally_managed(event: Change[JsonObject]) -> bool:
    """Return whether a provider's controller may see the event."""
    obj = event.new if event.new is not None else event.old
    return obj is not None and not is_externally_managed(obj)


resource_externally_managed: Final = resource_is_not_externally_managed
"""The name of the same filter in the original proposal."""


def has_watch_label(obj: Mapping[str, Any], value: str) -> bool:
    """Return whether the object matches a `--watch-filter`; an empty filter matches everything."""
    return not value or labels_of(obj).get(WATCH_FILTER) == value


def is_paused(obj: Mapping[str, Any], cluster: Mapping[str, Any] | None = None) -> bool:
    """Return whether an object, or the Cluster that it belongs to, is paused."""
    annotations = metadata_of(dict(obj)).get("annotations")
    if isinstance(annotations, dict) and PAUSED in annotations:
        return True
    return cluster is not None and map_at(cluster, "spec").get("paused") is True
