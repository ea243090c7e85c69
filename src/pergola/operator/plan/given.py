"""The Garden to plan: a manifest as an API server would store it over the live object."""

from datetime import datetime
from typing import Final

from pergola.api.objects import JsonObject, annotations_of, labels_of, metadata_of

_NO_UID: Final = "00000000-0000-0000-0000-000000000000"


def stored(manifest: JsonObject, live: JsonObject | None, now: datetime) -> JsonObject:
    """Return a manifest with the status, and the metadata that only a server sets.

    Labels and annotations of the live Garden are kept, as with `kubectl apply`.

    Args:
        manifest: With its defaults.
        live: None if the Garden does not exist yet.
    """
    if live is None:
        created = {"uid": _NO_UID, "creationTimestamp": f"{now:%Y-%m-%dT%H:%M:%SZ}"}
        return {**manifest, "metadata": {**created, **metadata_of(manifest)}}
    metadata: JsonObject = {**metadata_of(live)}
    for field, read in (("labels", labels_of), ("annotations", annotations_of)):
        if both := {**read(live), **read(manifest)}:
            metadata[field] = both
    status = {"status": live["status"]} if "status" in live else {}
    return {**manifest, "metadata": metadata, **status}
