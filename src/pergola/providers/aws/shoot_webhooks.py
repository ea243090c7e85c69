"""Admission webhooks for Shoots on AWS (spec 30 §1.4, §7.3)."""

from collections.abc import Callable, Iterator
from http import HTTPStatus
from typing import Final

from pergola.admission.registration import Registration
from pergola.admission.review import Handler, Request, Verdict, allowed, errored, invalid
from pergola.admission.webhook import Webhook
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject, deletion_timestamp_of, map_at
from pergola.extensions.webhooks.declare import webhook_name
from pergola.extensions.webhooks.mutation import Mutate, mutating
from pergola.extensions.webhooks.shoots import cloud_of, of_cloud, shoot_rule
from pergola.kube.patches import same
from pergola.providers.aws.shoot_checks import check_shoot
from pergola.providers.aws.shoot_defaults import mutate_shoot

CloudProfiles = Callable[[JsonObject], JsonObject | None]
"""Returns the CloudProfile or NamespacedCloudProfile of a Shoot; None if it is unknown."""

AWS: Final = "aws"
COMPONENT: Final = "admission-aws"
MUTATE_PATH: Final = "/webhooks/mutate"
VALIDATE_PATH: Final = "/webhooks/validate"


def aws_shoot_mutator(component: str = COMPONENT, *, path: str = MUTATE_PATH) -> Webhook:
    """Return the webhook that sets defaults in Shoots on AWS."""

    def choose(_: Request, shoot: JsonObject) -> Iterator[Mutate]:
        if cloud_of(shoot) == AWS:
            yield mutate_shoot

    registration = Registration(
        name=webhook_name("mutator", component),
        path=path,
        kind="mutating",
        rules=(shoot_rule("CREATE", "UPDATE"),),
        object_selector=of_cloud(AWS),
    )
    return Webhook(registration=registration, handler=mutating(choose))


def aws_shoot_validator(
    cloud_profiles: CloudProfiles, component: str = COMPONENT, *, path: str = VALIDATE_PATH
) -> Webhook:
    """Return the webhook that rejects Shoots that AWS cannot support.

    Findings that the stored Shoot also has are warnings: a new rule must not prevent users from
    hibernating or repairing a cluster.
    """
    registration = Registration(
        name=webhook_name("validator", component),
        path=path,
        kind="validating",
        rules=(shoot_rule("CREATE", "UPDATE"),),
        object_selector=of_cloud(AWS),
    )
    return Webhook(registration=registration, handler=_validating(cloud_profiles))


def _validating(cloud_profiles: CloudProfiles) -> Handler:
    def handle(request: Request) -> Verdict:
        shoot, old = request.object, request.old_object
        if shoot is None:
            return errored(HTTPStatus.BAD_REQUEST, "the review has no Shoot to validate")
        if cloud_of(shoot) != AWS:
            return allowed(because="the Shoot is not on AWS")
        if deletion_timestamp_of(shoot) is not None:
            return allowed(because="the Shoot is being deleted")
        if old is not None and same(map_at(shoot, "spec"), map_at(old, "spec")):
            return allowed(because="the spec is unchanged")
        profile = cloud_profiles(shoot)
        known = set() if old is None else set(check_shoot(old, old, profile))
        causes = list(check_shoot(shoot, old, profile))
        if new := tuple(cause for cause in causes if cause not in known):
            return invalid(f"Shoot.{GARDENER_CORE}", request.name, new)
        return allowed(warnings=tuple(f"{cause} (as before)" for cause in causes))

    return handle
