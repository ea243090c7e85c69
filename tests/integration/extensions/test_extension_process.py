"""`pergola extension run` as a process."""

import asyncio
import os
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import aiohttp
import orjson
import pytest

from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.kinds import LEASE, NAMESPACE
from pergola.api.objects import GroupVersionKind, Key, labels_of, map_at
from pergola.extension_api.heartbeat import NAME as HEARTBEAT
from pergola.runtime.process.sharding.ring import Share
from pergola.sandbox import Sandbox
from pergola.testing.extension_site import ExtensionSite, operation
from pergola.testing.waiting import PATIENCE, until
from tests.support.ports import held_port
from tests.support.sharder import CONTROLLER_RING, available_shards, ring, sharder

CONFIGURATION = GroupVersionKind(
    "admissionregistration.k8s.io", "v1", "MutatingWebhookConfiguration"
)

PERGOLA = Path(sys.executable).parent / "pergola"
NETWORKS = {"group": NETWORK.group, "resource": "networks"}
RESOURCES = 16
"""Enough that both shards have some, except in one of 30,000 runs."""

ACTUATOR = """
import os

from pergola.extensions import Actuator


class Gardenet(Actuator):
    kind = "Network"
    type = os.environ["TYPE"]
    name = "networking-gardenet"

    async def reconcile(self, context, obj):
        return {"providerStatus": {"by": os.environ["REPLICA"]}}

    async def delete(self, context, obj):
        return None

    async def migrate(self, context, obj):
        return None
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "gardenet.py"
    path.write_text(ACTUATOR)
    return path


@pytest.fixture
def cloud(file: Path) -> str:
    """Return the reference of an actuator that has a webhook."""
    file.write_text(ACTUATOR + MUTATOR)
    return f"{file}:Cloud"


class Replica:
    """A process and its log so far."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self.process = process
        self.lines: list[dict[str, object]] = []

    async def until_logged(self, message: str) -> dict[str, object]:
        """Wait for a line with this message in the log, and return it."""
        assert self.process.stdout is not None
        async with asyncio.timeout(PATIENCE):
            async for line in self.process.stdout:
                self.lines.append(orjson.loads(line))
                if self.lines[-1]["msg"] == message:
                    return self.lines[-1]
        raise AssertionError(f"it ended without {message!r}: {self.lines}")

    async def shard(self) -> str:
        """Wait until the shard has its Lease, and return its name."""
        line = await self.until_logged("became shard")
        return str(line["lease"]).partition("/")[2]


@asynccontextmanager
async def replica(
    kubeconfig: Path, site: ExtensionSite, *arguments: str | Path, name: str = "a", elected: bool
) -> AsyncIterator[Replica]:
    environ = {**os.environ, "TYPE": site.type, "REPLICA": name}
    environ.pop("LEADER_ELECTION_NAMESPACE", None)
    if elected:
        environ["LEADER_ELECTION_NAMESPACE"] = site.namespace
    addresses = ("--health-bind-address", "127.0.0.1:0", "--metrics-bind-address", "127.0.0.1:0")
    process = await asyncio.create_subprocess_exec(
        PERGOLA,
        *("extension", "run", *arguments, "--kubeconfig", kubeconfig, *addresses),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environ,
    )
    try:
        yield Replica(process)
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def test_one_file_and_one_command_make_an_extension(
    kubeconfig: Path, site: ExtensionSite, file: Path
) -> None:
    async with replica(kubeconfig, site, f"{file}:Gardenet", elected=False) as one:
        ports = await one.until_logged("endpoints are served")
        await one.until_logged("controllers start")
        await site.create("reconcile")
        done = await site.until_operation("Create")
        assert map_at(done, "status", "providerStatus") == {"by": "a"}
        async with aiohttp.ClientSession() as session:
            for port, path, text in (
                ("health_port", "readyz/informer-sync", "ok"),
                ("health_port", "healthz/ping", "ok"),
                ("metrics_port", "metrics", 'controller_runtime_reconcile_total{controller="netw'),
            ):
                async with session.get(f"http://127.0.0.1:{ports[port]}/{path}") as answer:
                    assert answer.status == 200
                    assert text in await answer.text()
        await site.delete()
        await site.until_gone()
        one.process.terminate()
        assert await asyncio.wait_for(one.process.wait(), 60) == 0


@pytest.mark.soak("originals")
async def test_the_sharder_divides_resources_between_replicas_and_moves_those_of_an_ended_replica(
    sandbox: Sandbox, kubeconfig: Path, site: ExtensionSite, file: Path, tmp_path: Path
) -> None:
    share = Share(f"ring-{site.key.name}", "")
    command = (f"{file}:Gardenet", "--sharding-controller-ring", share.ring)
    sites = [site.another(f"network-{number}") for number in range(RESOURCES)]

    async def done_by(each: ExtensionSite, replicas: set[str]) -> tuple[str, str]:
        """Wait until one of these replicas reconciled a resource; return its shard and name."""
        obj = await each.until(
            lambda it: map_at(it, "status", "providerStatus").get("by") in replicas
        )
        return labels_of(obj)[share.shard_label], map_at(obj, "status", "providerStatus")["by"]

    async with (
        sharder(sandbox, site.client, tmp_path),
        replica(kubeconfig, site, *command, name="a", elected=True) as one,
        replica(kubeconfig, site, *command, name="b", elected=True) as other,
    ):
        first, second = await one.shard(), await other.shard()
        await site.client.create(ring(share.ring, site.namespace, NETWORKS))
        await until(
            site.client, CONTROLLER_RING, Key("", share.ring), lambda it: available_shards(it) == 2
        )
        for each in sites:
            await each.create("reconcile")
        done = await asyncio.gather(*(done_by(each, {"a", "b"}) for each in sites))
        assert set(done) == {(first, "a"), (second, "b")}

        one.process.terminate()
        assert await asyncio.wait_for(one.process.wait(), PATIENCE) == 0
        for each in sites:
            await each.until(lambda it: labels_of(it).get(share.shard_label) == second)
            await each.annotate("reconcile")
        moved = await asyncio.gather(*(done_by(each, {"b"}) for each in sites))
        assert set(moved) == {(second, "b")}
        await site.client.delete(CONTROLLER_RING, Key("", share.ring))
    for each in sites:
        await each.edit({"metadata": {"finalizers": None}})


MUTATOR = """
from pergola.extensions.webhooks.network_mutator import network_mutator


def without_overlay(draft, old):
    draft.set(("spec", "providerConfig"), {"backend": "none"}, because="this cloud has no overlay")


class Cloud(Gardenet):
    name = f"provider-{Gardenet.type[-20:]}"

    def webhooks(self, seed):
        return [network_mutator(self.name, self.type, {self.type: without_overlay})]
"""


async def test_the_webhooks_of_an_actuator_are_served_and_registered(
    kubeconfig: Path, site: ExtensionSite, cloud: str
) -> None:
    labels = {
        "shoot.gardener.cloud/provider": site.type,
        "networking.shoot.gardener.cloud/provider": site.type,
    }
    namespace = Key("", site.namespace)
    await site.client.patch(NAMESPACE, namespace, {"metadata": {"labels": labels}})
    configuration = Key("", f"gardener-extension-provider-{site.type[-20:]}")
    with held_port() as port:
        options = (
            *("--webhook-config-mode", "url", "--webhook-config-url", f"127.0.0.1:{port}"),
            *(
                "--webhook-config-server-port",
                str(port),
                "--webhook-config-server-host",
                "127.0.0.1",
            ),
            *("--webhook-config-namespace", site.namespace),
            *("--webhook-config-owner-namespace", site.namespace),
        )
        async with replica(kubeconfig, site, cloud, *options, elected=False) as one:
            ports = await one.until_logged("endpoints are served")
            await until(site.client, CONFIGURATION, configuration, lambda obj: True)
            check = f"http://127.0.0.1:{ports['health_port']}/readyz/webhook-server"
            async with aiohttp.ClientSession() as session, session.get(check) as answer:
                assert answer.status == 200
            async with asyncio.timeout(PATIENCE):
                # The API server learns of a registration with a delay.
                while True:
                    created = await site.create("wait-for-state")
                    if "providerConfig" in created["spec"]:
                        break
                    await site.delete()
        assert created["spec"]["providerConfig"] == {"backend": "none"}
        await site.client.delete(CONFIGURATION, configuration)


async def test_an_instance_of_other_classes_leaves_webhooks_to_the_one_for_shoots(
    kubeconfig: Path, site: ExtensionSite, cloud: str
) -> None:
    """Both have the same names, so each would replace what the other registered."""
    options = ("--extension-classes", "garden", "--webhook-config-namespace", site.namespace)
    async with replica(kubeconfig, site, cloud, *options, elected=False) as one:
        await one.until_logged(
            "webhooks are not served: they concern Shoots, and this instance serves none"
        )
        await one.until_logged("endpoints are served")
    configuration = Key("", f"gardener-extension-provider-{site.type[-20:]}")
    assert await site.client.find(CONFIGURATION, configuration) is None


async def test_an_instance_that_does_not_run_a_controller_leaves_its_webhooks_to_others(
    kubeconfig: Path, site: ExtensionSite, cloud: str
) -> None:
    options = (
        *("--webhook-config-namespace", site.namespace),
        *("--disable-controllers", "network"),
    )
    async with replica(kubeconfig, site, cloud, *options, elected=False) as one:
        await one.until_logged("endpoints are served")
    configuration = Key("", f"gardener-extension-provider-{site.type[-20:]}")
    assert await site.client.find(CONFIGURATION, configuration) is None


async def test_of_two_replicas_only_the_leader_reconciles_and_renews_the_heartbeat(
    kubeconfig: Path, site: ExtensionSite, file: Path
) -> None:
    # If a busy machine delays the test until the leader renews its heartbeat, it proves nothing.
    seldom = ("--heartbeat-renew-interval-seconds", "3600")
    async with replica(kubeconfig, site, file, *seldom, elected=True) as first:
        await first.until_logged("controllers start")
        await site.create("reconcile")
        await site.until_operation("Create")
        key = Key(site.namespace, HEARTBEAT)
        beat = await until(site.client, LEASE, key, lambda lease: True)
        assert beat["spec"]["holderIdentity"] == "networking-gardenet"
        assert beat["spec"]["leaseDurationSeconds"] == 3600
        async with replica(kubeconfig, site, file, *seldom, name="b", elected=True) as second:
            await second.until_logged("waiting to be leader")
            await site.annotate("reconcile")
            done = await site.until_operation("Reconcile")
            assert map_at(done, "status", "providerStatus") == {"by": "a"}
            assert (await site.client.get(LEASE, key))["spec"] == beat["spec"]

            first.process.terminate()
            await second.until_logged("controllers start")
            await site.annotate("reconcile")
            await site.until(lambda obj: map_at(obj, "status", "providerStatus") == {"by": "b"})
            await until(site.client, LEASE, key, lambda lease: lease["spec"] != beat["spec"])
    lease = await site.client.get(LEASE, Key(site.namespace, "networking-gardenet-leader-election"))
    assert operation(await site.read()) == ("Reconcile", "Succeeded")
    assert lease["spec"]["leaseTransitions"] == 1


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        ((), "name an extension: pergola extension run calico"),
        (("{file}:Calico",), 'has no "Calico"; its actuators are: Gardenet'),
        (("{file}", "{file}"), "two actuators are for the kind Network and the type"),
        (
            ("{file}", "--controllers", "dns"),
            "--controllers names dns; there are heartbeat, network",
        ),
        (("{file}", "--max-concurrent-reconciles", "0"), "options.maxConcurrentReconciles"),
        (
            ("{file}", "--heartbeat-namespace", "x", "--heartbeat-renew-interval-seconds", "0"),
            "--heartbeat-renew-interval-seconds must be greater than 0",
        ),
    ],
)
async def test_a_mistake_is_reported_in_one_sentence(
    kubeconfig: Path,
    site: ExtensionSite,
    file: Path,
    arguments: tuple[str, ...],
    sentence: str,
) -> None:
    given = [argument.format(file=file) for argument in arguments]
    async with replica(kubeconfig, site, *given, elected=False) as one:
        output, _ = await one.process.communicate()
    said = output.decode().splitlines()[-1]
    assert one.process.returncode == 1
    assert said.startswith("pergola: ")
    assert sentence in said
