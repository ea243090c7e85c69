"""`pergola aws plan` compares the manifest of a Worker with the live one, and writes nothing."""

import asyncio
from collections.abc import AsyncIterator
from copy import deepcopy
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api.kinds import MACHINE_DEPLOYMENT
from pergola.api.objects import JsonObject, Key
from pergola.cli.aws import plan as aws_plan
from pergola.cli.aws.subject import Source
from pergola.extension_api.cluster import CLUSTER
from pergola.extension_api.kinds import WORKER
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.kube.client import Client
from pergola.kube.yaml import dump
from pergola.runtime.logging import configure
from pergola.testing.crds import install_extension_crds, serve
from tests.support.aws.machines import machine_fact
from tests.support.machine_controllers import serve_machines


class Site:
    """A Worker with its Cluster, and a user with its manifest."""

    def __init__(self, client: Client, namespace: str, kubeconfig: Path, folder: Path) -> None:
        fact = deepcopy(machine_fact("base")["input"])
        self.client, self.namespace = client, namespace
        self.cluster: JsonObject = {**fact["cluster"], "metadata": {"name": namespace}}
        self.cluster["spec"]["shoot"]["status"]["technicalID"] = namespace
        self.worker: JsonObject = fact["worker"]
        self.worker["metadata"]["namespace"] = namespace
        self._source = Source(
            kubeconfig=kubeconfig, namespace=namespace, file=str(folder / "worker.yaml")
        )

    @property
    def pool(self) -> JsonObject:
        pool: JsonObject = self.worker["spec"]["pools"][0]
        return pool

    async def create(self) -> None:
        """Create the Worker as the manifest is now."""
        await self.client.create(deepcopy(self.worker))

    async def scaled(self, zone: int, replicas: int) -> None:
        """Create a MachineDeployment, as the cluster autoscaler has scaled it."""
        name = f"{self.namespace}-pool-a-z{zone}"
        labels = {"name": name}
        template: JsonObject = {"metadata": {"labels": labels}, "spec": {"class": {"name": name}}}
        await self.client.create(
            {
                "apiVersion": MACHINE_DEPLOYMENT.api_version,
                "kind": MACHINE_DEPLOYMENT.kind,
                "metadata": {"name": name, "namespace": self.namespace},
                "spec": {
                    "replicas": replicas,
                    "selector": {"matchLabels": labels},
                    "template": template,
                },
            }
        )

    def _write(self) -> None:
        Path(self._source.file).write_text(dump(self.worker))

    async def planned(self, capsys: pytest.CaptureFixture[str]) -> tuple[JsonObject, Any]:
        """Return the first pool of the plan, and the exit code."""
        configure("error", "text")
        self._write()
        capsys.readouterr()
        code: Any = 0
        try:
            await asyncio.to_thread(aws_plan.plan, source=self._source, output="json")
        except SystemExit as exit_:
            code = exit_.code
        found: JsonObject = orjson.loads(capsys.readouterr().out)["pools"][0]
        return found, code


@pytest.fixture
async def site(
    cluster_client: Client, namespace: str, kubeconfig: Path, tmp_path: Path
) -> AsyncIterator[Site]:
    await install_extension_crds(cluster_client)
    await serve(cluster_client, *load(SHOOT_EXTENSIONS))
    await serve_machines(cluster_client)
    found = Site(cluster_client, namespace, kubeconfig, tmp_path)
    await cluster_client.create(found.cluster)
    yield found
    await cluster_client.delete(CLUSTER, Key("", namespace))


async def test_a_change_is_compared_with_the_live_worker(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    await site.create()
    await site.scaled(1, 2)
    before = await site.client.get(WORKER, Key.of(site.worker))
    same, code = await site.planned(capsys)
    assert (same["fate"], code) == ("keep", 0)

    site.pool["volume"]["encrypted"] = True
    found, code = await site.planned(capsys)

    assert (found["fate"], code) == ("replace", aws_plan.DIFFERENT)
    assert [each["field"] for each in found["inputs"]] == ["volume.encrypted"]
    assert [each["machines"] for each in found["zones"]] == [2, 1, 1]
    assert await site.client.get(WORKER, Key.of(site.worker)) == before


async def test_a_pool_of_an_old_version_keeps_its_hash_however_its_config_is_written(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    site.pool["kubernetesVersion"] = "1.33.1"
    site.pool["providerConfig"] = {
        "kind": "WorkerConfig",
        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
        "volume": {"throughput": 200, "iops": 3000},
        "nodeTemplate": {"capacity": {"cpu": "2"}},
    }
    await site.create()

    same, code = await site.planned(capsys)
    site.pool["providerConfig"]["volume"]["iops"] = 4000
    found, _ = await site.planned(capsys)

    assert (same["fate"], code) == ("keep", 0)
    assert found["fate"] == "replace"
    assert [each["field"] for each in found["inputs"]] == ["providerConfig"]
    assert found["oldHash"] == same["oldHash"]


async def test_without_a_worker_every_pool_is_new(
    site: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    found, code = await site.planned(capsys)

    assert (found["fate"], code) == ("create", aws_plan.DIFFERENT)
