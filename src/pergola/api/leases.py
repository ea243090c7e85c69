"""Facts about Leases."""

from pergola.api.objects import JsonObject, map_at


def holder_of(lease: JsonObject) -> str:
    """Return the identity of the holder of a Lease; empty if it has none."""
    identity = map_at(lease, "spec").get("holderIdentity")
    return identity if isinstance(identity, str) else ""
