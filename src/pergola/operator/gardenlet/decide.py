"""The next step for a Gardenlet, determined by the objects alone."""

from datetime import datetime
from enum import Enum, auto
from typing import Final

from pergola.api import marks
from pergola.api.conditions import timestamp
from pergola.api.objects import (
    JsonObject,
    annotations_of,
    deletion_timestamp_of,
    map_at,
    name_of,
)
from pergola.operator.conditions import is_true
from pergola.operator.gardenlet.names import REGISTERED, kubeconfig_secret

FORCE: Final = "force-redeploy"
RENEW: Final = "renew-kubeconfig"

_SELF_HOSTED: Final = "self-hosted-shoot-"


class Step(Enum):
    """The next step for a Gardenlet."""

    LEAVE = auto()
    """Do nothing: it is not the operator's, or no longer."""
    HAND_OVER = auto()
    """Its Seed exists: remove the access to its cluster, and report that."""
    DEPLOY = auto()


def step_for(gardenlet: JsonObject, seed: JsonObject | None) -> Step:
    """Return the next step, depending on the Seed of the same name."""
    if deletion_timestamp_of(gardenlet) or name_of(gardenlet).startswith(_SELF_HOSTED):
        return Step.LEAVE
    if seed is None or operation_of(gardenlet) == FORCE:
        return Step.DEPLOY
    is_handed_over = is_true(gardenlet, REGISTERED) and not kubeconfig_secret(gardenlet)
    return Step.LEAVE if is_handed_over else Step.HAND_OVER


def operation_of(gardenlet: JsonObject) -> str:
    """Return the operation that an annotation requests; empty without one."""
    return annotations_of(gardenlet).get(marks.OPERATION, "")


def must_renew(gardenlet: JsonObject, seed: JsonObject | None, now: datetime) -> bool:
    """Return whether the current kubeconfig of gardenlet is no longer usable.

    That is the case if its certificate has expired, or a user requests another one.
    """
    expires = str(map_at(seed or {}, "status").get("clientCertificateExpirationTimestamp") or "")
    is_expired = bool(expires) and expires < timestamp(now)
    return is_expired or operation_of(gardenlet) == RENEW
