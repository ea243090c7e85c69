"""A Worker on AWS with the real machine-controller-manager, on a seed that is its Shoot, too."""

import asyncio
import base64
import gzip
import os
from contextlib import suppress
from copy import deepcopy
from typing import Final

import orjson

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
from pergola.extension_api.cluster import CLUSTER, Cluster
from pergola.extension_api.kinds import WORKER
from pergola.extensions.actuator import Context
from pergola.extensions.workers.reconcile import CONTROLLER
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.providers.aws.workers.actuator import AwsWorker
from pergola.runtime.clock import SystemClock
from pergola.sandbox.aws.world import Network
from pergola.testing.extension_site import ExtensionSite
from pergola.testing.network_site import renamed
from pergola.testing.waiting import until
from tests.support.aws.machines import machine_fact
from tests.support.machine_controllers import MachineControllers

PATIENCE: Final = 240.0
_ZONES: Final = ("a", "b", "c")
_FACT: Final = "base"
_USER_DATA: Final = base64.b64decode(
    machine_fact(_FACT)["output"]["secrets"][0]["data"]["userData"]
).decode()
_TECHNICAL_ID: Final = "shoot--demo--blue"


def _range() -> str:
    """Return a range for the VPC that differs from those of tests that run at the same time.

    Nodes are named by their addresses, and all tests share an API server, but each process has an
    AWS of its own. machine-controller-manager replaces an instance whose node exists already.
    """
    worker = os.environ.get("PYTEST_XDIST_WORKER", "gw0").removeprefix("gw")
    return f"10.{180 + int(worker)}.0.0/16"


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
        site = await cls.without_network(client, namespace, aws, controllers)
        network = await Network.create(aws, zones=_ZONES, cidr=_range())
        group = await network.security_group()
        site.status["vpc"] = {
            "id": network.id,
            "securityGroups": [{"id": group, "purpose": "nodes"}],
            "subnets": [
                {"id": subnet, "purpose": "nodes", "zone": f"{aws.region}{zone}"}
                for zone, subnet in network.workers.items()
            ],
        }
        for profile in site.status["iam"]["instanceProfiles"]:
            name = profile["name"]
            await aws.call("iam", "CreateInstanceProfile", InstanceProfileName=name)
        return site

    @classmethod
    async def without_network(
        cls,
        client: Client,
        namespace: str,
        aws: AwsClient,
        controllers: MachineControllers,
        *,
        of_type: str = "",
    ) -> "WorkerSite":
        """Prepare everything but the Worker and its network, which `status` describes.

        Args:
            of_type: the type of the Worker; by default, one of its own.
        """
        site = cls(client, namespace, WORKER, of_type)
        site.aws = aws
        site.controllers = controllers
        fact = deepcopy(machine_fact(_FACT)["input"])
        site._cluster = fact["cluster"]["spec"]
        site.shoot = site._cluster["shoot"]
        site.shoot["status"] = {**site.shoot.get("status", {}), "technicalID": namespace}
        await site.put()
        await site.scale_controller(1)
        site._spec = {k: v for k, v in fact["worker"]["spec"].items() if k != "type"}
        site._spec["secretRef"] = {"name": "cloudprovider", "namespace": namespace}
        keys = {"accessKeyID": "test", "secretAccessKey": "test"}
        await site.put_secret("cloudprovider", keys)
        for pool in site._spec["pools"]:
            reference = pool["userDataSecretRef"]
            await site.put_secret(reference["name"], {reference["key"]: _USER_DATA})
        return site

    @property
    def status(self) -> JsonObject:
        """The status of the Infrastructure, to be changed before `create_worker`."""
        status: JsonObject = self._spec["infrastructureProviderStatus"]
        return status

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

    async def until_controller_has(self, replicas: int) -> None:
        """Wait until machine-controller-manager should have some replicas."""
        key = Key(self.namespace, CONTROLLER)
        await until(
            self.client, DEPLOYMENT, key, lambda found: found["spec"]["replicas"] == replicas
        )

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
        await self.client.patch(CLUSTER, Key("", self.namespace), patch)

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

    async def hibernate(self, *, enabled: bool) -> None:
        """Put the Shoot to sleep or wake it, and request a run."""
        self.shoot["spec"]["hibernation"] = {"enabled": enabled}
        await self.put()
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

    def context(self, client: Client) -> Context:
        """Return the context of a run outside of a controller, which writes no status."""

        async def ignore(*_: object) -> None:
            return None

        return Context(
            client=client,
            cluster=Cluster.from_object(
                {"metadata": {"name": self.namespace}, "spec": self._cluster}
            ),
            namespace=self.namespace,
            clock=SystemClock(),
            progress=ignore,
            save=ignore,
        )

    def made_by_the_original(self) -> list[JsonObject]:
        """Return the machine objects that the original makes of the Worker, with this network."""
        fact = machine_fact(_FACT)
        text = orjson.dumps(fact["output"]).decode()
        old, new = fact["input"]["worker"]["spec"], self._spec
        for path in ("securityGroups", "subnets"):
            known = {
                (each["purpose"], each.get("zone")): each["id"]
                for each in new["infrastructureProviderStatus"]["vpc"][path]
            }
            for each in old["infrastructureProviderStatus"]["vpc"][path]:
                if found := known.get((each["purpose"], each.get("zone"))):
                    text = text.replace(each["id"], found)
        profile = new["infrastructureProviderStatus"]["iam"]["instanceProfiles"][0]["name"]
        text = text.replace(_TECHNICAL_ID, self.namespace)
        text = text.replace(f"{self.namespace}-nodes", profile)
        text = text.replace(f"{self.namespace}-ssh", f"{_TECHNICAL_ID}-ssh")
        output = orjson.loads(text)
        return [
            {"apiVersion": kind.api_version, "kind": kind.kind, **obj}
            for kind, name in (
                (SECRET, "secrets"),
                (MACHINE_CLASS, "machineClasses"),
                (MACHINE_DEPLOYMENT, "machineDeployments"),
            )
            for obj in output[name]
        ]

    async def leave_seed(self) -> JsonObject:
        """Stop the controllers, and take the state of machines away, as gardenlet does."""
        await self.scale_controller(0)
        await self.controllers.stop()
        states: JsonObject = {}
        sets = await self.client.list(MACHINE_SET, self.namespace)
        machines = await self.client.list(MACHINE, self.namespace)
        for deployment in await self.client.list(MACHINE_DEPLOYMENT, self.namespace):
            owned = [each for each in sets if _owner(each) == name_of(deployment)]
            names = {name_of(each) for each in owned}
            states[name_of(deployment)] = {
                "replicas": deployment["spec"]["replicas"],
                "machineSets": [_portable(each) for each in owned],
                "machines": [_portable(each) for each in machines if _owner(each) in names],
            }
        await self.edit({"metadata": {"finalizers": None}})
        await self.client.delete(self.gvk, self.key)
        for kind in (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, MACHINE_CLASS):
            for each in await self.client.list(kind, self.namespace):
                with suppress(NotFound):  # collected with its owner
                    await self.client.patch(kind, Key.of(each), {"metadata": {"finalizers": None}})
                    await self.client.delete(kind, Key.of(each))
        content = gzip.compress(orjson.dumps({"machineDeployments": states}))
        return {"state": base64.b64encode(content).decode()}

    async def enter_seed(self, state: JsonObject, *pools: JsonObject) -> None:
        """Create the Worker with the state of its machines, and ask to restore them."""
        self._seen = ""
        await self.create("wait-for-state", spec={**self._spec, "pools": list(pools)})
        await self.edit_status({"state": state})
        await self.annotate("restore")

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
        """Return the uids of all machine objects by kind and name, once no machine is surplus.

        machine-controller-manager may create a machine too many, and deletes it a moment later.
        """
        async with asyncio.timeout(PATIENCE):
            while await self._has_surplus():
                await self.client.get_raw("/version")
        found = {}
        for kind in (MACHINE_DEPLOYMENT, MACHINE_SET, MACHINE, MACHINE_CLASS):
            for each in await self.client.list(kind, self.namespace):
                found[f"{kind.kind} {name_of(each)}"] = each["metadata"]["uid"]
        return found

    async def _has_surplus(self) -> bool:
        sets = await self.client.list(MACHINE_SET, self.namespace)
        desired = sum(int(map_at(each, "spec").get("replicas") or 0) for each in sets)
        return len(await self.client.list(MACHINE, self.namespace)) > desired


def _owner(obj: JsonObject) -> str:
    [owner] = obj["metadata"]["ownerReferences"]
    return str(owner["name"])


def _portable(obj: JsonObject) -> JsonObject:
    """Return what gardenlet keeps of a Machine or MachineSet."""
    metadata = {
        name: value
        for name, value in obj["metadata"].items()
        if name in ("name", "namespace", "labels", "annotations")
    }
    return {"metadata": metadata, "spec": obj["spec"]}
