"""The Network of a Shoot (spec 40 §1.2, §4)."""

from collections.abc import Sequence

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.extension_api.caller.errors import CallerError
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.kinds import NETWORK


def choose_cidr(ip_families: Sequence[str], cidrs: Sequence[str]) -> str:
    """Choose the range for a Network from several; empty if there is none.

    A Shoot with both families keeps its IPv4 range, whichever family it names first.
    """
    if len(ip_families) > 1 and ip_families[0] == "IPv6" and len(cidrs) > 1:
        # Not always the second: the range of the spec precedes those of the status.
        return next((cidr for cidr in cidrs if ":" not in cidr), cidrs[1])
    return cidrs[0] if cidrs else ""


def network_of(cluster: Cluster) -> JsonObject | None:
    """Return the Network of a Shoot; None for one without workers.

    Raises:
        CallerError: the Shoot does not specify its network.
    """
    shoot = cluster.shoot
    if shoot is None:
        raise CallerError(f"Cluster {cluster.name} has no spec.shoot: there is nothing to deploy")
    if shoot.is_workerless:
        return None
    return {
        "apiVersion": NETWORK.gvk.api_version,
        "kind": NETWORK.kind,
        "metadata": {"name": name_of(shoot.raw), "namespace": cluster.name},
        "spec": _spec(cluster.name, shoot),
    }


def _spec(cluster: str, shoot: Shoot) -> JsonObject:
    networking = map_at(shoot.raw, "spec", "networking")
    families = shoot.ip_families
    spec = {
        "type": networking.get("type"),
        "podCIDR": choose_cidr(families, shoot.pod_ranges),
        "serviceCIDR": choose_cidr(families, shoot.service_ranges),
    }
    for name, value in spec.items():
        if not value:
            where = {"type": "type", "podCIDR": "pods", "serviceCIDR": "services"}[name]
            raise CallerError(
                f"Cluster {cluster}: spec.shoot.spec.networking.{where} is empty; "
                f"a Network needs it as spec.{name}"
            )
    if families:
        spec["ipFamilies"] = families
    if networking.get("providerConfig") is not None:
        spec["providerConfig"] = networking["providerConfig"]
    return spec
