"""`pergola network`: the caller's commands, with an extension that runs in the test."""

import asyncio
import stat
import sys
from collections.abc import AsyncIterator
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple

import orjson
import pytest

from pergola.api.objects import JsonObject, annotations_of, map_at
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.actuator import Context, Status
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.sandbox import Sandbox
from pergola.testing.extension_site import (
    ExtensionSite,
    RecordingActuator,
    extension_site,
    operation,
    recording_actuator,
)
from pergola.testing.waiting import PATIENCE, running

PERGOLA = Path(sys.executable).parent / "pergola"


class Said(NamedTuple):
    """The output of a command."""

    code: int
    out: str
    err: str


class Caller:
    """A user with a manifest at a terminal."""

    def __init__(self, site: ExtensionSite, kubeconfig: Path, folder: Path) -> None:
        self.site = site
        self.kubeconfig = kubeconfig
        self.manifest = folder / "network.yaml"
        self.write({})

    def write(self, spec: JsonObject) -> None:
        ranges = {"podCIDR": "100.64.0.0/11", "serviceCIDR": "100.96.0.0/13"}
        network: JsonObject = {
            "apiVersion": "extensions.gardener.cloud/v1alpha1",
            "kind": "Network",
            "metadata": {"name": self.site.key.name},
            "spec": {"type": self.site.type, **ranges, **spec},
        }
        self.manifest.write_text(dump(network))

    async def run(self, command: str, *arguments: str) -> Said:
        return await self.run_named(command, "-f", str(self.manifest), *arguments)

    async def run_named(self, command: str, *arguments: str) -> Said:
        """Run a command with a name instead of a manifest, as with kubectl."""
        process = await self.start(command, *arguments)
        out, err = await process.communicate()
        return Said(process.returncode or 0, out.decode(), err.decode())

    async def start(self, command: str, *arguments: str) -> asyncio.subprocess.Process:
        """Start a command, and return before it prints anything."""
        line = ["network", command, *arguments]
        if "--kubeconfig" not in arguments:
            line += ["--kubeconfig", str(self.kubeconfig)]
        if "-n" not in arguments and "-A" not in arguments:
            line += ["-n", self.site.namespace]
        pipe = asyncio.subprocess.PIPE
        return await asyncio.create_subprocess_exec(PERGOLA, *line, stdout=pipe, stderr=pipe)


@pytest.fixture
async def caller(
    cluster_client: Client, namespace: str, kubeconfig: Path, tmp_path: Path
) -> AsyncIterator[Caller]:
    site = await extension_site(cluster_client, namespace)
    yield Caller(site, kubeconfig, tmp_path)
    await site.clean_up()


@pytest.fixture
def actuator(caller: Caller) -> RecordingActuator:
    return recording_actuator(caller.site.type)


async def test_a_network_is_reconciled_watched_and_deleted(
    caller: Caller, actuator: RecordingActuator
) -> None:
    site = caller.site
    async with running(site.unit(actuator)):
        said = await caller.run("reconcile")
        assert (said.code, said.err) == (0, "")
        assert said.out.endswith(f"Network {site.key} is ready\n")
        assert operation(await site.read()) == ("Create", "Succeeded")
        waited = await caller.run("wait")
        assert (waited.code, waited.out) == (0, f"Network {site.key} is ready\n")
        deleted = await caller.run("delete")
        assert deleted.code == 0
        assert deleted.out.endswith(f"Network {site.key} is deleted\n")
    assert actuator.calls == ["reconcile", "delete"]
    assert (await caller.run("delete")).out == f"Network {site.key} does not exist\n"


@pytest.mark.soak("commands")
async def test_without_a_terminal_progress_is_printed_in_plain_lines(
    caller: Caller, actuator: RecordingActuator
) -> None:
    async def work(context: Context, _obj: JsonObject) -> Status | None:
        await context.progress(40, "Rolling out the agents")
        return None

    actuator.acts["reconcile"] = work
    command = await caller.start("reconcile", "-f", str(caller.manifest))
    assert command.stdout is not None
    first = await command.stdout.readline()
    async with running(caller.site.unit(actuator)):
        rest, _ = await command.communicate()
    network = f"Network {caller.site.key}"
    assert first.decode() == f"{network}: 0% waiting for the extension to pick up the request\n"
    assert rest.decode().endswith(f"{network} is ready\n")


async def test_a_network_without_an_extension_exits_with_two_and_a_reason(caller: Caller) -> None:
    said = await caller.run(
        "reconcile", "--timeout", "5", "--extension-namespace", caller.site.namespace
    )
    assert said.code == 2
    assert said.err.startswith(
        f"pergola: Error while waiting for Network {caller.site.key} to become ready: "
        "observed generation outdated (0/1); an extension for type "
    )
    assert "Traceback" not in said.err
    assert len(said.err.splitlines()) == 1


@pytest.mark.soak("commands")
async def test_networks_are_named_as_in_kubectl(
    caller: Caller, actuator: RecordingActuator
) -> None:
    site, name = caller.site, caller.site.key.name
    async with running(site.unit(actuator)):
        assert (await caller.run("reconcile")).code == 0
        again = await caller.run_named("reconcile", f"network/{name}")
        assert again.out.endswith(f"Network {site.key} is ready\n")
        assert (await caller.run_named("wait", name)).code == 0

        shown = await caller.run_named("status", f"networks/{name}", "-o", "json")
        assert orjson.loads(shown.out)["name"] == str(site.key)
        for selection in ((), ("-A",), ("-A", "-l", "!absent")):
            listed = orjson.loads((await caller.run_named("status", *selection, "-o=json")).out)
            assert str(site.key) in [network["name"] for network in listed]
        table = await caller.run_named("status")
        assert "Succeeded" in table.out
        none = await caller.run_named("status", "-l", "of=nothing")
        assert none.out == f"no Networks found in namespace {site.namespace}\n"

        assert (await caller.run_named("delete", f"network/{name}")).code == 0
    assert actuator.calls == ["reconcile", "reconcile", "delete"]


@pytest.mark.soak("commands")
@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("wait",), "name a Network: network/NAME -n NAMESPACE, or its manifest with -f"),
        (("wait", "pod/web"), '"pod/web" is not a Network; write network/NAME, or only NAME'),
        (("wait", "network/"), '"network/" has no name; write network/NAME'),
        (("status", "-w"), "-w watches one Network; name it: network/NAME"),
        (("status", "web", "-A"), "-A and -l list Networks"),
        (("status", "web"), "Network {namespace}/web does not exist"),
        (("reconcile", "web"), "Network {namespace}/web does not exist; name its manifest with -f"),
    ],
)
async def test_a_wrong_name_is_reported_in_one_sentence(
    caller: Caller, arguments: tuple[str, ...], sentence: str
) -> None:
    said = await caller.run_named(*arguments)

    assert said.code == 1
    assert sentence.format(namespace=caller.site.namespace) in said.err
    assert "Traceback" not in said.err


async def test_watch_prints_a_network_whenever_it_changes(
    caller: Caller, actuator: RecordingActuator
) -> None:
    site = caller.site
    async with running(site.unit(actuator)):
        assert (await caller.run("reconcile")).code == 0
        process = await asyncio.create_subprocess_exec(
            *(PERGOLA, "network", "status", site.key.name, "-w", "-o=json"),
            *("-n", site.namespace, "--kubeconfig", str(caller.kubeconfig)),
            stdout=asyncio.subprocess.PIPE,
        )
        assert process.stdout is not None
        first = await process.stdout.readuntil(b"\n}\n")
        assert orjson.loads(first)["lastOperation"]["type"] == "Create"
        assert (await caller.run_named("reconcile", site.key.name)).code == 0
        second = await process.stdout.readuntil(b"\n}\n")
        assert orjson.loads(second)["name"] == str(site.key)
        process.terminate()
        await process.communicate()


@pytest.mark.soak("commands")
async def test_the_lines_of_a_retrying_extension_are_not_repeated(
    caller: Caller, actuator: RecordingActuator
) -> None:
    async def fail(_context: Context, _obj: JsonObject) -> Status | None:
        raise ExtensionError("the config is wrong")

    actuator.acts["reconcile"] = fail
    command = await caller.start("reconcile", "-f", str(caller.manifest), "--timeout", "900")
    assert command.stdout is not None
    lines = [await command.stdout.readline()]  # it follows the Network from its creation
    async with running(caller.site.unit(actuator)):
        async with asyncio.timeout(PATIENCE):
            while len(actuator.calls) < 4 and command.returncode is None:
                await caller.site.read()
        with suppress(ProcessLookupError):
            command.terminate()
        rest, _ = await command.communicate()

    lines += rest.splitlines(keepends=True)
    assert len(lines) == len(set(lines))
    assert b"observed generation outdated" not in b"".join(lines)


@pytest.mark.soak("commands")
async def test_an_update_may_omit_the_request(caller: Caller) -> None:
    said = await caller.run("reconcile", "--no-wait")
    assert (said.code, said.out) == (0, f"reconciliation of Network {caller.site.key} requested\n")
    assert "gardener.cloud/timestamp" in annotations_of(await caller.site.read())


async def test_the_status_says_why_a_network_is_not_ready(
    caller: Caller, actuator: RecordingActuator
) -> None:
    async def fail(_context: Context, _obj: JsonObject) -> Status | None:
        raise ExtensionError("the pool is too small")

    actuator.acts["reconcile"] = fail
    async with running(caller.site.unit(actuator)):
        await caller.run("reconcile", "--no-wait")
        await caller.site.until_operation("Create", "Error")
        reported = orjson.loads((await caller.run("status", "-o", "json")).out)
        table = await caller.run("status")
    assert reported["ready"] is False
    assert reported["problem"].startswith("error during reconciliation: ")
    assert "the pool is too small" in reported["lastError"]["description"]
    assert "Create Error, 50%" in table.out
    assert table.code == 0


@pytest.mark.soak("commands")
async def test_a_network_moves_with_its_state_in_a_file(
    caller: Caller, actuator: RecordingActuator, second_sandbox: Sandbox, tmp_path: Path
) -> None:
    async def report(_context: Context, _obj: JsonObject) -> Status | None:
        return {"state": {"ipam": "cluster-pool"}}

    actuator.acts["migrate"] = report
    site, state = caller.site, tmp_path / "state.yaml"
    async with running(site.unit(actuator)):
        assert (await caller.run("reconcile")).code == 0
        lossy = await caller.run("migrate", "--delete")
        assert lossy.code == 1
        assert "has a state, which would be lost" in lossy.err
        said = await caller.run("migrate", "--state", str(state), "--delete")
    assert (said.code, said.err) == (0, "")
    assert said.out.endswith(f"Network {site.key} is deleted\n")
    assert stat.S_IMODE(state.stat().st_mode) == 0o600
    with pytest.raises(NotFound):
        await site.read()

    async with Client.connect(load(second_sandbox.kubeconfig)) as other:
        await other.create(
            {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": site.namespace}}
        )
        new = await extension_site(other, site.namespace, site.type)
        elsewhere = ("--kubeconfig", str(second_sandbox.kubeconfig))
        async with running(new.unit(actuator)):
            said = await caller.run("restore", "--state", str(state), *elsewhere)
            assert (said.code, said.err) == (0, "")
        live = await new.read()
        await new.clean_up()
    assert map_at(live, "status", "state") == {"ipam": "cluster-pool"}
    assert operation(live) == ("Restore", "Succeeded")


@pytest.mark.soak("commands")
@pytest.mark.parametrize(
    ("text", "sentence"),
    [
        (
            "",
            "must contain one Network of extensions.gardener.cloud/v1alpha1, and contains nothing",
        ),
        (
            "kind: Netwrok\nmetadata: {name: x}",
            "contains no Network of extensions.gardener.cloud/v1",
        ),
        ("a: [", "document 1 cannot be read: line 2, column 1: "),
        ("- a", "document 1 is not a Kubernetes object"),
        (
            "apiVersion: extensions.gardener.cloud/v1alpha1\nkind: Network\n",
            "metadata.name of the Network is missing",
        ),
        ("kind: A\n---\nkind: B\nmetadata: {name: b}\n", "and contains A, B b"),
    ],
)
async def test_a_state_file_without_the_network_is_reported_in_one_sentence(
    caller: Caller, text: str, sentence: str
) -> None:
    caller.manifest.write_text(text)
    said = await caller.run("reconcile")
    assert said.code == 1
    assert said.err.startswith(f"pergola: {caller.manifest}")
    assert sentence in said.err
    assert "Traceback" not in said.err


@pytest.mark.soak("commands")
async def test_a_namespace_that_contradicts_the_manifest_is_refused(caller: Caller) -> None:
    network = parse(caller.manifest.read_text())
    assert isinstance(network, dict)
    caller.manifest.write_text(dump({**network, "metadata": {"name": "x", "namespace": "other"}}))
    said = await caller.run("delete")
    assert said.code == 1
    assert "is for namespace other, but -n says" in said.err


@pytest.mark.soak("commands")
async def test_a_missing_file_is_named(caller: Caller) -> None:
    caller.manifest.unlink()
    said = await caller.run("wait")
    assert said.code == 1
    assert str(caller.manifest) in said.err


@pytest.mark.soak("commands")
async def test_without_the_kind_the_command_says_how_to_install_it(
    caller: Caller, private_sandbox: Sandbox
) -> None:
    where = ("--kubeconfig", str(private_sandbox.kubeconfig), "-n", "default")
    for command in ("reconcile", "wait", "status", "migrate", "restore"):
        said = await caller.run(command, *where)
        assert said.code == 1
        assert said.err == (
            "pergola: the cluster does not serve Network of extensions.gardener.cloud/v1alpha1: "
            "`pergola crds --apply` installs it; or is this the wrong cluster?\n"
        )
