"""`pergola why` explains Workers, MachineDeployments and Machines, down to the words of AWS."""

import asyncio
from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any, Final

import orjson
import pytest

from pergola.api.kinds import DEPLOYMENT, MACHINE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.cli.cluster_options import ScopeOptions
from pergola.cli.why.command import why
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.kube.client import Client
from pergola.runtime.logging import configure
from pergola.testing.crds import install_extension_crds, serve
from tests.support.machine_controllers import serve_machines

CAPACITY: Final = "InsufficientInstanceCapacity: no m5.large in eu-west-1a"
Ask = Callable[[str], Awaitable[JsonObject]]


@pytest.fixture
async def ask(
    kubeconfig: Path, cluster_client: Client, namespace: str, capsys: pytest.CaptureFixture[str]
) -> Ask:
    """Return a user who asks about the test's namespace."""
    await install_extension_crds(cluster_client)
    await serve(cluster_client, *load(SHOOT_EXTENSIONS))
    await serve_machines(cluster_client)

    async def asked(name: str) -> JsonObject:
        configure("error", "text")
        capsys.readouterr()
        cluster = ScopeOptions(kubeconfig=kubeconfig, namespace=namespace)
        await asyncio.to_thread(why, name, output="json", cluster=cluster)
        found: JsonObject = orjson.loads(capsys.readouterr().out)
        return found

    return asked


class Machines:
    """Objects of one pool in one zone, as their controllers write them."""

    def __init__(self, client: Client, namespace: str) -> None:
        self.client = client
        self.namespace = namespace
        self.name = f"{namespace}-pool-z1"

    async def create(self, kind: str, name: str, **fields: Any) -> None:
        """Create an object, and then its status."""
        group = "extensions.gardener.cloud" if kind == "Worker" else "machine.sapcloud.io"
        status = fields.pop("status", None)
        meta = {"name": name, "namespace": self.namespace, **fields.pop("metadata", {})}
        obj: JsonObject = {"apiVersion": f"{group}/v1alpha1", "kind": kind, "metadata": meta}
        made = await self.client.create({**obj, **fields})
        if status:
            gvk = GroupVersionKind.of(made)
            await self.client.patch(gvk, Key.of(made), {"status": status}, subresource="status")

    async def worker(self, **status: Any) -> None:
        """Create the Worker."""
        pool = {"name": "pool", "minimum": 2, "maximum": 2, "maxSurge": 1, "maxUnavailable": 0}
        pool |= {"machineType": "m5.large", "machineImage": {"name": "linux", "version": "1"}}
        pool["userDataSecretRef"] = {"name": "user-data", "key": "cloud_config"}
        secret = {"name": "cloudprovider", "namespace": self.namespace}
        spec = {"type": "aws", "region": "eu-west-1", "secretRef": secret, "pools": [pool]}
        await self.create("Worker", "web", spec=spec, status=status)

    async def machine_class(self) -> None:
        """Create the MachineClass."""
        zone = {"failure-domain.beta.kubernetes.io/zone": "eu-west-1a"}
        await self.create(
            "MachineClass",
            f"{self.name}-new",
            metadata={"labels": zone},
            provider="AWS",
            providerSpec={},
            secretRef={"name": "s", "namespace": self.namespace},
        )

    async def deployment(self, **status: Any) -> None:
        """Create the MachineDeployment."""
        labels = {"name": self.name}
        template = {
            "metadata": {"labels": labels},
            "spec": {"class": {"kind": "MachineClass", "name": f"{self.name}-new"}},
        }
        spec = {"replicas": 2, "selector": {"matchLabels": labels}, "template": template}
        labels = {"worker.gardener.cloud/pool": "pool"}
        metadata = {"labels": labels}
        await self.create(
            "MachineDeployment", self.name, metadata=metadata, spec=spec, status=status
        )

    async def machine(self, name: str, *, phase: str, last: str, **spec: Any) -> None:
        """Create a Machine."""
        state = "Failed" if phase != "Running" else "Successful"
        await self.create(
            "Machine",
            name,
            metadata={
                "labels": {"name": self.name, "node": f"node-of-{name}"},
                "finalizers": ["machine.sapcloud.io/machine-controller-manager"],
            },
            spec={"class": {"kind": "MachineClass", "name": f"{self.name}-new"}, **spec},
            status={
                "currentStatus": {"phase": phase},
                "lastOperation": {"description": last, "type": "Create", "state": state},
            },
        )


@pytest.fixture
def machines(cluster_client: Client, namespace: str) -> Machines:
    return Machines(cluster_client, namespace)


def texts(items: JsonObject, field: str) -> str:
    return "\n".join(
        " ".join(
            str(each[key]) for key in ("object", "text", "problem", "because") if each.get(key)
        )
        for each in items[field]
    )


async def test_a_worker_says_which_pool_lacks_machines_and_what_aws_said(
    ask: Ask, machines: Machines, namespace: str
) -> None:
    await machines.worker()
    await machines.machine_class()
    failed = {"name": "m-1", "lastOperation": {"description": CAPACITY, "type": "Create"}}
    await machines.deployment(readyReplicas=1, failedMachines=[failed])

    found = await ask("worker/web")

    assert found["answer"] == f"Worker {namespace}/web has machines that do not run"
    assert "worker pool pool is not ready: 1 of 2 machine(s) run" in texts(found, "decisions")
    problems = texts(found, "findings")
    assert f"Machine {namespace}/m-1" in problems
    assert f"{CAPACITY} (ERR_INFRA_RESOURCES_DEPLETED)" in problems
    assert "Deployment" in problems
    assert "machine-controller-manager" in problems
    assert any("use another zone or machine type" in step for step in found["nextSteps"])


async def test_a_deployment_names_its_pool_its_zone_and_a_missing_class(
    ask: Ask, machines: Machines, namespace: str
) -> None:
    await machines.worker()
    await machines.deployment(readyReplicas=2)

    found = await ask(f"machinedeployment/{machines.name}")

    assert f"Worker {namespace}/web for worker pool pool" in texts(found, "wantedBy")
    assert f"MachineClass {namespace}/{machines.name}-new it does not exist" in texts(
        found, "findings"
    )
    await machines.machine_class()
    found = await ask(f"machinedeployment/{machines.name}")
    assert "in zone eu-west-1a" in texts(found, "decisions")
    assert "MachineClass" not in texts(found, "findings")


async def test_a_machine_says_its_instance_its_node_and_why_it_is_not_deleted(
    ask: Ask, machines: Machines, cluster_client: Client, namespace: str
) -> None:
    await machines.worker()
    await machines.machine_class()
    await machines.deployment()
    await machines.machine(
        "m-1", phase="Running", last="Drain failed: 1 pod", providerID="aws:///eu-west-1/i-1"
    )
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": "machine-controller-manager", "namespace": namespace},
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"a": "b"}},
            "template": {
                "metadata": {"labels": {"a": "b"}},
                "spec": {"containers": [{"name": "c", "image": "i"}]},
            },
        },
    }
    await cluster_client.create(deployment)

    running = await ask("machine/m-1")
    await cluster_client.delete(MACHINE, Key(namespace, "m-1"))
    going = await ask("machine/m-1")

    assert running["answer"] == f"Machine {namespace}/m-1 runs"
    decided = texts(running, "decisions")
    assert "its instance is aws:///eu-west-1/i-1, and its node node-of-m-1" in decided
    assert going["state"] == "deleting"
    blocked = texts(going, "deletionBlockedBy")
    assert "Drain failed: 1 pod" in blocked
    assert "of machine-controller-manager, which removes it once the instance is gone" in blocked
    assert "it has no replicas" in texts(going, "findings")
    assert any("force-deletion=True" in step for step in going["nextSteps"])
    key = Key(namespace, "machine-controller-manager")
    await cluster_client.delete(DEPLOYMENT, key)
    await cluster_client.patch(MACHINE, Key(namespace, "m-1"), {"metadata": {"finalizers": None}})
