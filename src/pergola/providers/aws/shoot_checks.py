"""Validation of Shoots on AWS (spec 30 §1.4, §7.3, §11)."""

from collections.abc import Iterator
from typing import Final

from pergola.admission.draft import Draft
from pergola.api.field_errors import Cause, invalid, required
from pergola.api.objects import JsonObject, map_at
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import Shoot
from pergola.extensions.provider_config import read_strict
from pergola.extensions.webhooks.shoots import network_of
from pergola.providers.aws import overlay
from pergola.providers.aws.control_plane_config import CONTROL_PLANE_CONFIG, ControlPlaneConfig
from pergola.providers.aws.shoot_defaults import OVERLAY, ROUTED_NETWORKS
from pergola.providers.aws.validation.facts import ShootFacts, facts_of
from pergola.providers.aws.validation.written import check_written, malformed

INFRASTRUCTURE: Final = "spec.provider.infrastructureConfig"
CONTROL_PLANE: Final = "spec.provider.controlPlaneConfig"


def check_shoot(
    shoot: JsonObject, old: JsonObject | None = None, cloud_profile: JsonObject | None = None
) -> Iterator[Cause]:
    """Yield all findings about a Shoot on AWS, and about its change.

    Args:
        old: the Shoot as it is stored; None while it is created.
        cloud_profile: its CloudProfile or NamespacedCloudProfile; None if unknown, in which case
            zones are not checked.
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
    yield from _control_plane(shoot)
    yield from _overlay(shoot, facts)


def _control_plane(shoot: JsonObject) -> Iterator[Cause]:
    value = map_at(shoot, "spec", "provider").get("controlPlaneConfig")
    if value is None:
        return
    gvk = CONTROL_PLANE_CONFIG
    try:
        read_strict(ControlPlaneConfig, value, gvk, path=CONTROL_PLANE, needs_type=True)
    except Malformed as error:
        yield from malformed(error)


def _overlay(shoot: JsonObject, facts: ShootFacts) -> Iterator[Cause]:
    if network_of(shoot) not in ROUTED_NETWORKS:
        return
    enabled = Draft(shoot).get(*OVERLAY, "enabled")
    if enabled is not None and not isinstance(enabled, bool):
        yield invalid(overlay.PATH, enabled, overlay.NOT_BOOLEAN)
    elif facts.has_ipv6 and enabled is not False:
        yield invalid(overlay.PATH, enabled, "must be false for Shoots with IPv6")
