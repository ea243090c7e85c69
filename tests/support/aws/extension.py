"""Our extension for AWS as it serves a Garden, in the test's event loop."""

from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager

from pergola.extensions.lifecycle import Settings, extension_controller
from pergola.kube.client import Client
from pergola.providers.aws.access import AwsAccess
from pergola.providers.aws.actuator import AwsSettings
from pergola.providers.aws.backup import AwsBackupBucket, AwsBackupEntry
from pergola.providers.aws.dns import AwsDnsRecord
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox.aws.corrections import QUICK

_KINDS: tuple[type[AwsAccess], ...] = (AwsDnsRecord, AwsBackupBucket, AwsBackupEntry)


@asynccontextmanager
async def aws_extension(client: Client, endpoint: str) -> AsyncGenerator[list[Unit]]:
    """Yield the controllers for resources of the class `garden`.

    Args:
        client: Of the runtime cluster.
        endpoint: The address of AWS.
    """
    settings = AwsSettings(endpoint_url=endpoint, retry=QUICK)
    actuators = [kind(settings) for kind in _KINDS]
    served = Settings(classes=("garden",))
    try:
        yield [extension_controller(client, each, served, metrics=Metrics()) for each in actuators]
    finally:
        for actuator in actuators:
            await actuator.close()
