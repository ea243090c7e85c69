"""The webhook that validates Gardens (spec 20 §6, spec 21 §7).

If neither the spec nor the requested operations change, they are not validated again: a Garden
whose version or extension is no longer supported can still be finalized and deleted.
"""

from collections.abc import Iterable, Sequence
from http import HTTPStatus
from typing import Final

from msgspec.structs import replace

from pergola.admission import (
    Registration,
    Request,
    Rule,
    Verdict,
    Webhook,
    allowed,
    denied,
    errored,
    invalid,
)
from pergola.api import marks
from pergola.api.field_errors import Cause, required
from pergola.api.objects import JsonObject, annotations_of, finalizers_of, name_of
from pergola.api.operator_v1alpha1 import GROUP, VERSION, Garden, garden_from
from pergola.api.schema import Finding, Malformed
from pergola.api.schema.validate import REQUIRED
from pergola.garden.landscape.lost_secrets import given_up
from pergola.garden.rules.references import types_for_gardens
from pergola.garden.rules.validation import Facts, check_garden, check_garden_update
from pergola.kube.errors import KubeError
from pergola.kube.patches import same
from pergola.operator.webhooks.garden.warnings import warnings_about
from pergola.operator.webhooks.lookups import Lookups
from pergola.runtime.clock import Clock

REGISTRATION: Final = Registration(
    name="garden-validation.operator.gardener.cloud",
    path="/webhooks/validate-operator-gardener-cloud-v1alpha1-garden",
    kind="validating",
    rules=(Rule(("CREATE", "UPDATE", "DELETE"), (GROUP,), (VERSION,), ("gardens",)),),
    match_policy="Exact",
)
_KIND: Final = f"Garden.{GROUP}"
_ONLY_ONE: Final = (
    "there can be only one operator.gardener.cloud/v1alpha1.Garden resource in the system at a time"
)
_NOT_ON_CREATION: Final = (marks.OPERATOR_FINALIZER, marks.REFERENCE_PROTECTION)


def is_same_content(new: JsonObject, old: JsonObject) -> bool:
    """Return whether everything that the rules are about is the same."""
    after, before = (
        (annotations_of(obj).get(marks.OPERATION), given_up(obj)) for obj in (new, old)
    )
    return after == before and same(new.get("spec"), old.get("spec"))


def confirmation_problem(obj: JsonObject) -> str | None:
    """Return why an object may not be deleted, or None if its deletion is confirmed."""
    if marks.is_truthy(annotations_of(obj).get(marks.CONFIRMATION_DELETION)):
        return None
    return f'must have a "{marks.CONFIRMATION_DELETION}" annotation to delete'


def creation_problem(new: JsonObject, existing: Sequence[JsonObject]) -> str | None:
    """Return why a Garden cannot be created, regardless of its validity; None if it can.

    Args:
        existing: All Gardens in the cluster.
    """
    if existing:
        return _ONLY_ONE
    for finalizer in finalizers_of(new):
        if finalizer in _NOT_ON_CREATION:
            return f'finalizer "{finalizer}" cannot be added on creation'
    return None


class GardenValidation:
    """The handler of the webhook.

    Attributes:
        any_version: Whether to accept unsupported versions of Kubernetes.
    """

    def __init__(self, lookups: Lookups, clock: Clock, *, any_version: bool) -> None:
        self._lookups = lookups
        self._clock = clock
        self.any_version = any_version

    async def __call__(self, request: Request) -> Verdict:
        """Review one request and report all findings at once."""
        new, old = request.object, request.old_object
        try:
            if request.operation == "CREATE" and new is not None:
                return await self._create(new)
            if request.operation == "UPDATE" and new is not None and old is not None:
                return await self._update(new, old)
        except Malformed as error:
            return invalid(_KIND, name_of(new or {}), tuple(map(cause_of, error.findings)))
        except KubeError as error:
            return errored(HTTPStatus.INTERNAL_SERVER_ERROR, str(error))
        if request.operation == "DELETE" and old is not None:
            problem = confirmation_problem(old)
            return denied(problem) if problem else allowed(because="the deletion is confirmed")
        return errored(HTTPStatus.BAD_REQUEST, f"no Garden in the {request.operation} request")

    async def _create(self, new: JsonObject) -> Verdict:
        if problem := creation_problem(new, await self._lookups.gardens()):
            return Verdict(
                allowed=False, code=HTTPStatus.BAD_REQUEST, reason="BadRequest", message=problem
            )
        garden = garden_from(new)
        return self._verdict(garden, None, check_garden(garden, await self._facts(garden)))

    async def _update(self, new: JsonObject, old: JsonObject) -> Verdict:
        if is_same_content(new, old):
            return allowed(because="spec and operations are unchanged")
        garden, before = garden_from(new), _readable(old)
        facts = await self._facts(garden)
        if before is None:
            return self._verdict(garden, None, check_garden(garden, facts))
        return self._verdict(garden, before, check_garden_update(garden, before, facts))

    async def _facts(self, garden: Garden) -> Facts:
        extensions = await self._lookups.extensions() if garden.spec.extensions else []
        return Facts(types_for_gardens(extensions), self.any_version)

    def _verdict(self, garden: Garden, old: Garden | None, found: Iterable[Cause]) -> Verdict:
        """Return the verdict, with all warnings whether it allows the request or not."""
        causes = tuple(found)
        warnings = tuple(warnings_about(garden, old, self._clock.now()))
        if causes:
            refused = invalid(_KIND, str(garden.metadata.get("name", "")), causes)
            return replace(refused, warnings=warnings)
        return allowed(because="the Garden violates no rule", warnings=warnings)


def garden_validation(lookups: Lookups, clock: Clock, *, any_version: bool) -> Webhook:
    """Return the webhook that validates Gardens."""
    handler = GardenValidation(lookups, clock, any_version=any_version)
    return Webhook(registration=REGISTRATION, handler=handler)


def _readable(old: JsonObject) -> Garden | None:
    """Return a stored Garden, or None if it violates the schema: repairing it must be possible."""
    try:
        return garden_from(old)
    except Malformed:
        return None


def cause_of(finding: Finding) -> Cause:
    """Return a finding about the schema, as an API server reports it if our CRD is installed."""
    if finding.problem == REQUIRED:
        return required(finding.path)
    return Cause("FieldValueInvalid", f"Invalid value: {finding.problem}", finding.path)
