"""A cluster whose API server calls the operator's webhooks, as tests see it."""

import asyncio
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from pergola.admission.configurations import configuration_keys
from pergola.api.operator_config import API_VERSION, KIND, configuration_from
from pergola.api.operator_v1alpha1 import EXTENSION
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, NotFound
from pergola.operator.serving import WebhookServing
from pergola.operator.webhooks.catalog import CONFIGURATION_NAME, Dependencies
from pergola.operator.webhooks.lookups import ClusterLookups
from pergola.runtime.clock import SystemClock
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE, running, until
from tests.support.gardens import GARDENER, MINIMAL, with_values

_DEPLOYMENT: Final = {
    "extension": {"helm": {"ociRepository": {"ref": "registry.example/probe:v1"}}}
}


class OperatorSite:
    """A cluster in which the operator's webhooks are registered, as long as they are served.

    Attributes:
        client: the administrator's.

    Args:
        operator: the operator's client, if it has other permissions than the administrator.
    """

    def __init__(self, client: Client, operator: Client | None = None) -> None:
        self.client = client
        self._operator = operator or client

    def webhooks(self, *, url: str) -> WebhookServing:
        """Return the operator's webhooks, on a free port of this machine.

        Args:
            url: where the API server reaches them; empty for the Service.
        """
        config = configuration_from(
            {
                "apiVersion": API_VERSION,
                "kind": KIND,
                "server": {"webhooks": {"bindAddress": "127.0.0.1", "port": 0}},
            }
        ).config
        dependencies = Dependencies(ClusterLookups(self._operator), SystemClock())
        return WebhookServing(config, self._operator, dependencies, Metrics(), url=url)

    @asynccontextmanager
    async def serving(self) -> AsyncGenerator[WebhookServing]:
        """Serve the webhooks until the block ends; return when the API server calls them."""
        serving = self.webhooks(url="https://127.0.0.1")
        async with serving.served():
            async with running(*serving.units, *serving.leading()):
                for gvk, key in configuration_keys(CONFIGURATION_NAME):
                    await until(self.client, gvk, key, lambda _: True)
                await self._until_called(expected=True)
                yield serving
            await serving.unregister()
            await self._until_called(expected=False)

    async def unregister(self) -> None:
        """Remove the registration that a process left; wait until it has no effect."""
        for gvk, key in configuration_keys(CONFIGURATION_NAME):
            with suppress(NotFound):
                await self.client.delete(gvk, key)
        await self._until_called(expected=False)

    async def _until_called(self, *, expected: bool) -> None:
        """Return when the API server acts on both registrations, each of which it watches."""
        async with asyncio.timeout(PATIENCE):
            while {await self._is_validated(), await self._is_defaulted()} != {expected}:
                await self.client.get_raw("/version")

    async def _is_defaulted(self) -> bool:
        """Return whether an Extension gets a default that the schema does not have."""
        kind = {"apiVersion": EXTENSION.api_version, "kind": EXTENSION.kind}
        spec = {"resources": [{"kind": "Extension", "type": "probe"}], "deployment": _DEPLOYMENT}
        probe = {**kind, "metadata": {"name": "probe"}, "spec": spec}
        try:
            stored = await self.client.create(probe, dry_run=True)
        except ApiError:
            return True
        return "primary" in stored["spec"]["resources"][0]

    async def _is_validated(self) -> bool:
        """Return whether a Garden that the schema allows is refused."""
        at = f"{GARDENER}.gardenerDashboard"
        values = {"metadata.name": "probe", at: {"enableTokenLogin": False}}
        try:
            await self.client.create(with_values(MINIMAL, values), dry_run=True)
        except ApiError:
            return True
        return False
