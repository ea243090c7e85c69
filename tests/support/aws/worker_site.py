"""A Worker on AWS with the real machine-controller-manager, on a seed that is its Shoot, too."""

import base64
from copy import deepcopy
from typing import Final

from pergola.api.kinds import (
    DEPLOYMENT,
    MACHINE,
    MACHINE_CLASS,
    MACHINE_DEPLOYMENT,
    MACHINE_SET,
    SECRET,
)
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, name_of
from pergola.cloud.aws import AwsClient
from pergola.extensions.workers.reconcile import CONTROLLER
from pergola.kube.client import Client
from pergola.providers.aws.workers.actuator import AwsWorker
from pergola.sandbox.aws.world import Network
from pergola.testing.extension_site import ExtensionSite
from pergola.testing.network_site import renamed
from tests.support.aws.machines import machine_fact
from tests.support.machine_controllers import MachineControllers

WORKER: Final = GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "Worker")
PATIENCE: Final = 90.0
_ZONES: Final = ("a", "b", "c")
_FACT: Final = "base"


class WorkerSite(ExtensionSite):
    """A namespace with a Cluster, credentials, user data, and a network in a simulated AWS.

    Attributes:
        aws: the account.
        controllers: machine-controller-manager and its driver.
        shoot: in the Cluster; write it with `put`.
    """

    aws: AwsClient
    controllers: MachineControllers
    shoot: JsonObject
    _cluster: JsonObject
    _spec: JsonObject
    _seen = ""

    @classmethod
    async def open(
        cls,
        client: Client,
        namespace: str,
        aws: AwsClient,
        controllers: MachineControllers,
    ) -> "WorkerSite":
        """Prepare everything but the Worker."""
        site = cls(client, namespace, WORKER, namespace)
        site.aws = aws
        site.controllers = controllers
        fact = deepcopy(machine_fact(_FACT)["input"])
        site._cluster = fact["cluster"]["spec"]
        site.shoot = site._cluster["shoot"]
        site.shoot["status"] = {**site.shoot.get("status", {}), "technicalID": namespace}
        await site.put()
        await site.scale_controller(1)
        network = await Network.create(aws, zones=_ZONES)
        group = await network.security_group()
        site._spec = {k: v for k, v in fact["worker"]["spec"].items() if k != "type"}
        site._spec["secretRef"] = {"name": "cloudprovider", "namespace": namespace}
        site._spec["infrastructureProviderStatus"]["vpc"] = {
            "id": network.id,
            "securityGroups": [{"id": group, "purpose": "nodes"}],
            "subnets": [
                {"id": subnet, "purpose": "nodes", "zone": f"{aws.region}{zone}"}
                for zone, subnet in network.workers.items()
            ],
        }
        for profile in site._spec["infrastructureProviderStatus"]["iam"]["instanceProfiles"]:
            name = profile["name"]
            await aws.call("iam", "CreateInstanceProfile", InstanceProfileName=name)
        keys = {"accessKeyID": "test", "secretAccessKey": "test"}
        await site.put_secret("cloudprovider", keys)
        for pool in site._spec["pools"]:
            reference = pool["userDataSecretRef"]
            await site.put_secret(reference["name"], {reference["key"]: "#!/bin/sh"})
        return site

    async def scale_controller(self, replicas: int) -> None:
        """Write the Deployment of machine-controller-manager, as gardenlet does."""
        labels = {"role": CONTROLLER}
        container = {"name": CONTROLLER, "image": "machine-controller-manager"}
        deployment: JsonObject = {
            "apiVersion": "apps/v1",
            "kind": DEPLOYMENT.kind,
            "metadata": {"name": CONTROLLER, "namespace": self.namespace},
            "spec": {
                "replicas": replicas,
                "selector": {"matchLabels": labels},
                "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
            },
        }
        await self.client.apply(deployment, manager="gardenlet", force=True)

    async def controller_replicas(self) -> int:
        """Return how many replicas machine-controller-manager should have."""
        found = await self.client.get(DEPLOYMENT, Key(self.namespace, CONTROLLER))
        return int(found["spec"]["replicas"])

    @property
    def pool(self) -> JsonObject:
        """The first pool, to be changed before `create_worker`."""
        pool: JsonObject = self._spec["pools"][0]
        return pool

    def pools(self, *changes: JsonObject) -> list[JsonObject]:
        """Return pools like the first one, each with changes."""
        return [{**deepcopy(self.pool), **change} for change in changes]

    async def put(self) -> None:
        """Write the Cluster, with the Shoot as it is."""
        await self.put_cluster(self.shoot)
        patch = {"spec": {"cloudProfile": self._cluster["cloudProfile"]}}
        kind = GroupVersionKind("extensions.gardener.cloud", "v1alpha1", "Cluster")
        await self.client.patch(kind, Key("", self.namespace), patch)

    async def put_secret(self, name: str, data: dict[str, str]) -> None:
        """Create a Secret."""
        encoded = {key: base64.b64encode(text.encode()).decode() for key, text in data.items()}
        await self.client.create(
            {
                "apiVersion": "v1",
                "kind": SECRET.kind,
                "metadata": {"name": name, "namespace": self.namespace},
                "data": encoded,
            }
        )

    async def create_worker(self, *pools: JsonObject) -> AwsWorker:
        """Create the Worker, and return its actuator."""
        await self.create("reconcile", spec={**self._spec, "pools": list(pools) or [self.pool]})
        return renamed(AwsWorker(), self.type)

    async def change(self, *pools: JsonObject) -> None:
        """Change the pools, and request a run."""
        await self.edit({"spec": {"pools": list(pools)}})
        await self.annotate("reconcile")

    async def until_reconciled(self) -> JsonObject:
        """Wait until one more request was carried out: each run has a later time."""

        def is_done(worker: JsonObject) -> bool:
            status = map_at(worker, "status")
            time = status.get("machineDeploymentsLastUpdateTime")
            succeeded = map_at(status, "lastOperation").get("state") == "Succeeded"
            return succeeded and time is not None and time != self._seen

        worker = await self.until(is_done, patience=PATIENCE)
        self._seen = worker["status"]["machineDeploymentsLastUpdateTime"]
        return worker

    async def instances(self) -> dict[str, JsonObject]:
        """Return the living instances by name."""
        states = {"Name": "instance-state-name", "Values": ["pending", "running"]}
        answer = await self.aws.call("ec2", "DescribeInstances", Filters=[states])
        found: dict[str, JsonObject] = {}
        for reservation in answer["Reservations"]:
            for instance in reservation["Instances"]:
                tags = {tag["Key"]: tag["Value"] for tag in instance["Tags"]}
                found[tags["Name"]] = instance
        return found

    async def names(self, kind: GroupVersionKind) -> list[str]:
        """Return the names of the objects of a kind."""
        return sorted(name_of(each) for each in await self.client.list(kind, self.namespace))

    async def uids(self) -> dict[str, str]:
        """Return the uids of all machine objects by kind and name."""
        found = {}
        for kind in (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, MACHINE_CLASS):
            for each in await self.client.list(kind, self.namespace):
                found[f"{kind.kind} {name_of(each)}"] = each["metadata"]["uid"]
        return found
