"""Stale conditions of nodes, which Calico wrote and no longer updates (spec 31 §6).

With an overlay, Calico reports the condition `NetworkUnavailable`. Without one, the route
controller does, and Calico's last word would stay. It is removed once; an annotation of the
ControlPlane says that this was done.
"""

from typing import Final

from pergola.api.kinds import NODE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    maps_at,
    resource_version_of,
)
from pergola.extension_api.cluster import Shoot
from pergola.extensions.actuator import Context
from pergola.extensions.shoot_access import shoot_client
from pergola.kube.client import Client
from pergola.providers.aws.config import GROUP
from pergola.providers.aws.overlay import has_overlay

DONE: Final = f"{GROUP}/calico-cleanup-completed"
_CONDITION: Final = "NetworkUnavailable"
_REASONS: Final = ("CalicoIsUp", "CalicoIsDown")


async def remove_conditions_of_calico(context: Context, obj: JsonObject, shoot: Shoot) -> None:
    """Remove the conditions from all nodes, unless there is an overlay or it was done before.

    Raises:
        ExtensionError: the Shoot's kubeconfig is missing, or its overlay setting is not a boolean.
        KubeError: an API server refused, or did not answer.
    """
    is_done = annotations_of(obj).get(DONE) == "true"
    if has_overlay(shoot.raw):
        if is_done:
            await _mark(context.client, obj, None)
        return
    if is_done or context.cluster is None or not shoot.is_awake:
        return
    async with shoot_client(context.client, context.cluster) as client:
        if client is None:
            return
        for node in await client.list(NODE):
            await _remove(client, node)
    await _mark(context.client, obj, "true")


async def _remove(client: Client, node: JsonObject) -> None:
    conditions = maps_at(node, "status", "conditions")
    left = [
        each
        for each in conditions
        if each.get("type") != _CONDITION or each.get("reason") not in _REASONS
    ]
    if len(left) == len(conditions):
        return
    # The test of the version fails if kubelet has written in between.
    patch: list[JsonObject] = [
        {"op": "test", "path": "/metadata/resourceVersion", "value": resource_version_of(node)},
        {"op": "replace", "path": "/status/conditions", "value": left},
    ]
    await client.patch(NODE, Key.of(node), patch, subresource="status")


async def _mark(client: Client, obj: JsonObject, value: str | None) -> None:
    await client.patch(
        GroupVersionKind.of(obj), Key.of(obj), {"metadata": {"annotations": {DONE: value}}}
    )
