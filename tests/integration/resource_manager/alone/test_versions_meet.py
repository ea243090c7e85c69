"""Resource managers of different origin or version meet during a roll-out or a migration.

One leads while the other already serves the webhooks; then the other takes over.
"""

import asyncio
import io
import subprocess
import sys
import tarfile
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack
from pathlib import Path
from typing import Final, NamedTuple

import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, SERVICE
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    labels_of,
    resource_version_of,
)
from pergola.kube.client import Client
from pergola.kube.yaml import parse_documents
from pergola.sandbox import Sandbox, binaries
from pergola.sandbox.on_demand import GARDENER_RESOURCE_MANAGER
from pergola.testing.crds import install_crds
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import RecordingClient, World
from tests.support.admission_site import write_pair
from tests.support.instances import Instance, Instances
from tests.support.ports import held_port
from tools.soak import in_soak

pytestmark = pytest.mark.timeout(600)

ROOT: Final = Path(__file__).parents[4]
_MAIN: Final = "import sys; from pergola.cli import main; sys.exit(main())"
CONSIDERED: Final = "high-availability-config.resources.gardener.cloud/consider"
TYPE: Final = "high-availability-config.resources.gardener.cloud/type"


class Manager(NamedTuple):
    """A resource manager: the command, and what its environment has in addition."""

    command: tuple[str, ...]
    environment: dict[str, str]


PERGOLA: Final = Manager((sys.executable, "-c", _MAIN, "resource-manager"), {})


def original(_: Path) -> Manager:
    name = GARDENER_RESOURCE_MANAGER
    return Manager((str(binaries.find((name,))[name]),), {})


def previous(folder: Path) -> Manager:
    """Return Pergola as of the commit before this one."""
    folder /= "previous"
    answer = subprocess.run(
        ["git", "archive", "HEAD^", "src", "charts", "examples"],
        cwd=ROOT,
        capture_output=True,
        check=False,
    )
    if answer.returncode != 0:
        pytest.skip("this is no checkout with a previous commit")
    with tarfile.open(fileobj=io.BytesIO(answer.stdout)) as archive:
        archive.extractall(folder, filter="data")
    return Manager(PERGOLA.command, {"PYTHONPATH": str(folder / "src")})


MANAGERS: Final[dict[str, Callable[[Path], Manager]]] = {
    "original": original,
    "previous": previous,
    "this": lambda _: PERGOLA,
}


@pytest.fixture
async def world(lone_client: Client, recorder: RecordingClient, fresh: str) -> World:
    """Yield a namespace whose workloads are considered for high availability."""
    await install_crds(lone_client)
    labels = {"metadata": {"labels": {CONSIDERED: "true", marks.ROLE: "shoot"}}}
    await lone_client.patch(NAMESPACE, Key("", fresh), labels)
    return World(lone_client, recorder, fresh)


class Site:
    """Two resource managers at one cluster, with one Lease; the second serves the webhooks."""

    def __init__(self, instances: Instances, folder: Path, ports: list[int]) -> None:
        self.instances = instances
        self.folder = folder
        self._ports = ports
        self._authority = write_pair(folder)

    def settings(self, number: int) -> JsonObject:
        """Return the configuration of one of them, apart from its connections."""
        webhooks, health, metrics = self._ports[number * 3 :][:3]
        return {
            "server": {
                "webhooks": {
                    "bindAddress": "127.0.0.1",
                    "port": webhooks,
                    "tls": {"serverCertDir": str(self.folder)},
                },
                "healthProbes": {"bindAddress": "127.0.0.1", "port": health},
                "metrics": {"bindAddress": "127.0.0.1", "port": metrics},
            },
            "webhooks": {"highAvailabilityConfig": {"enabled": True}},
            "controllers": {"managedResource": {"syncPeriod": "15s"}},
        }

    async def start(self, number: int, manager: Manager) -> Instance:
        """Start one of them, and wait until it serves webhooks."""
        instance = await self.instances.start(
            elect=True,
            name=str(number),
            config=self.settings(number),
            command=manager.command,
            environment=manager.environment,
        )
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    _, writer = await asyncio.open_connection("127.0.0.1", self._ports[number * 3])
                except OSError:
                    await asyncio.sleep(0.1)
                else:
                    writer.close()
                    return instance

    async def register(self, client: Client, number: int) -> None:
        """Let the API server ask one of them."""
        config = self.folder / f"{number}.json"
        authority = self.folder / "ca.pem"
        authority.write_bytes(self._authority)
        url = f"https://localhost:{self._ports[number * 3]}"
        command = [*PERGOLA.command[:-1], "webhooks", "render", "--config", str(config)]
        command += ["--installation", "runtime"]
        rendered = await asyncio.create_subprocess_exec(
            *command, "--url", url, "--ca", str(authority), stdout=asyncio.subprocess.PIPE
        )
        output, _ = await rendered.communicate()
        for document in parse_documents(output):
            assert isinstance(document.value, dict)
            await client.apply(document.value, manager="test", force=True)


@pytest.fixture
async def site(lone_sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Site]:
    """Yield the site of a test, whose processes are killed at its end."""
    instances = Instances(lone_sandbox.kubeconfig, tmp_path)
    with ExitStack() as stack:
        yield Site(instances, tmp_path, [stack.enter_context(held_port()) for _ in range(6)])
        await instances.kill_all()


def deployment(world: World) -> JsonObject:
    """Return a workload whose replicas and spreading the webhook decides."""
    labels = {"app": "web"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {
            "name": "web",
            "namespace": world.namespace,
            "labels": {TYPE: "server"},
        },
        "spec": {
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "web", "image": "registry.example.org/web:1"}]},
            },
        },
    }


async def until_asked(world: World) -> None:
    """Wait until the API server asks the webhook, of which it learns by a watch."""
    probe = deployment(world)
    probe["metadata"]["labels"][marks.MANAGED_BY] = "gardener"
    async with asyncio.timeout(PATIENCE):
        while True:
            answer = await world.client.create(probe, dry_run=True)
            if answer["spec"]["replicas"] == 2:
                return
            await asyncio.sleep(0.1)


def service(world: World) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "web", "namespace": world.namespace},
        "spec": {"type": "NodePort", "selector": {"app": "web"}, "ports": [{"port": 80}]},
    }


KEPT: Final = ((DEPLOYMENT, "web"), (SERVICE, "web"), (CONFIG_MAP, "kept"))


async def kept_objects(world: World) -> dict[GroupVersionKind, JsonObject]:
    return {gvk: await world.client.get(gvk, world.key(name)) for gvk, name in KEPT}


def essence(obj: JsonObject) -> JsonObject:
    """Return an object without what each write changes."""
    changing = ("managedFields", "resourceVersion", "generation")
    metadata = {name: v for name, v in obj["metadata"].items() if name not in changing}
    return {**obj, "metadata": metadata, "status": None}


@pytest.mark.parametrize(
    "versions",
    in_soak(
        "originals",
        [
            ("previous", "this"),
            ("this", "previous"),
            ("original", "this"),
            ("this", "original"),
        ],
    ),
    ids=" then ".join,
)
async def test_what_one_version_applied_another_keeps_and_prunes(
    world: World, site: Site, tmp_path: Path, versions: tuple[str, str]
) -> None:
    """The first version leads, and the second serves the webhooks until it takes over."""
    first, second = (MANAGERS[version](tmp_path) for version in versions)
    leader = await site.start(0, first)
    await site.start(1, second)
    await site.register(world.client, 1)
    await until_asked(world)
    described = [deployment(world), service(world), world.config_map("kept", {"a": "b"})]
    await world.create(
        "demo", *described, world.config_map("gone"), injectLabels={"injected": "yes"}
    )
    await world.applied("demo")
    before = await kept_objects(world)
    assert before[DEPLOYMENT]["spec"]["replicas"] == 2  # as the webhook decided
    assert all(labels_of(obj)["injected"] == "yes" for obj in before.values())

    await leader.kill()
    await world.put_secret("demo", *described, world.config_map("new"))
    await world.until_object(CONFIG_MAP, world.key("new"), lambda _: True)
    await world.until_gone(CONFIG_MAP, world.key("gone"))
    await world.applied("demo")

    after = await kept_objects(world)
    for gvk, obj in before.items():
        assert essence(after[gvk]) == essence(obj)
        if second == PERGOLA:  # it has not even written them
            assert resource_version_of(after[gvk]) == resource_version_of(obj)
