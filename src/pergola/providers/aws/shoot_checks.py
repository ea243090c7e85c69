"""Validation of Shoots on AWS (spec 30 §1.4, §7.3, §11)."""

from collections.abc import Iterator
from typing import Final

from pergola.admission.draft import Draft
from pergola.api.field_errors import Cause, invalid, required
from pergola.api.objects import JsonObject, JsonValue, map_at, maps_at
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.extensions.webhooks.shoots import network_of
from pergola.providers.aws import overlay
from pergola.providers.aws.control_plane.checks import check_config
from pergola.providers.aws.control_plane_config import CONTROL_PLANE_CONFIG, ControlPlaneConfig
from pergola.providers.aws.shoot_defaults import OVERLAY, ROUTED_NETWORKS
from pergola.providers.aws.validation.facts import ShootFacts, facts_of
from pergola.providers.aws.validation.pools import check_pools
from pergola.providers.aws.validation.written import check_written, malformed

INFRASTRUCTURE: Final = "spec.provider.infrastructureConfig"
CONTROL_PLANE: Final = "spec.provider.controlPlaneConfig"
_ROUTE53: Final = "aws-route53"


def check_shoot(
    shoot: JsonObject, old: JsonObject | None = None, cloud_profile: JsonObject | None = None
) -> Iterator[Cause]:
    """Yield all findings about a Shoot on AWS, and about its change.

    Args:
        old: the Shoot as it is stored; None while it is created.
        cloud_profile: its CloudProfile or NamespacedCloudProfile; None if unknown, in which case
            zones, machine types and images are not checked.
    """
    if Shoot(shoot).is_workerless:
        return
    facts = facts_of(Shoot(shoot), cloud_profile)
    value = map_at(shoot, "spec", "provider").get("infrastructureConfig")
    before = map_at(old or {}, "spec", "provider").get("infrastructureConfig")
    if value is None:
        yield required(INFRASTRUCTURE, "nodes on AWS need a network: set it")
    else:
        yield from check_written(value, facts, before, path=INFRASTRUCTURE)
    yield from _nodes(facts)
    yield from _control_plane(shoot)
    yield from check_pools(shoot, old, _zones_in(value), cloud_profile)
    yield from _dns(shoot)
    yield from _overlay(shoot, facts)


def _control_plane(shoot: JsonObject) -> Iterator[Cause]:
    value = map_at(shoot, "spec", "provider").get("controlPlaneConfig")
    if value is None:
        return
    gvk = CONTROL_PLANE_CONFIG
    try:
        config = read_strict(ControlPlaneConfig, value, gvk, path=CONTROL_PLANE, needs_type=True)
    except Malformed as error:
        yield from malformed(error)
        return
    version = str(map_at(shoot, "spec", "kubernetes").get("version") or "")
    yield from check_config(config, version, CONTROL_PLANE)


def _nodes(facts: ShootFacts) -> Iterator[Cause]:
    if not facts.nodes and not facts.has_only_ipv6:
        yield required("spec.networking.nodes", "nodes on AWS need a range of addresses: set it")


def _zones_in(infrastructure_config: JsonValue) -> list[str]:
    config = {"config": infrastructure_config}
    return [str(zone.get("name")) for zone in maps_at(config, "config", "networks", "zones")]


def _dns(shoot: JsonObject) -> Iterator[Cause]:
    for index, provider in enumerate(maps_at(shoot, "spec", "dns", "providers")):
        is_ours = provider.get("type") == _ROUTE53 and provider.get("primary") is True
        if is_ours and provider.get("credentialsRef") is None:
            path = f"spec.dns.providers[{index}].credentialsRef"
            yield required(path, "name the credentials for the hosted zone")


def _overlay(shoot: JsonObject, facts: ShootFacts) -> Iterator[Cause]:
    enabled = Draft(shoot).get(*OVERLAY, "enabled")
    # Other plugins have an overlay only if the Shoot says so.
    is_known = network_of(shoot) in ROUTED_NETWORKS
    if is_known and enabled is not None and not isinstance(enabled, bool):
        yield invalid(overlay.PATH, enabled, overlay.NOT_BOOLEAN)
    elif facts.has_ipv6 and (enabled is True or (is_known and enabled is not False)):
        yield invalid(overlay.PATH, enabled, "must be false for Shoots with IPv6")
