"""Common parts of webhooks for Shoots: selectors, and when defaults do not apply."""

from typing import Final

from pergola.admission.registration import Rule
from pergola.admission.review import Operation
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject, map_at
from pergola.extension_api.cluster import Shoot
from pergola.kube.patches import same

NETWORK_TYPE: Final = "networking.extensions.gardener.cloud"
CLOUD_TYPE: Final = "provider.extensions.gardener.cloud"


def shoot_rule(*operations: Operation) -> Rule:
    """Return the rule for Shoots, without their status."""
    return Rule(operations, (GARDENER_CORE,), ("v1beta1",), ("shoots",))


def of_network(network: str) -> JsonObject:
    """Select Shoots with a network plugin; the API server labels them."""
    return {"matchLabels": {f"{NETWORK_TYPE}/{network}": "true"}}


def of_cloud(cloud: str) -> JsonObject:
    """Select Shoots on a cloud; the API server labels them."""
    return {"matchLabels": {f"{CLOUD_TYPE}/{cloud}": "true"}}


def network_of(shoot: JsonObject) -> str:
    """Return `spec.networking.type`."""
    return str(map_at(shoot, "spec", "networking").get("type") or "")


def cloud_of(shoot: JsonObject) -> str:
    """Return `spec.provider.type`."""
    return str(map_at(shoot, "spec", "provider").get("type") or "")


def is_left_alone(new: JsonObject, old: JsonObject | None) -> bool:
    """Return whether to skip defaults: no workers, migrating, or an unchanged spec."""
    if Shoot(new).is_workerless or is_moving(new):
        return True
    return old is not None and (
        is_rescheduled(new, old) or same(map_at(new, "spec"), map_at(old, "spec"))
    )


def is_moving(shoot: JsonObject) -> bool:
    """Return whether its control plane is migrating to another seed, or about to."""
    status = map_at(shoot, "status")
    operation = map_at(status, "lastOperation")
    kind, state = operation.get("type"), operation.get("state")
    if kind == "Migrate" or (kind == "Restore" and state != "Succeeded"):
        return True
    assigned, current = map_at(shoot, "spec").get("seedName"), status.get("seedName")
    return bool(operation and assigned and current) and assigned != current


def is_rescheduled(new: JsonObject, old: JsonObject) -> bool:
    """Return whether a Shoot with a seed is assigned another one."""
    before = map_at(old, "spec").get("seedName")
    return bool(before) and before != map_at(new, "spec").get("seedName")
