"""The webhook that validates the operator's Extensions (spec 21 §9.2)."""

from collections.abc import Iterator
from http import HTTPStatus
from typing import Final

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
from pergola.api.conditions import TRUE, get_condition
from pergola.api.field_errors import Cause
from pergola.api.field_errors import invalid as invalid_field
from pergola.api.objects import JsonObject, maps_at, name_of
from pergola.api.operator_v1alpha1 import GROUP, VERSION, Extension
from pergola.api.operator_v1alpha1.extension import REQUIRED_RUNTIME, REQUIRED_VIRTUAL
from pergola.api.schema import Malformed, read
from pergola.kube.patches import same
from pergola.operator.webhooks.extension.deployment import check_deployment
from pergola.operator.webhooks.extension.resources import (
    check_primary_unchanged,
    check_resources_served,
)

REGISTRATION: Final = Registration(
    name="extension-validation.operator.gardener.cloud",
    path="/webhooks/validate-operator-gardener-cloud-v1alpha1-extension",
    kind="validating",
    rules=(Rule(("CREATE", "UPDATE", "DELETE"), (GROUP,), (VERSION,), ("extensions",)),),
    match_policy="Exact",
)
_TAKEN: Final = ("admission-runtime-", "admission-virtual-", "registration-")
"""Prefixes of names whose ManagedResources could be mistaken for another Extension's."""


def review(request: Request) -> Verdict:
    """Review one request and report all findings at once."""
    new, old = request.object, request.old_object
    if request.operation == "DELETE" and old is not None:
        return _deletion(old)
    if new is None:
        return errored(HTTPStatus.BAD_REQUEST, f"no Extension in the {request.operation} request")
    if old is not None and same(new.get("spec"), old.get("spec")):
        return allowed(because="the spec is unchanged")
    try:
        causes = tuple(check_extension(new, old))
    except Malformed as error:
        return errored(HTTPStatus.BAD_REQUEST, str(error))
    if causes:
        return invalid(f"Extension.{GROUP}", name_of(new), causes)
    return allowed(because="the Extension violates no rule")


def check_extension(new: JsonObject, old: JsonObject | None) -> Iterator[Cause]:
    """Yield all findings about an Extension.

    Args:
        old: The stored Extension, or None if it is new.

    Raises:
        Malformed: The new Extension violates its schema. A stored one that does can be repaired.
    """
    name = name_of(new)
    if old is None and name.startswith(_TAKEN):
        yield invalid_field("metadata.name", name, f"must not start with {', '.join(_TAKEN)}")
    extension = read(Extension, new, of=f"Extension {name}")
    yield from check_deployment(extension.spec.deployment)
    yield from check_resources_served(extension.spec.resources)
    if old is not None and (before := _readable(old)) is not None:
        yield from check_primary_unchanged(extension.spec.resources, before.spec.resources)


def _readable(old: JsonObject) -> Extension | None:
    try:
        return read(Extension, old, of=f"stored Extension {name_of(old)}")
    except Malformed:
        return None


def _deletion(old: JsonObject) -> Verdict:
    conditions = maps_at(old, "status", "conditions")
    found = (get_condition(conditions, type_) for type_ in (REQUIRED_RUNTIME, REQUIRED_VIRTUAL))
    required = [str(c.get("message", "")) for c in found if c and c.get("status") == TRUE]
    if required:
        reasons = ", ".join(f'"{message}"' for message in required)
        return denied(f"extension is still being required: {reasons}")
    return allowed(because="the Extension is not required")


WEBHOOK: Final = Webhook(registration=REGISTRATION, handler=review)
