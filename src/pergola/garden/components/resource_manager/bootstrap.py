"""The first stage of the virtual cluster's resource manager (spec 20 §14).

It requests its own token. While that token is missing or does not work, it runs with a client
certificate valid for ten minutes, until it has renewed the token.
"""

from collections.abc import Iterator
from datetime import datetime
from typing import Final

from pergola.api.conditions import FALSE, get_condition
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, annotations_of, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.component import Clusters
from pergola.garden.landscape import NAMESPACE, Landscape
from pergola.garden.landscape.errors import OperatorError
from pergola.health.times import read_time
from pergola.manifests.shoot_access import access_secret_name
from pergola.runtime.logging import get_logger

log = get_logger("garden")

ACCOUNT: Final = "gardener-resource-manager"
"""The ServiceAccount of the resource manager in the virtual cluster."""
PERMISSIONS: Final = "shoot-core-gardener-resource-manager"
"""The ManagedResource with its permissions."""

_ACCESS: Final = Key(NAMESPACE, access_secret_name(ACCOUNT))
_BINDING: Final = Key(NAMESPACE, PERMISSIONS)
_RENEWAL: Final = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
_USER: Final = f"system:serviceaccount:kube-system:{ACCOUNT}"
_REFUSED: Final = (f'forbidden: User "{_USER}" cannot', ": Unauthorized")
LIMIT: Final = 120.0
"""The seconds until waiting for it fails."""


async def learn_whether_needed(landscape: Landscape, clusters: Clusters) -> Landscape | None:
    """Return None if the resource manager can run with its token.

    Raises:
        OperatorError: The renewal time of the token cannot be parsed.
        KubeError: The API server refused, or did not answer.
    """
    access = await clusters.client.find(SECRET, _ACCESS)
    binding = await clusters.client.find(MANAGED_RESOURCE, _BINDING)
    reason = bootstrap_reason(access, binding, clusters.clock.now())
    if reason is None:
        return None
    log.info("virtual resource manager starts with a client certificate", reason=reason)
    return landscape


async def wait_for_token(clusters: Clusters) -> None:
    """Wait until the resource manager has renewed its token.

    Raises:
        NotReady: It did not in time; it keeps running with its current credentials.
    """

    def problem_of(access: JsonObject | None) -> str | None:
        if access is None:
            return "it does not exist"
        return _token_problem(access, clusters.clock.now())

    await clusters.wait(SECRET, _ACCESS, problem_of, LIMIT)


def bootstrap_reason(
    access: JsonObject | None, binding: JsonObject | None, now: datetime
) -> str | None:
    """Return why the resource manager cannot run with its token, or None if it can.

    Args:
        access: The Secret with its token.
        binding: The ManagedResource with its permissions.

    Raises:
        OperatorError: The renewal time of the token cannot be parsed.
    """
    return next(_reasons(access, binding, now), None)


def _reasons(access: JsonObject | None, binding: JsonObject | None, now: datetime) -> Iterator[str]:
    if access is None:
        yield f"Secret {_ACCESS} does not exist"
        return
    problem = _token_problem(access, now)
    if problem:
        yield problem
    if binding is None:
        yield f"ManagedResource {_BINDING} does not exist"
        return
    applied = get_condition(maps_at(binding, "status", "conditions"), "ResourcesApplied") or {}
    message = str(applied.get("message", ""))
    if applied.get("status") == FALSE and any(text in message for text in _REFUSED):
        yield f"its token is refused: {message}"


def _token_problem(access: JsonObject, now: datetime) -> str | None:
    text = annotations_of(access).get(_RENEWAL)
    if text is None:
        return f"Secret {_ACCESS} has no token yet"
    renewal = read_time(text)
    if renewal is None:
        raise OperatorError(
            f'Secret {_ACCESS} has the annotation {_RENEWAL}="{text}", which is not an RFC 3339 '
            "time: remove the annotation to have the token renewed"
        )
    return f"its token was due for renewal at {text}" if renewal <= now else None
