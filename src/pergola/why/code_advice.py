"""Advice about classes of errors of a cloud; pure."""

from collections.abc import Iterable
from typing import Final

from pergola.extension_api.errors import Code

_ADVICE: Final = {
    Code.UNAUTHENTICATED: "correct the credentials in the Secret of the cloud provider",
    Code.UNAUTHORIZED: "give the credentials the permissions that the message names",
    Code.QUOTA_EXCEEDED: "raise the quota that the message names, or free some of it",
    Code.RATE_LIMITS_EXCEEDED: "wait: the extension retries by itself",
    Code.DEPENDENCIES: "remove what the message names from the infrastructure",
    Code.RETRYABLE_DEPENDENCIES: "wait: the extension retries by itself",
    Code.RESOURCES_DEPLETED: "use another zone or machine type, or wait for the cloud provider",
    Code.CLEANUP: "delete the objects that the message names",
    Code.CONFIGURATION_PROBLEM: "correct the field that the message names",
    Code.RETRYABLE_CONFIGURATION_PROBLEM: "correct the field that the message names",
    Code.PROBLEMATIC_WEBHOOK: "correct or remove the webhook that the message names",
}


def advice_for(codes: Iterable[Code]) -> str:
    """Return what to do about an error of these classes; empty if unknown."""
    return next((_ADVICE[code] for code in codes if code in _ADVICE), "")
