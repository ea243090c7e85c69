"""The types and reasons of a ManagedResource's conditions (spec 10 §6).

Clients match these exact values; no others are written.
"""

from typing import Final

APPLIED: Final = "ResourcesApplied"
HEALTHY: Final = "ResourcesHealthy"
PROGRESSING: Final = "ResourcesProgressing"

APPLIED_MESSAGE: Final = "All resources are applied."
HEALTHY_MESSAGE: Final = "All resources are healthy."
ROLLED_OUT_MESSAGE: Final = "All resources have been fully rolled out."


class Reason:
    """Every reason that a condition of a ManagedResource can have."""

    # ResourcesApplied
    APPLY_SUCCEEDED: Final = "ApplySucceeded"
    APPLY_PROGRESSING: Final = "ApplyProgressing"
    APPLY_FAILED: Final = "ApplyFailed"
    DECODING_FAILED: Final = "DecodingFailed"
    CANNOT_READ_SECRET: Final = "CannotReadSecret"  # noqa: S105 - a reason
    RELEASE_FAILED: Final = "ReleaseOfOrphanedResourcesFailed"
    DELETION_FAILED: Final = "DeletionFailed"

    # ResourcesHealthy; the functions below return those with a kind
    HEALTHY: Final = "ResourcesHealthy"

    # ResourcesProgressing
    ROLLED_OUT: Final = "ResourcesRolledOut"

    # Several conditions
    IGNORED: Final = "ManagedResourceIgnored"
    DELETION_PENDING: Final = "DeletionPending"
    CHECKS_PENDING: Final = "ChecksPending"

    @staticmethod
    def missing(kind: str) -> str:
        """Return `DeploymentMissing`: an object is absent, or its kind unknown to the target."""
        return f"{kind}Missing"

    @staticmethod
    def unhealthy(kind: str) -> str:
        """Return `DeploymentUnhealthy`: an object fails its health check."""
        return f"{kind}Unhealthy"

    @staticmethod
    def progressing(kind: str) -> str:
        """Return `DeploymentProgressing`: an object is being rolled out."""
        return f"{kind}Progressing"
