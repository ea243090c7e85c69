"""Deploying the resource manager of the virtual cluster (spec 20 §14).

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
from pergola.garden.components.component import Rendered
from pergola.garden.components.resource_manager import virtual
from pergola.garden.components.virtual_access import access_secret_name
from pergola.garden.landscape import NAMESPACE
from pergola.garden.landscape.errors import OperatorError
from pergola.health.times import read_time
from pergola.operator.run.run import Run
from pergola.runtime.logging import get_logger

log = get_logger("garden")

ACCESS: Final = Key(NAMESPACE, access_secret_name(virtual.ACCOUNT))
"""The Secret with its token."""
BINDING: Final = Key(NAMESPACE, virtual.MANAGED_RESOURCE)
"""The ManagedResource with its permissions."""

_RENEWAL: Final = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
_USER: Final = f"system:serviceaccount:kube-system:{virtual.ACCOUNT}"
_REFUSED: Final = (f'forbidden: User "{_USER}" cannot', ": Unauthorized")
_LIMIT: Final = 120.0


async def deploy(run: Run) -> None:
    """Deploy the resource manager, at first with a certificate if it has no working token.

    Raises:
        NotReady, WaitTimeout: It did not renew its token in time; it keeps running with its
            current credentials.
        OperatorError: The renewal time of the token cannot be parsed.
        KubeError: The API server refused, or did not answer.
    """
    access = await run.client.find(SECRET, ACCESS)
    binding = await run.client.find(MANAGED_RESOURCE, BINDING)
    reason = bootstrap_reason(access, binding, run.clock.now())
    if reason is not None:
        log.info("virtual resource manager starts with a client certificate", reason=reason)
        await _bootstrap(run)
    await run.deployer.apply(virtual.VIRTUAL_RESOURCE_MANAGER.objects(run.current()))


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
        yield f"Secret {ACCESS} does not exist"
        return
    problem = _token_problem(access, now)
    if problem:
        yield problem
    if binding is None:
        yield f"ManagedResource {BINDING} does not exist"
        return
    applied = get_condition(maps_at(binding, "status", "conditions"), "ResourcesApplied") or {}
    message = str(applied.get("message", ""))
    if applied.get("status") == FALSE and any(text in message for text in _REFUSED):
        yield f"its token is refused: {message}"


def _token_problem(access: JsonObject, now: datetime) -> str | None:
    text = annotations_of(access).get(_RENEWAL)
    if text is None:
        return f"Secret {ACCESS} has no token yet"
    renewal = read_time(text)
    if renewal is None:
        raise OperatorError(
            f'Secret {ACCESS} has the annotation {_RENEWAL}="{text}", which is not an RFC 3339 '
            "time: remove the annotation to have the token renewed"
        )
    return f"its token was due for renewal at {text}" if renewal <= now else None


async def _bootstrap(run: Run) -> None:
    await run.generate(virtual.bootstrap_credential(run.current()))
    await run.deployer.apply(virtual.render_bootstrap(run.current()))
    await run.wait(SECRET, ACCESS, lambda it: _missing_token(it, run.clock.now()), _LIMIT)
    managed = virtual.render_bootstrap(run.current()).managed
    await run.deployer.wait(Rendered(managed=managed), _LIMIT)


def _missing_token(access: JsonObject | None, now: datetime) -> str | None:
    return "it does not exist" if access is None else _token_problem(access, now)
