"""An Infrastructure and a Worker are handed from the original's own program to Pergola, and back.

The original is provider-aws v1.73.0, built from its module. Both are without webhooks here.
"""

from collections.abc import AsyncIterator
from pathlib import Path
from typing import Final

import pytest

from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.kinds import MACHINE_CLASS, MACHINE_DEPLOYMENT, NODE, SECRET
from pergola.api.marks import OPERATION
from pergola.api.objects import JsonObject, JsonValue, annotations_of, map_at, name_of, uid_of
from pergola.cloud.aws import AwsClient
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load as load_kubeconfig
from pergola.providers.aws.workers.actuator import AwsWorker
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.sandbox.aws.world import everything
from pergola.testing.crds import install_extension_crds, serve
from pergola.testing.extension_site import ExtensionSite
from pergola.testing.shared import private
from pergola.testing.waiting import running
from pergola.testing.world import RecordingClient
from tests.support.aws.original import OriginalExtension
from tests.support.aws.site import AwsSite, state_of
from tests.support.aws.worker_site import WorkerSite
from tests.support.machine_controllers import (
    MachineControllers,
    hurried_deletions,
    joining_nodes,
    serve_machines,
)

NAMESPACE: Final = "shoot--demo--blue"
PATIENCE: Final = 120.0
REQUESTED: Final = "requested"


class Handover:
    """An Infrastructure and a Worker of type `aws`, each with its own controller at a time.

    Attributes:
        kubeconfig: of the seed.
        original: the other side.
    """

    def __init__(
        self,
        aws: CorrectedAws,
        account: AwsClient,
        worker: WorkerSite,
        kubeconfig: Path,
        folder: Path,
    ) -> None:
        self.aws = aws
        self.account = account
        self.worker = worker
        self.infrastructure = AwsSite(worker.client, NAMESPACE, INFRASTRUCTURE, "aws")
        self.infrastructure.aws = aws
        self.kubeconfig = kubeconfig
        self.original = OriginalExtension(folder, kubeconfig, aws.url, "infrastructure", "worker")

    async def create(self) -> None:
        """Let the controllers that run now create both."""
        await self.original.survive(self._create())

    async def _create(self) -> None:
        shoot = self.worker.shoot
        await self.infrastructure.ask(shoot["spec"]["provider"]["infrastructureConfig"])
        created = await self.infrastructure.until(is_ready, patience=PATIENCE)
        self.worker.status.clear()
        self.worker.status.update(created["status"]["providerStatus"])
        await self.worker.create_worker()
        await self.worker.until(is_ready, patience=PATIENCE)

    async def reconcile(self) -> list[str]:
        """Let the controllers that run now reconcile both; return what they wrote in AWS."""
        self.aws.writes()
        for site in (self.infrastructure, self.worker):
            await self.original.survive(reconcile(site))
        return self.aws.writes()

    async def picture(self) -> dict[str, object]:
        """Return everything that must not change: contents of AWS, objects, and what they say."""
        client = self.worker.client
        found: dict[str, object] = {**await everything(self.account)}
        found |= await self.worker.instances()
        found |= await self.worker.uids()
        for kind in (MACHINE_CLASS, MACHINE_DEPLOYMENT, SECRET):
            for obj in await client.list(kind, NAMESPACE):
                found[f"{kind.kind} {name_of(obj)}"] = {
                    name: value for name, value in obj.items() if name not in ("metadata", "status")
                } | {"uid": uid_of(obj), "labels": map_at(obj, "metadata", "labels")}
        for node in await client.list(NODE):
            found[f"Node {name_of(node)}"] = uid_of(node)
        infrastructure = await self.infrastructure.read()
        status = {"elasticFileSystem": None, **map_at(infrastructure, "status", "providerStatus")}
        found |= {f"state {key}": said(value) for key, value in state_of(infrastructure).items()}
        found |= {f"status {key}": said(value) for key, value in status.items()}
        # The original writes it without an id where there is none.
        del found["status elasticFileSystem"]
        return found


def said(value: JsonValue) -> JsonValue:
    """Return a value without the order of its lists, which is not the same in each run."""
    match value:
        case dict():
            return {key: said(each) for key, each in value.items()}
        case list():
            return sorted(map(said, value), key=str)
        case str():
            return ",".join(sorted(value.split(",")))
    return value


def changes(before: dict[str, object], after: dict[str, object]) -> dict[str, object]:
    """Return what differs, before and after."""
    return {
        key: (before.get(key), after.get(key))
        for key in before.keys() | after.keys()
        if before.get(key) != after.get(key)
    }


def is_ready(obj: JsonObject) -> bool:
    """Return whether the last operation succeeded, and no other is requested."""
    succeeded = map_at(obj, "status", "lastOperation").get("state") == "Succeeded"
    return succeeded and OPERATION not in annotations_of(obj)


async def reconcile(site: ExtensionSite) -> JsonObject:
    """Request a reconciliation, and wait until it is done.

    Its time may be that of the one before, which has seconds.
    """
    await site.edit_status({"lastOperation": {"description": REQUESTED}})
    await site.annotate("reconcile")
    return await site.until(
        lambda obj: is_ready(obj) and description_of(obj) != REQUESTED, patience=PATIENCE
    )


def description_of(obj: JsonObject) -> str:
    """Return the description of the last operation."""
    return str(map_at(obj, "status", "lastOperation")["description"])


@pytest.fixture
async def handover(aws: CorrectedAws, client: AwsClient, tmp_path: Path) -> AsyncIterator[Handover]:
    """Yield a cluster of its own, because the original serves all namespaces."""
    with private() as own:
        async with Client.connect(load_kubeconfig(own.kubeconfig)) as seed:
            await install_extension_crds(seed)
            await serve(seed, *load(SHOOT_EXTENSIONS))
            await serve_machines(seed)
            namespace: JsonObject = {"metadata": {"name": NAMESPACE}}
            await seed.create({"apiVersion": "v1", "kind": "Namespace", **namespace})
            controllers = MachineControllers(tmp_path, own.kubeconfig, NAMESPACE, aws.url)
            worker = await WorkerSite.without_network(
                seed, NAMESPACE, client, controllers, of_type="aws"
            )
            found = Handover(aws, client, worker, own.kubeconfig, tmp_path)
            async with joining_nodes(seed, NAMESPACE), hurried_deletions(seed, NAMESPACE):
                await controllers.start()
                try:
                    yield found
                finally:
                    await controllers.stop()
                    await found.infrastructure.clean_up()


@pytest.mark.soak("originals")
async def test_network_and_machines_pass_from_the_original_to_pergola_and_back(
    handover: Handover,
) -> None:
    """The original waits five seconds between two questions to AWS, and builds three zones."""
    original, worker = handover.original, handover.worker
    await original.start()
    await handover.create()
    theirs = await handover.reconcile()
    before = await handover.picture()
    await original.stop()

    async with (
        RecordingClient.connect(load_kubeconfig(handover.kubeconfig)) as recording,
        running(
            handover.infrastructure.controller(recording),
            worker.unit(AwsWorker(), client=recording),
        ),
    ):
        assert await handover.reconcile() == []
        assert changes(before, await handover.picture()) == {}
        written = {write.split(" ")[1] for write in recording.writes}
        assert written == {"Infrastructure", "Worker"}

    await original.start()
    assert await handover.reconcile() == theirs
    assert changes(before, await handover.picture()) == {}
    await original.stop()
