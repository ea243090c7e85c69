"""From an `Infrastructure` and its `Cluster` to the desired state in AWS (spec 30 §2, §5)."""

from base64 import b64decode
from binascii import Error as NotBase64
from collections import Counter
from collections.abc import Mapping
from contextlib import suppress
from typing import Final

from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    JsonValue,
    Key,
    map_at,
    maps_at,
    namespace_of,
)
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import configuration_problem
from pergola.extensions.provider_config import read_leniently, read_strict
from pergola.extensions.workers.distribution import share, share_of_either, surge_of
from pergola.providers.aws.config import INFRASTRUCTURE_CONFIG, InfrastructureConfig
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.overlay import has_overlay
from pergola.providers.aws.worker_config import WORKER_CONFIG

_IPV4: Final = "IPv4"
_EFA_INTERFACES: Final = ("efa", "efa-only")


def desired_of(
    infrastructure: JsonObject,
    cluster: Cluster | None,
    *,
    tag_worker_subnets: bool = True,
    permissions_boundary: str = "",
    strict: bool = True,
) -> Desired:
    """Return the desired state of an Infrastructure; without a Cluster, for IPv4 alone.

    Admission refuses a zone that is listed twice, but old clusters may have one: like in the
    original, the first entry counts.

    Args:
        strict: whether unknown fields of the config are an error; a deletion ignores them.

    Raises:
        Malformed: `spec.providerConfig` is not an InfrastructureConfig.
        ExtensionError: the spec has no region, or a key that is not valid base64; or the Shoot's
            overlay is neither on nor off.
    """
    spec = map_at(infrastructure, "spec")
    config = _config(spec.get("providerConfig"), strict=strict)
    region = spec.get("region")
    if not isinstance(region, str) or not region:
        key = Key.of(infrastructure)
        raise configuration_problem(
            f"Infrastructure {key}: spec.region is missing; name an AWS region"
        )
    shoot = (cluster.shoot if cluster else None) or Shoot({})
    return Desired(
        technical_id=namespace_of(infrastructure),
        region=region,
        config=config.with_each_zone_once(),
        families=tuple(shoot.ip_families) or (_IPV4,),
        node_range=shoot.node_range,
        pod_ranges=_said(shoot, "pods"),
        service_ranges=_said(shoot, "services"),
        shoot_uid=str(map_at(shoot.raw, "metadata").get("uid") or ""),
        ssh_public_key=_public_key(infrastructure),
        overlay=has_overlay(shoot.raw),
        uses_efa=_uses_efa(shoot),
        most_nodes=_most_nodes(shoot),
        tag_worker_subnets=tag_worker_subnets,
        permissions_boundary=permissions_boundary,
    )


def _config(value: JsonValue, *, strict: bool) -> InfrastructureConfig:
    gvk = INFRASTRUCTURE_CONFIG
    if strict:
        return read_strict(InfrastructureConfig, value, gvk, needs_type=True)
    return read_leniently(InfrastructureConfig, value, gvk, path="spec.providerConfig")


def _said(shoot: Shoot, of: str) -> tuple[str, ...]:
    """Return a range in the Shoot's spec; the one in its status is derived from ours."""
    value = map_at(shoot.raw, "spec", "networking").get(of)
    return (value,) if isinstance(value, str) and value else ()


def _uses_efa(shoot: Shoot) -> bool:
    """Return whether a worker pool uses EFA: `networkInterfaces[].type` in its `WorkerConfig`.

    The machine type is irrelevant: many can have such interfaces, but have none by default.
    """
    pools = maps_at(shoot.raw, "spec", "provider", "workers")
    configs = [map_at(pool, "providerConfig") for pool in pools]
    return any(
        interface.get("type") in _EFA_INTERFACES
        for config in configs
        if GroupVersionKind.of(config).group_kind == WORKER_CONFIG.group_kind
        for interface in maps_at(config, "networkInterfaces")
    )


def _most_nodes(shoot: Shoot) -> Mapping[str, int]:
    """Return the most nodes by zone: maximum and surge of all pools. Skip malformed pools."""
    found: Counter[str] = Counter()
    for pool in maps_at(shoot.raw, "spec", "provider", "workers"):
        zones, maximum = pool.get("zones"), pool.get("maximum")
        if not isinstance(zones, list) or not isinstance(maximum, int):
            continue
        for index, zone in enumerate(zones):
            most = share(maximum, index, len(zones))
            with suppress(ValueError):
                surge = share_of_either(pool.get("maxSurge"), index, len(zones), maximum)
                most += surge_of(surge, most)
            found[str(zone)] += most
    return found


def _public_key(infrastructure: JsonObject) -> bytes:
    value = map_at(infrastructure, "spec").get("sshPublicKey") or ""
    try:
        return b64decode(value, validate=True)
    except (NotBase64, TypeError, ValueError):
        key = Key.of(infrastructure)
        raise configuration_problem(
            f"Infrastructure {key}: spec.sshPublicKey is not valid base64"
        ) from None
