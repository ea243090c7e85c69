"""The webhooks of `admission-aws`, registered as the original registers them."""

from collections.abc import Awaitable, Iterator, Mapping, Sequence
from typing import Final

from pergola.admission.registration import Registration, Rule
from pergola.admission.review import Handler, Request, Verdict, allowed
from pergola.admission.webhook import Webhook
from pergola.api.kinds import GARDENER_CORE
from pergola.api.objects import JsonObject
from pergola.extensions.garden import Garden
from pergola.extensions.webhooks.declare import webhook_name
from pergola.extensions.webhooks.mutation import Mutate, mutating
from pergola.extensions.webhooks.shoots import cloud_of, of_cloud
from pergola.providers.aws.admission.image_flavors import (
    NamespacedCloudProfileMutator,
    mutate_cloud_profile,
)
from pergola.providers.aws.admission.parents import Parents
from pergola.providers.aws.admission.validators import (
    AWS,
    OfGarden,
    check_backup_bucket_object,
    check_identity,
    check_secret_object,
    check_seed,
    checking,
)
from pergola.providers.aws.shoot_defaults import mutate_shoot
from pergola.providers.aws.shoot_webhooks import shoot_validator
from pergola.providers.aws.validation.cloud_profile import check_cloud_profile
from pergola.providers.aws.workload_identity import WORKLOAD_IDENTITY

COMPONENT: Final = "admission-aws"
CREDENTIALS_LABEL: Final = "provider.shoot.gardener.cloud/aws"
"""The label that Gardener sets on Secrets that a binding of type `aws` refers to."""
_SECURITY: Final = WORKLOAD_IDENTITY.group


def admission_webhooks(garden: Garden) -> Sequence[Webhook]:
    """Return all webhooks for objects of the garden."""
    parents = Parents(garden)
    checks = OfGarden(garden, parents)
    validators = {
        "backupbuckets": checking(check_backup_bucket_object),
        "cloudprofiles": checking(lambda profile, _: check_cloud_profile(profile)),
        "namespacedcloudprofiles": checking(checks.check_namespaced_cloud_profile),
        "secretbindings": checking(checks.check_secret_binding),
        "seeds": checking(check_seed),
        "shoots": shoot_validator(garden.cloud_profiles()),
        "credentialsbindings": checking(checks.check_credentials_binding),
        "workloadidentities": checking(check_identity),
    }
    mutators: Mapping[str, Mutate] = {
        "cloudprofiles": mutate_cloud_profile,
        "namespacedcloudprofiles": NamespacedCloudProfileMutator(parents),
        "shoots": mutate_shoot,
    }
    return [_mutator(mutators), _validator(validators), _secret_validator()]


def _mutator(mutators: Mapping[str, Mutate]) -> Webhook:
    def choose(request: Request, obj: JsonObject) -> Iterator[Mutate]:
        resource = request.resource.resource
        if resource in mutators and (resource != "shoots" or cloud_of(obj) == AWS):
            yield mutators[resource]

    resources = (
        "cloudprofiles",
        "namespacedcloudprofiles",
        "namespacedcloudprofiles/status",
        "shoots",
    )
    registration = Registration(
        name=webhook_name("mutator", COMPONENT),
        path="/webhooks/mutate",
        kind="mutating",
        rules=tuple(_rule(GARDENER_CORE, "v1beta1", each) for each in resources),
        object_selector=of_cloud(AWS),
    )
    return Webhook(registration=registration, handler=mutating(choose))


def _validator(validators: Mapping[str, Handler]) -> Webhook:
    def handle(request: Request) -> Verdict | Awaitable[Verdict]:
        handler = validators.get(request.resource.resource)
        if handler is None:
            return allowed(because="there is no rule for the kind")
        return handler(request)

    # The original asks for any version of kinds that it knows in its own form.
    versions = {"workloadidentities": WORKLOAD_IDENTITY.version}
    security = ("credentialsbindings", "workloadidentities")
    registration = Registration(
        name=webhook_name("validator", COMPONENT),
        path="/webhooks/validate",
        kind="validating",
        rules=tuple(
            _rule(_SECURITY if each in security else GARDENER_CORE, versions.get(each, "*"), each)
            for each in validators
        ),
        object_selector=of_cloud(AWS),
    )
    return Webhook(registration=registration, handler=handle)


def _secret_validator() -> Webhook:
    registration = Registration(
        name=webhook_name("secrets.validator", COMPONENT),
        path="/webhooks/validate/secrets",
        kind="validating",
        rules=(_rule("", "v1", "secrets"),),
        object_selector={"matchLabels": {CREDENTIALS_LABEL: "true"}},
    )
    return Webhook(registration=registration, handler=checking(check_secret_object))


def _rule(group: str, version: str, resource: str) -> Rule:
    return Rule(("CREATE", "UPDATE"), (group,), (version,), (resource,))
