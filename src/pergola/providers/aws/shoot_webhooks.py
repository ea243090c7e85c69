"""Validation of Shoots on AWS by the webhook (spec 30 §1.4, §7.3)."""

from collections.abc import Callable
from http import HTTPStatus
from typing import Final

from pergola.admission.review import Handler, Request, Verdict, allowed, errored, invalid
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject, annotations_of, deletion_timestamp_of, map_at
from pergola.extensions.webhooks.shoots import cloud_of
from pergola.kube.patches import same
from pergola.providers.aws.shoot_checks import check_shoot
from pergola.providers.aws.validation.annotation_hints import annotation_hints
from pergola.providers.aws.validation.pool_hints import pool_hints

AS_BEFORE: Final = "(as before)"
"""The end of a warning about a finding that the stored Shoot also has."""
CloudProfiles = Callable[[JsonObject], JsonObject | None]
"""Returns the CloudProfile or NamespacedCloudProfile of a Shoot; None if it is unknown."""


def shoot_validator(cloud_profiles: CloudProfiles) -> Handler:
    """Return the handler that rejects Shoots that AWS cannot support.

    Findings that the stored Shoot also has are warnings: a new rule must not prevent users from
    hibernating or repairing a cluster. So is what Gardener admits and AWS refuses.
    """

    def handle(request: Request) -> Verdict:
        shoot, old = request.object, request.old_object
        if shoot is None:
            return errored(HTTPStatus.BAD_REQUEST, "the review has no Shoot to validate")
        if cloud_of(shoot) != "aws":
            return allowed(because="the Shoot is not on AWS")
        if deletion_timestamp_of(shoot) is not None:
            return allowed(because="the Shoot is being deleted")
        hints = [*pool_hints(shoot, old), *annotation_hints(shoot)]
        if old is not None and same(map_at(shoot, "spec"), map_at(old, "spec")):
            if annotations_of(shoot) == annotations_of(old):
                hints = []
            return allowed(because="the spec is unchanged", warnings=tuple(map(str, hints)))
        profile = cloud_profiles(shoot)
        known = set() if old is None else set(check_shoot(old, old, profile))
        causes = list(check_shoot(shoot, old, profile))
        if new := tuple(cause for cause in causes if cause not in known):
            return invalid(f"Shoot.{GARDENER_CORE}", request.name, new)
        return allowed(warnings=(*(f"{each} {AS_BEFORE}" for each in causes), *map(str, hints)))

    return handle
