"""Renewal of the tokens of the virtual cluster's components (spec 20 §17.1).

Their Secrets are in the runtime cluster. The resource manager of the virtual cluster renews tokens
without a renewal time.
"""

from contextlib import suppress
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, annotations_of
from pergola.flow import Graph, Retry
from pergola.garden.components.component import Component
from pergola.garden.components.gardener_access import GARDENER_ACCESS
from pergola.garden.components.gardener_admission_controller import (
    GARDENER_ADMISSION_CONTROLLER,
)
from pergola.garden.components.gardener_apiserver import GARDENER_APISERVER
from pergola.garden.components.gardener_controller_manager import GARDENER_CONTROLLER_MANAGER
from pergola.garden.components.gardener_scheduler import GARDENER_SCHEDULER
from pergola.garden.components.kube_controller_manager import KUBE_CONTROLLER_MANAGER
from pergola.garden.landscape import NAMESPACE
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.selectors import format_selector
from pergola.manifests.shoot_access import requests_token
from pergola.operator.rotation.current import ACCOUNT_KEY, began
from pergola.operator.rotation.seeds.tasks import skipped
from pergola.operator.run.run import Run

RENEW: Final = (
    "Renewing virtual garden access secrets after creation of new ServiceAccount signing key"
)

_TIME: Final = "serviceaccount.resources.gardener.cloud/token-renew-timestamp"
_RECORD: Final = "rotation.operator.gardener.cloud/renew-token"
_SELECTOR: Final = format_selector({"matchLabels": requests_token()})
_LIMIT: Final = 120.0
_DEPLOYED: Final[tuple[Component, ...]] = (
    KUBE_CONTROLLER_MANAGER,
    GARDENER_ACCESS,
    GARDENER_APISERVER,
    GARDENER_ADMISSION_CONTROLLER,
    GARDENER_CONTROLLER_MANAGER,
    GARDENER_SCHEDULER,
)


def add_renewal_task(graph: Graph, run: Run) -> None:
    """Add the task that renews the tokens; it ends when the new key has signed all of them."""

    async def renew() -> None:
        rotation = began(run.current(), ACCOUNT_KEY)
        for secret in await renew_tokens(run.client, rotation):
            await run.wait(SECRET, Key.of(secret), _problem, _LIMIT)

    graph.add(
        RENEW,
        renew,
        after=[component.ready for component in _DEPLOYED],
        skip=skipped(run, ACCOUNT_KEY),
        retry=Retry.every(5),
        timeout=_LIMIT,
    )


async def renew_tokens(client: Client, rotation: str) -> list[JsonObject]:
    """Request the renewal of all tokens, once for each rotation; return their Secrets.

    Args:
        rotation: The start of the rotation, RFC 3339.

    Raises:
        KubeError: The API server refused, or did not answer.
    """
    secrets = await client.list(SECRET, NAMESPACE, labels=_SELECTOR)
    patch: JsonObject = {"metadata": {"annotations": {_TIME: None, _RECORD: rotation}}}
    for secret in secrets:
        if annotations_of(secret).get(_RECORD) != rotation:
            with suppress(NotFound):
                await client.patch(SECRET, Key.of(secret), patch)
    return secrets


def _problem(secret: JsonObject | None) -> str | None:
    """Return why to keep waiting for a Secret's token; a deleted one needs no token."""
    if secret is None or _TIME in annotations_of(secret):
        return None
    return "its token is not renewed yet"
