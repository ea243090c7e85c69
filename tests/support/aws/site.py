"""A control plane namespace with an Infrastructure, and an AWS for it.

```python
site = await aws_site(client, namespace, aws)
async with running(site.controller()):
    await site.ask(managed_config(site.region))
    await site.until_operation("Create")
```
"""

import base64
from dataclasses import replace
from typing import Final

from pergola.api import marks
from pergola.api.extensions_v1alpha1 import CLUSTER
from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.objects import JsonObject, map_at
from pergola.cloud.aws import Retry
from pergola.kube.client import Client
from pergola.providers.aws.actuator import AwsInfrastructure, AwsSettings
from pergola.providers.aws.bastion import AwsBastion
from pergola.runtime.controlling.unit import Unit
from pergola.sandbox.aws.corrections import QUICK, CorrectedAws
from pergola.testing.crds import install_extension_crds, served
from pergola.testing.extension_site import ExtensionSite, operation
from pergola.testing.waiting import until_gone
from tests.support.aws.gardens import KEYS
from tests.support.objects import secret

REGION: Final = "eu-west-1"
PUBLIC_KEY: Final = (
    "ssh-rsa AAAAB3NzaC1yc2EAAAADAQABAAABAQDusXfgTE4eBP50NglSzCSEGnIL6+cr6m3H6cZANOQ+P1o/W4BdtcAL3s"
    "or4iGi7SOeJgo8kweyMQrhrt6HaKGgromRiz37LQx4YIAcBi4Zd023mO/V7Rc2Chh18mWgLSmA6ng+j37ip6452zxtv0jH"
    "Az9pJolbKBpJzbZlPN45ZCTk9ck0fSVHRl6VRSSPQcpqi65XpRf+35zNOCGCc1mAOOTmw59Q2a6A3t8mL7r91aM5q6QOQm"
    "219lctFM8O7HRJnDgmhGpnjRwE1LyKktWTbgFZ4SNWU2XqusUO07jKuSxzPumXBeU+JEtx0J1tqZwJlpGt2R+0qN7nKnPl"
    "2+hx nobody@nowhere"
)
SHOOT: Final[JsonObject] = {
    "metadata": {"name": "web", "uid": "0b9f4a0c-6b0d-4a86-8f9e-2f3c0a6d3f11"},
    "spec": {
        "networking": {
            "nodes": "10.180.0.0/16",
            "pods": "100.64.0.0/11",
            "services": "100.96.0.0/13",
        }
    },
}
"""The Shoot that the ranges of `world.managed_config` and `Network` fit."""
AMI: Final = "ami-0123456789abcdef0"
CLOUD_PROFILE: Final[JsonObject] = {
    "spec": {
        "machineTypes": [
            {"name": "m5.large", "cpu": "2", "gpu": "0", "memory": "8Gi"},
            {"name": "t3.micro", "cpu": "1", "gpu": "0", "memory": "1Gi"},
        ],
        "machineImages": [{"name": "gardenlinux", "versions": [{"version": "1592.3.0"}]}],
        "providerConfig": {
            "machineImages": [
                {
                    "name": "gardenlinux",
                    "versions": [
                        {"version": "1592.3.0", "regions": [{"name": REGION, "ami": AMI}]}
                    ],
                }
            ]
        },
    }
}
"""A CloudProfile with a machine and an image for bastions."""
_SECRET: Final = "cloudprovider"


class AwsSite(ExtensionSite):
    """A control plane namespace, the Infrastructure in it, and an AWS.

    Attributes:
        aws: the AWS of the infrastructure.
        region: the region of the Infrastructure.
    """

    aws: CorrectedAws
    region = REGION
    _actuators: tuple[AwsInfrastructure | AwsBastion, ...] = ()

    def actuator(self, *, retry: Retry = QUICK) -> AwsInfrastructure:
        """Return a new actuator without memory, as after a restart, and with short waits.

        Args:
            retry: the retries of its requests to AWS.
        """

        class Own(AwsInfrastructure):
            type = self.type

        actuator = Own(replace(self._settings(), retry=retry))
        self._actuators += (actuator,)
        return actuator

    def bastion_actuator(self) -> AwsBastion:
        """Return a new actuator for Bastions."""

        class Own(AwsBastion):
            type = self.type

        actuator = Own(self._settings())
        self._actuators += (actuator,)
        return actuator

    def _settings(self) -> AwsSettings:
        return AwsSettings(endpoint_url=self.aws.url, retry=QUICK, poll_seconds=0.01)

    async def clean_up(self) -> None:
        """Delete objects that outlive the namespace, and close connections."""
        for actuator in self._actuators:
            await actuator.close()
        await super().clean_up()

    def controller(self, client: Client | None = None) -> Unit:
        """Return the unit of a new actuator; `client` gives it another identity."""
        return self.unit(self.actuator(), client=client)

    async def put_secret(self, **data: str) -> None:
        """Write the Secret with the credentials, by default with valid ones."""
        credentials = secret(self.namespace, _SECRET, **(data or KEYS))
        await self.client.apply(credentials, manager="pergola-testing", force=True)

    def spec(self, config: JsonObject) -> JsonObject:
        """Return the spec of an Infrastructure with a config."""
        return {
            "type": self.type,
            "region": self.region,
            "secretRef": {"name": _SECRET, "namespace": self.namespace},
            "sshPublicKey": base64.b64encode(PUBLIC_KEY.encode()).decode(),
            "providerConfig": config,
        }

    async def ask(self, config: JsonObject, asked: str = "reconcile") -> JsonObject:
        """Create an Infrastructure with a config, and request an operation."""
        return await self.create(asked, spec=self.spec(config))

    async def until_gone(self) -> None:
        """Wait until the Infrastructure is gone."""
        await until_gone(self.client, self.gvk, self.key)

    async def until_failed(self, text: str = "") -> JsonObject:
        """Wait until the last operation failed with an error that contains a text."""
        return await self.until(
            lambda obj: (
                operation(obj)[1] == "Error"
                and text in map_at(obj, "status", "lastError").get("description", "")
            )
        )

    async def again(self, asked: str = "reconcile") -> JsonObject:
        """Request an operation, and wait until it succeeded."""
        annotations = map_at(await self.annotate(asked), "metadata", "annotations")
        done = (asked.capitalize(), "Succeeded")
        return await self.until(
            lambda obj: (
                map_at(obj, "status").get("observedTimestamp") == annotations[marks.TIMESTAMP]
                and operation(obj) == done
            )
        )


async def aws_site(client: Client, namespace: str, aws: CorrectedAws) -> AwsSite:
    """Create the Cluster and the Secret in an existing namespace, and return the site."""
    await install_extension_crds(client)
    for gvk in (CLUSTER, INFRASTRUCTURE):
        await served(client, gvk)
    site = AwsSite(client, namespace, INFRASTRUCTURE)
    site.aws = aws
    await site.put_cluster(SHOOT)
    await site.put_secret()
    return site


def state_of(obj: JsonObject) -> dict[str, str]:
    """Return the data of an Infrastructure's state."""
    return dict(map_at(obj, "status", "state", "data"))


def codes_in(obj: JsonObject) -> list[str]:
    """Return the codes of an Infrastructure's last error."""
    found: list[str] = map_at(obj, "status", "lastError").get("codes") or []
    return found
