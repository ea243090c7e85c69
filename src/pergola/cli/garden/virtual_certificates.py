"""The certificates of a virtual cluster that `pergola garden certificates` lists."""

from typing import TYPE_CHECKING, Final

if TYPE_CHECKING:
    from pergola.api.objects import JsonObject
    from pergola.kube.client import Client
    from pergola.operator.care.extras import Lifetime

_TLS: Final = "type=kubernetes.io/tls"
"""Selects the Secrets that users fill with certificates."""


async def observe_virtual(runtime: "Client") -> "tuple[list[Lifetime], list[Lifetime]]":
    """Read the lifetimes of the gardenlets' client certificates, and of those in TLS Secrets.

    Raises:
        NotConnected: The Garden offers no access to its virtual cluster yet.
        ConfigurationError: The kubeconfig of the virtual cluster cannot be used.
        KubeError: A cluster refused, or did not answer.
    """
    from pergola.api.kinds import SECRET, SEED
    from pergola.garden.landscape import NAMESPACE
    from pergola.operator.care.extras import provided_lifetimes
    from pergola.operator.virtual_cluster import VirtualCluster

    async with VirtualCluster(runtime) as virtual:
        client = await virtual.client()
        seeds = await client.list(SEED)
        secrets = await client.list(SECRET, NAMESPACE, fields=_TLS)
    gardenlets = (lifetime_of_gardenlet(seed) for seed in seeds)
    return [each for each in gardenlets if each is not None], list(provided_lifetimes(secrets))


def lifetime_of_gardenlet(seed: "JsonObject") -> "Lifetime | None":
    """Return the lifetime of a gardenlet's client certificate; None if its Seed names none."""
    from pergola.api.objects import Key, map_at
    from pergola.health.times import read_time
    from pergola.operator.care.extras import Lifetime

    until = read_time(map_at(seed, "status").get("clientCertificateExpirationTimestamp"))
    return Lifetime(Key.of(seed), None, until, is_own=False) if until is not None else None
