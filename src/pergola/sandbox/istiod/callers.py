"""Identification of gateways by their addresses.

Gateways get private keys, so each must be a pod of the namespace whose keys it requests. Its
address proves that: a TCP connection needs answers, which the node sends to the address's owner.
"""

from typing import Final

from pergola.api.kinds import POD
from pergola.api.objects import JsonObject, map_at
from pergola.kube.client import Client
from pergola.runtime.caching.cache import Cache

_MAPPED: Final = "::ffff:"  # an IPv4 address, as a socket for both families reports it
_ENDED: Final = ("Failed", "Succeeded")  # other pods may have their addresses by now


class Callers:
    """The addresses of all pods."""

    def __init__(self, client: Client) -> None:
        self.pods: Cache[str] = Cache(client, POD, keep=address_of)

    def is_in(self, namespace: str, address: str | None) -> bool:
        """Return whether a connection from an address is that of a pod in a namespace."""
        plain = (address or "").removeprefix(_MAPPED)
        return bool(plain) and any(
            found == plain for key, found in self.pods.items() if key.namespace == namespace
        )


def address_of(pod: JsonObject) -> str:
    """Return the address that a pod shares with no other; an empty text if it has none."""
    status = map_at(pod, "status")
    if map_at(pod, "spec").get("hostNetwork") or status.get("phase") in _ENDED:
        return ""
    return str(status.get("podIP", ""))
