"""Calico and cilium in one process, at a seed and at a garden: one cluster is both (spec 40 §7.3).

These tests have a separate cluster, since the plugins handle all Networks and Shoots.
"""

import asyncio
import copy
import os
import secrets
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import Final

import aiohttp
import orjson
import pytest

from pergola.admission.configurations import MUTATING, VALIDATING
from pergola.api.extensions_v1alpha1 import NETWORK
from pergola.api.kinds import LEASE, SHOOT
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api import caller
from pergola.extension_api.heartbeat import NAME as HEARTBEAT
from pergola.extensions.garden import CLOUD_PROFILE, NAMESPACED_CLOUD_PROFILE
from pergola.extensions.heartbeat import Heartbeat
from pergola.kube.client import Client
from pergola.kube.errors import Invalid, KubeError
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import parse_documents
from pergola.runtime.clock import SystemClock
from pergola.sandbox import API_ONLY, Sandbox
from pergola.testing.crds import definition, install_extension_crds, served
from pergola.testing.network_site import give_shoot_access
from pergola.testing.shared import private
from pergola.testing.waiting import PATIENCE, until, until_gone
from tests.support.ports import held_port

EXAMPLES: Final = Path(__file__).parents[4] / "examples" / "network"
PERGOLA: Final = Path(sys.executable).parent / "pergola"
CALICO: Final = "calico"
CILIUM: Final = "cilium"
PROXY: Final = "spec.kubernetes.kubeProxy.enabled"
REFUSAL: Final = (
    "Disabling kube-proxy is forbidden in conjunction with calico without running in ebpf dataplane"
)
OFF: Final[JsonObject] = {"kubeProxy": {"enabled": False}}
EBPF: Final[JsonObject] = {"ebpfDataplane": {"enabled": True}}

AWS: Final = "pergola.providers.aws.actuator:AwsInfrastructure"
MACHINE_TYPE: Final = "m5.large"


@pytest.fixture(scope="module")
def own() -> Iterator[Sandbox]:
    with private(API_ONLY) as own:
        yield own


@pytest.fixture
async def client(own: Sandbox) -> AsyncIterator[Client]:
    async with Client.connect(load(own.kubeconfig)) as client:
        await install_extension_crds(client)
        for gvk in (SHOOT, CLOUD_PROFILE, NAMESPACED_CLOUD_PROFILE):
            scope = "Cluster" if gvk == CLOUD_PROFILE else "Namespaced"
            await client.apply(definition(gvk, scope=scope), manager="test", force=True)
            await served(client, gvk)
        yield client


@pytest.fixture
async def namespace(client: Client) -> str:
    """Return the namespace of an extension, or of a project's Shoots."""
    name = f"ns-{secrets.token_hex(4)}"
    metadata = {"name": name}
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": metadata})
    return name


@asynccontextmanager
async def process(
    own: Sandbox, namespace: str, command: str, *arguments: str | Path
) -> AsyncGenerator[dict[str, object]]:
    """Run a process; yield its log lines about endpoints."""
    with held_port() as port:
        async with serving(own, namespace, port, command, *arguments) as ports:
            yield ports


@asynccontextmanager
async def serving(
    own: Sandbox, namespace: str, port: int, command: str, *arguments: str | Path
) -> AsyncGenerator[dict[str, object]]:
    """Run a process whose webhooks are served at a port."""
    options = {
        "--kubeconfig": str(own.kubeconfig),
        "--webhook-config-mode": "url",
        "--webhook-config-url": f"127.0.0.1:{port}",
        "--webhook-config-server-port": str(port),
        "--health-bind-address": "127.0.0.1:0",
        "--metrics-bind-address": "127.0.0.1:0",
    }
    running = await asyncio.create_subprocess_exec(
        PERGOLA,
        *("extension", command, *arguments, *(word for pair in options.items() for word in pair)),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env={**os.environ, "LEADER_ELECTION_NAMESPACE": namespace},
    )
    draining: asyncio.Task[object] | None = None
    try:
        ports = await _until_working(running)
        assert running.stdout is not None
        draining = asyncio.create_task(running.stdout.read())
        yield ports
        running.terminate()
        assert await asyncio.wait_for(running.wait(), PATIENCE) == 0
    finally:
        with suppress(ProcessLookupError):
            running.kill()
        await running.wait()
        if draining is not None:
            await draining


async def _until_working(running: asyncio.subprocess.Process) -> dict[str, object]:
    assert running.stdout is not None
    ports: dict[str, object] = {}
    lines: list[bytes] = []
    async with asyncio.timeout(PATIENCE):
        async for line in running.stdout:
            lines.append(line)
            said = orjson.loads(line) if line.startswith(b"{") else {}
            if said.get("msg") == "endpoints are served":
                ports = said
            if said.get("msg") in ("controllers start", "webhooks are served"):
                return ports
    raise AssertionError(b"".join(lines).decode())


# At a seed


async def test_two_actuators_of_one_kind_run_in_one_process(
    own: Sandbox, client: Client, namespace: str
) -> None:
    arguments = ("run", CALICO, CILIUM, "--feature-gates", "NonPrivilegedCalicoNode=true")
    async with process(own, namespace, *arguments) as ports:
        for plugin in ("calico", "cilium"):
            network = await deployed(client, own, plugin)
            assert map_at(network, "status", "providerStatus")["kind"] == "NetworkStatus"
            resource = f"extension-networking-{plugin}-config"
            await client.get(MANAGED_RESOURCE, Key(f"shoot--demo--{plugin}", resource))
        webhooks = Key("shoot--demo--cilium", "extension-cilium-shoot-webhooks")
        await client.get(MANAGED_RESOURCE, webhooks)

        for name in ("network-calico", "network-cilium"):
            labels = f'{{controller="{name}",result="success"}}'
            series = f"controller_runtime_reconcile_total{labels} "
            # A run is counted after it has ended, a moment after its last write.
            await until_page(ports["metrics_port"], "metrics", partial(has_counted, series))

        first = await until(client, LEASE, Key(namespace, HEARTBEAT), lambda _: True)
        other = Key(namespace, f"{HEARTBEAT}-networking-cilium")
        second = await until(client, LEASE, other, lambda _: True)
        holders = [lease["spec"]["holderIdentity"] for lease in (first, second)]
        assert holders == ["networking-calico", "networking-cilium"]

        for plugin in ("calico", "cilium"):
            key = Key(f"shoot--demo--{plugin}", "my-network")
            await caller.destroy(client, caller.NETWORK, key, SystemClock())
            await forget_managed_resources(client, key.namespace)
            await until_gone(client, NETWORK, key)


async def test_waiting_callers_find_the_heartbeat_of_the_second_extension(
    client: Client, namespace: str
) -> None:

    await Heartbeat(client, "networking-weft", namespace, is_first=False).beat()
    explain = caller.explainer(client, SystemClock())
    network: JsonObject = {
        "kind": "Network",
        "metadata": {"name": "x", "namespace": "", "annotations": caller_request()},
        "spec": {"type": "weft"},
    }
    assert await explain(network) == ""
    assert "none of those that run serves type warp" in await explain(
        {**network, "spec": {"type": "warp"}}
    )


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (
            ("run", CALICO, "--feature-gates", "Faster=true"),
            "--feature-gates names Faster; there are NonPrivilegedCalicoNode, SeamlessOverlay",
        ),
        (
            ("run", CALICO, CILIUM, "--controllers", "network"),
            "--controllers names network; there are heartbeat, network-calico, network-cilium",
        ),
    ],
)
async def test_a_mistake_is_reported_in_one_sentence(
    own: Sandbox, arguments: tuple[str, ...], sentence: str
) -> None:
    environ = {name: v for name, v in os.environ.items() if name != "LEADER_ELECTION_NAMESPACE"}
    addresses = ("--health-bind-address", "0", "--metrics-bind-address", "0")
    running = await asyncio.create_subprocess_exec(
        PERGOLA,
        *("extension", *arguments, "--kubeconfig", str(own.kubeconfig), *addresses),
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
        env=environ,
    )
    output, _ = await running.communicate()
    assert running.returncode == 1
    said = output.decode().splitlines()[-1]
    assert said.startswith("pergola: ")
    assert sentence in said


# At a garden


async def test_a_shoot_is_reviewed_by_the_plugin_of_its_network(
    own: Sandbox, client: Client, namespace: str
) -> None:
    going = shoot(namespace, "calico", "going", kubernetes=OFF)
    going["metadata"]["finalizers"] = ["example.org/held"]
    await client.create(going)  # before the webhook can refuse it
    await client.delete(SHOOT, Key(namespace, "going"))
    before = await client.create(shoot(namespace, "cilium", "before"))

    async with process(own, namespace, "admission", CALICO, CILIUM) as ports:
        name = Key("", "gardener-extension-admission-calico")
        validating = await until(client, VALIDATING, name, lambda _: True)
        await until_page(ports["health_port"], "readyz", lambda text: text == "ok")
        urls = [w["clientConfig"]["url"].partition("/webhooks")[2] for w in entries(validating)]
        assert sorted(urls) == ["/validate/calico", "/validate/cilium"]
        [mutator] = entries(await until(client, MUTATING, name, lambda _: True))
        assert mutator["name"] == "mutator.admission-cilium.extensions.gardener.cloud"

        # Calico without eBPF needs kube-proxy, on creation and afterwards.
        denied = shoot(namespace, "calico", "denied", kubernetes=OFF)
        assert f"{PROXY}: Forbidden: {REFUSAL}" in await refused(client, denied)
        await client.create(shoot(namespace, "calico", "web"))
        with pytest.raises(Invalid) as error:
            await client.patch(SHOOT, Key(namespace, "web"), {"spec": {"kubernetes": OFF}})
        [cause] = error.value.causes
        assert (cause["field"], cause["message"]) == (PROXY, f"Forbidden: {REFUSAL}")
        await client.create(shoot(namespace, "calico", "ebpf", kubernetes=OFF, config=EBPF))

        # A Shoot that is being deleted is never blocked.
        held = Key(namespace, "going")
        await client.patch(SHOOT, held, {"spec": {"networking": {"providerConfig": {"bogus": 1}}}})
        await client.patch(SHOOT, held, {"metadata": {"finalizers": []}})
        await until_gone(client, SHOOT, held)

        # Problems of a config are reported with their paths.
        wrong = shoot(namespace, "calico", "wrong", config={"backend": "bogus"})
        assert "spec.networking.providerConfig.backend" in await refused(client, wrong)

        # New Shoots with cilium have no kube-proxy unless they ask for it.
        desired = shoot(namespace, "cilium", "new")
        await until_mutated(client, desired, lambda obj: obj["spec"]["kubernetes"] == OFF)
        new = await client.create(desired)
        assert new["spec"]["kubernetes"] == OFF
        asked: JsonObject = {"kubeProxy": {"enabled": True}}
        kept = await client.create(shoot(namespace, "cilium", "kept", kubernetes=asked))
        assert kept["spec"]["kubernetes"] == asked
        labels: JsonObject = {"metadata": {"labels": {"a": "b"}}, "spec": {"purpose": "testing"}}
        updated = await client.patch(SHOOT, Key.of(before), labels)
        assert updated["spec"]["kubernetes"] == {}

        # Other types are not reviewed.
        await client.create(shoot(namespace, "weft", "other", kubernetes=OFF))
    await unregistered(client, "gardener-extension-admission-calico")


async def test_a_provider_considers_cloud_profiles(
    own: Sandbox, client: Client, namespace: str
) -> None:
    profile_spec = {
        "regions": [{"name": "eu-west-1", "zones": [{"name": "eu-west-1a"}]}],
        "machineTypes": [{"name": MACHINE_TYPE}],
    }
    await client.apply(
        {
            "apiVersion": CLOUD_PROFILE.api_version,
            "kind": CLOUD_PROFILE.kind,
            "metadata": {"name": "aws"},
            "spec": profile_spec,
        },
        manager="test",
    )
    async with process(own, namespace, "admission", AWS):
        denied = aws_shoot(namespace, "denied", zone="eu-west-1z")
        text = await refused(client, denied)
        assert "spec.provider.infrastructureConfig.networks.zones[0].name" in text
        desired = aws_shoot(namespace, "web", zone="eu-west-1a")
        await until_mutated(client, desired, lambda obj: "providerConfig" in networking_of(obj))
        stored = await client.create(desired)
        overlay = stored["spec"]["networking"]["providerConfig"]["overlay"]
        assert overlay == {"enabled": False}
        # A profile that is created later is known as soon as it exists.
        profile = {"kind": NAMESPACED_CLOUD_PROFILE.kind, "name": "mine"}
        own_profile = aws_shoot(namespace, "own", zone="eu-west-1z", cloudProfile=profile)
        await client.create(own_profile, dry_run=True)
        metadata = {"name": "mine", "namespace": namespace}
        await client.create(
            {
                "apiVersion": NAMESPACED_CLOUD_PROFILE.api_version,
                "kind": NAMESPACED_CLOUD_PROFILE.kind,
                "metadata": metadata,
                "status": {"cloudProfileSpec": profile_spec},
            }
        )
        assert "zones[0].name" in await refused(client, own_profile)
    await unregistered(client, "gardener-extension-admission-aws")


# Helpers


async def deployed(client: Client, own: Sandbox, plugin: str) -> JsonObject:
    """Return the example's Network once it is reconciled; the seed is its Shoot, too."""
    documents = [
        document.value
        for name in ("cluster.yaml", "network.yaml")
        for document in parse_documents((EXAMPLES / plugin / name).read_text())
    ]
    *around, network = [value for value in documents if isinstance(value, dict)]
    for obj in around:
        await client.apply(obj, manager="test", force=True)
    await give_shoot_access(client, f"shoot--demo--{plugin}", own.kubeconfig)
    request = await caller.deploy(client, caller.NETWORK, network, SystemClock())
    return await caller.wait_ready(
        client, caller.NETWORK, Key.of(network), expected=request.timestamp
    )


async def forget_managed_resources(client: Client, namespace: str) -> None:
    """Act as the resource manager for a Shoot that does not exist."""
    for resource in await client.list(MANAGED_RESOURCE, namespace):
        patch: JsonObject = {"metadata": {"finalizers": []}}
        with suppress(KubeError):
            await client.patch(MANAGED_RESOURCE, Key.of(resource), patch)


def caller_request() -> dict[str, str]:
    return {"gardener.cloud/operation": "reconcile"}


def shoot(
    namespace: str,
    plugin: str,
    name: str,
    *,
    kubernetes: JsonObject | None = None,
    config: JsonObject | None = None,
) -> JsonObject:
    networking: JsonObject = {"type": plugin, "pods": "10.1.0.0/16", "nodes": "10.2.0.0/16"}
    if config is not None:
        networking["providerConfig"] = config
    labels = {f"networking.extensions.gardener.cloud/{plugin}": "true"}
    return {
        "apiVersion": SHOOT.api_version,
        "kind": SHOOT.kind,
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "networking": networking,
            "provider": {"type": "local", "workers": [{"name": "w"}]},
            "kubernetes": kubernetes or {},
        },
    }


def aws_shoot(namespace: str, name: str, *, zone: str, **spec: JsonObject) -> JsonObject:
    found = shoot(namespace, "calico", name)
    found["metadata"]["labels"] = {"provider.extensions.gardener.cloud/aws": "true"}
    ranges = {"workers": "10.2.0.0/19", "public": "10.2.32.0/20", "internal": "10.2.48.0/20"}
    networks = {"vpc": {"cidr": "10.2.0.0/16"}, "zones": [{"name": zone, **ranges}]}
    config = {
        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "InfrastructureConfig",
        "networks": networks,
    }
    found["spec"] |= {"region": "eu-west-1", "cloudProfileName": "aws", **spec}
    found["spec"]["networking"]["services"] = "10.3.0.0/16"
    worker = {
        "name": "w",
        "machine": {"type": MACHINE_TYPE},
        "volume": {"type": "gp3", "size": "50Gi"},
        "zones": [zone],
    }
    found["spec"]["provider"] |= {
        "type": "aws",
        "infrastructureConfig": config,
        "workers": [worker],
    }
    return found


async def refused(client: Client, obj: JsonObject) -> str:
    """Wait until the API server calls a webhook, and return its refusal of an object."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.create(copy.deepcopy(obj), dry_run=True)
            except Invalid as error:
                return str(error)
            except KubeError:
                await client.get_raw("/version")


async def until_mutated(
    client: Client, obj: JsonObject, holds: Callable[[JsonObject], bool]
) -> None:
    """Wait until the API server calls the webhook that changes an object."""
    async with asyncio.timeout(PATIENCE):
        while not holds(await client.create(copy.deepcopy(obj), dry_run=True)):
            pass


def networking_of(shoot: JsonObject) -> JsonObject:
    return map_at(shoot, "spec", "networking")


async def unregistered(client: Client, name: str) -> None:
    """Delete the registrations, so that no request waits for a process that has ended."""
    for gvk in (MUTATING, VALIDATING):
        with suppress(KubeError):
            await client.delete(gvk, Key("", name))


def has_counted(series: str, metrics: str) -> bool:
    """Return whether a counter exists and is not zero."""
    return series in metrics and f"{series}0.0" not in metrics


def entries(configuration: JsonObject) -> list[JsonObject]:
    return maps_at(configuration, "webhooks")


async def until_page(port: object, path: str, holds: Callable[[str], bool]) -> None:
    """Wait until a page of a process contains a text, and return it."""
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"http://127.0.0.1:{port}/{path}") as answer:
                if answer.status == 200 and holds(await answer.text()):
                    return
