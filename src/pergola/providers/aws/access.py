"""Access to AWS with the Secret of an extension resource, for kinds that belong to no cluster."""

import os
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pergola.api.objects import JsonObject, map_at
from pergola.cloud.aws import AwsClient, AwsClients, Place, reader
from pergola.extensions.actuator import Actuator, Context, Status
from pergola.providers.aws.actuator import AwsSettings, secret_of, settings_from
from pergola.runtime.metrics import Metrics


class AwsAccess(Actuator):
    """An actuator whose resources name their region and the Secret with the credentials.

    Args:
        settings: read from the environment if None.
    """

    name = "provider-aws"
    registered_as = "pergola-aws"

    def __init__(self, settings: AwsSettings | None = None) -> None:
        self.settings = settings or settings_from(os.environ)
        self._clients = AwsClients(
            endpoint_url=self.settings.endpoint_url, retry=self.settings.retry
        )

    def measure(self, metrics: Metrics) -> None:
        """Count requests to AWS, within the quotas of the process."""
        self._clients.measure(metrics)

    async def migrate(self, context: Context, obj: JsonObject) -> Status | None:
        """Leave everything in AWS unchanged; the state is already in the status."""
        return None

    async def close(self) -> None:
        """Close idle connections to AWS."""
        await self._clients.close()

    @asynccontextmanager
    async def aws(self, context: Context, obj: JsonObject) -> AsyncGenerator[AwsClient]:
        """Yield a client with the credentials of a resource.

        Raises:
            ExtensionError: the resource names no Secret.
            CredentialsInvalid: the Secret does not exist, or is unusable.
        """
        place = Place(secret_of(obj), str(map_at(obj, "spec").get("region") or ""))
        async with self._clients.use(reader(context.client), place, context.clock.now()) as aws:
            yield aws
