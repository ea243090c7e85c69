"""Determine the IPAM mode of a cluster, which rendering a Network requires.

The mode is in `status.state`. If it is missing, the original extension may have reconciled the
Network; then read the mode from the Shoot, or from the objects last shipped to it.
"""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from typing import Final

from pergola.api.kinds import CONFIG_MAP
from pergola.api.objects import JsonObject, Key
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import ExtensionError, RequeueAfter
from pergola.extensions.actuator import Context
from pergola.extensions.shoot_access import shoot_client
from pergola.kube.errors import KubeError, NotFound
from pergola.manifests import KUBE_SYSTEM
from pergola.providers.networking.cilium.config_map import NAME
from pergola.providers.networking.cilium.ipam import Ipam
from pergola.providers.networking.shipped import shipped_object

CILIUM_CONFIG: Final = Key(KUBE_SYSTEM, NAME)
_SECONDS: Final = 15.0
_AGAIN: Final = 15.0


@dataclass(frozen=True, slots=True)
class Live:
    """The answer of a Shoot.

    Attributes:
        config_map: `cilium-config`, or None if the Shoot has none.
    """

    config_map: JsonObject | None


ReadLive = Callable[[Context], Awaitable[Live]]
"""Reads the ConfigMap `cilium-config` of a Shoot that is awake.

It raises `ExtensionError` or `KubeError` if the Shoot does not answer.
"""


async def read_live(context: Context) -> Live:
    """Read the ConfigMap with Gardener's kubeconfig of the Shoot (see `ReadLive`)."""
    if context.cluster is None:
        raise ExtensionError(f"there is no Cluster {context.namespace}")
    try:
        async with (
            asyncio.timeout(_SECONDS),
            shoot_client(context.client, context.cluster) as shoot,
        ):
            if shoot is None:
                raise ExtensionError("the Shoot is hibernated")
            return Live(await shoot.get(CONFIG_MAP, CILIUM_CONFIG))
    except NotFound:
        return Live(None)
    except TimeoutError:
        raise ExtensionError(f"the Shoot did not answer within {_SECONDS:g} s") from None


async def observe_ipam(
    context: Context,
    state: JsonObject,
    shoot: Shoot,
    *,
    is_new: bool,
    managed_resource: str,
    live: ReadLive = read_live,
) -> Ipam:
    """Return the mode of a cluster; it stays unknown only while the Shoot is hibernated.

    A Network without a recorded mode is read from the Shoot even if it is new: its status may have
    been lost, and agents that change their mode lose the addresses of their pods.

    Args:
        is_new: whether the cluster has no network yet that a wrong mode could break.
        managed_resource: the one with what was last shipped to the Shoot.

    Raises:
        RequeueAfter: the Shoot cannot be read now, and nothing else knows its mode.
        KubeError: the seed's API server refused, or did not answer.
    """
    chosen = Ipam.from_state(state)
    if chosen.is_known:
        return chosen
    problem: Exception | None = None
    if not shoot.is_hibernated:
        try:
            return _of((await live(context)).config_map) or Ipam(is_known=True)
        except (ExtensionError, KubeError) as error:
            problem = error
    shipped = _of(
        await shipped_object(
            context.client, Key(context.namespace, managed_resource), CONFIG_MAP, CILIUM_CONFIG
        )
    )
    if shipped is not None:
        return shipped
    if problem is None:
        return Ipam(is_known=is_new)
    raise RequeueAfter(_AGAIN, _unknown(context, problem))


def _of(config_map: JsonObject | None) -> Ipam | None:
    return None if config_map is None else Ipam.from_config_map(config_map)


def _unknown(context: Context, problem: Exception) -> ExtensionError:
    return ExtensionError(
        f"namespace {context.namespace}: ConfigMap {CILIUM_CONFIG} of the Shoot cannot be read, so"
        f" its IPAM mode is unknown and must not be changed by guessing: {problem}"
    )
