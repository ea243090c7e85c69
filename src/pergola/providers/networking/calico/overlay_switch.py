"""Remove an overlay only when every node has its routes (spec 40 §5.3 step 5).

Without routes, nodes would lose packets to each other. A policy in the Shoot's API server makes
nodes report their routes, so this applies only to API servers that support such policies.
"""

from collections.abc import Awaitable, Callable, Sequence
from typing import Final

from pergola.api.kinds import DAEMON_SET, NODE
from pergola.api.objects import JsonObject, Key, map_at, maps_at, name_of
from pergola.api.texts import abridged
from pergola.bundle.versions import Version, VersionError
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import Code, ExtensionError, RequeueAfter
from pergola.extensions.actuator import Context
from pergola.extensions.shoot_access import shoot_client
from pergola.providers.networking.shipped import shipped_object

Nodes = Callable[[Context], Awaitable[Sequence[JsonObject]]]

WAITING: Final = "waiting for routes to be created on all nodes before disabling overlay"
_AGAIN_SECONDS: Final = 10.0
_SHOWN: Final = 3
_CALICO_NODE: Final = Key("kube-system", "calico-node")
_TUNNELS: Final = ("FELIX_IPINIPENABLED", "FELIX_VXLANENABLED")
_POLICY: Final = "MutatingAdmissionPolicy"
_POLICY_VERSION: Final = (1, 36)


async def nodes_of_shoot(context: Context) -> Sequence[JsonObject]:
    """Return the nodes of the Shoot; none while it is hibernated.

    Raises:
        ExtensionError: the Shoot cannot be reached yet.
        KubeError: an API server refused, or did not answer.
    """
    if context.cluster is None:
        return []
    async with shoot_client(context.client, context.cluster) as client:
        return [] if client is None else await client.list(NODE)


async def wait_for_routes(
    context: Context, resource: str, shoot: Shoot, nodes: Nodes = nodes_of_shoot
) -> None:
    """Wait until an existing overlay may be removed.

    Args:
        resource: the ManagedResource with the objects that currently run in the Shoot.
        nodes: reads the nodes of the Shoot.

    Raises:
        RequeueAfter: some nodes have no routes yet.
        ExtensionError, KubeError: see `nodes_of_shoot`.
    """
    if not can_have_policy(shoot):
        return
    key = Key(context.namespace, resource)
    running = await shipped_object(context.client, key, DAEMON_SET, _CALICO_NODE)
    if running is None or not has_overlay(running):
        return
    if missing := without_routes(await nodes(context)):
        where = abridged(missing, _SHOWN)
        error = ExtensionError(f"{WAITING}: {where}", Code.RETRYABLE_CONFIGURATION_PROBLEM)
        raise RequeueAfter(_AGAIN_SECONDS, error)


def can_have_policy(shoot: Shoot) -> bool:
    """Return whether the Shoot's API server supports MutatingAdmissionPolicies."""
    try:
        version = Version.parse(shoot.kubernetes_version)
    except VersionError:
        return False
    if (version.major, version.minor) >= _POLICY_VERSION:
        return True
    server = map_at(shoot.raw, "spec", "kubernetes", "kubeAPIServer")
    served = map_at(server, "runtimeConfig")
    return map_at(server, "featureGates").get(_POLICY) is True and any(
        served.get(f"admissionregistration.k8s.io/{of}") is True for of in ("v1alpha1", "v1beta1")
    )


def has_overlay(daemon_set: JsonObject) -> bool:
    """Return whether a calico-node creates tunnels."""
    return any(
        variable.get("name") in _TUNNELS and variable.get("value") == "true"
        for container in maps_at(daemon_set, "spec", "template", "spec", "containers")
        for variable in maps_at(container, "env")
    )


def without_routes(nodes: Sequence[JsonObject]) -> list[str]:
    """Return the names of the nodes that have not reported their routes."""
    return sorted(name_of(node) for node in nodes if not _has_routes(node))


def _has_routes(node: JsonObject) -> bool:
    return any(
        condition.get("type") == "NetworkUnavailable"
        and condition.get("status") == "False"
        and condition.get("reason") == "RouteCreated"
        for condition in maps_at(node, "status", "conditions")
    )
