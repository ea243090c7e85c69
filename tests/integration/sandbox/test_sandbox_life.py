"""Life cycle of sandboxes: owners, neighbours, and no leftovers."""

import asyncio
import os
import secrets
import signal
import stat
import sys
import tempfile
from asyncio.subprocess import PIPE
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import suppress
from pathlib import Path

import pytest

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, JOB, NODE
from pergola.api.objects import GroupVersionKind, JsonObject, Key, labels_of, map_at
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.sandbox import API_ONLY, Sandbox, SandboxError, find, start, stop
from pergola.sandbox.processes import ProcessId
from pergola.testing.waiting import PATIENCE

OWNER = """
import asyncio
from pergola.sandbox import API_ONLY, start
asyncio.run(start({name!r}, components=API_ONLY))
print("ready", flush=True)
input()
"""


def new_name() -> str:
    return f"life-{secrets.token_hex(4)}"


@pytest.fixture
def own_root(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Use a root without the sandboxes of other tests, whose start would remove crashed ones."""
    with tempfile.TemporaryDirectory() as path:  # shorter than tmp_path: sockets live there
        monkeypatch.setenv("XDG_RUNTIME_DIR", path)
        yield


@pytest.fixture
async def small() -> AsyncIterator[Sandbox]:
    """Yield a sandbox with etcd and API server for this test only."""
    sandbox = await start(new_name(), components=API_ONLY)
    yield sandbox
    await stop(sandbox.name)


def processes(sandbox: Sandbox) -> list[ProcessId]:
    state = sandbox.state()
    children = [ProcessId(*child["process"]) for child in state["components"].values()]
    return [ProcessId(*state["supervisor"]), *children]


def is_gone(sandbox: Sandbox, of_sandbox: list[ProcessId]) -> bool:
    lock = sandbox.directory.with_name(f"{sandbox.directory.name}.lock")
    left = sandbox.directory.exists() or lock.exists()
    return not left and not any(process.alive for process in of_sandbox)


async def until(check: Callable[[], bool]) -> None:
    async with asyncio.timeout(PATIENCE):
        while not check():  # noqa: ASYNC110 - processes and files send no events
            await asyncio.sleep(0.02)


def workload(kind: GroupVersionKind, namespace: str, spec: JsonObject) -> JsonObject:
    pod = {"containers": [{"name": "main", "image": "main"}], "restartPolicy": "Always"}
    if kind == JOB:
        pod["restartPolicy"] = "Never"
    return {
        "apiVersion": kind.api_version,
        "kind": kind.kind,
        "metadata": {"name": "it", "namespace": namespace},
        "spec": {"template": {"metadata": {"labels": {"app": "it"}}, "spec": pod}, **spec},
    }


async def until_status(
    client: Client, kind: GroupVersionKind, key: Key, desired: JsonObject
) -> None:
    async with asyncio.timeout(PATIENCE):
        while True:
            status = map_at(await client.get(kind, key), "status")
            if desired.items() <= status.items():
                return
            await asyncio.sleep(0.05)


async def test_three_nodes_in_three_zones_are_ready(
    sandbox: Sandbox, cluster_client: Client
) -> None:
    # Other tests create nodes, too, but the sandbox's own nodes are in its region.
    nodes = await cluster_client.list(NODE, labels="topology.kubernetes.io/region=local")

    zones = [labels_of(node)["topology.kubernetes.io/zone"] for node in nodes]
    assert sorted(zones) == ["local-a", "local-b", "local-c"]
    assert not any(map_at(node, "spec").get("taints") for node in nodes)
    states = {name: child["state"] for name, child in sandbox.state()["components"].items()}
    assert set(states.values()) == {"running"}
    assert len(states) == 5


async def test_a_deployment_of_two_replicas_becomes_available(
    cluster_client: Client, namespace: str
) -> None:
    spec = {"replicas": 2, "selector": {"matchLabels": {"app": "it"}}}
    await cluster_client.create(workload(DEPLOYMENT, namespace, spec))

    await until_status(
        cluster_client, DEPLOYMENT, Key(namespace, "it"), {"availableReplicas": 2, "replicas": 2}
    )


async def test_a_job_completes(cluster_client: Client, namespace: str) -> None:
    await cluster_client.create(workload(JOB, namespace, {}))

    await until_status(cluster_client, JOB, Key(namespace, "it"), {"succeeded": 1})


def test_only_the_user_can_access_the_files(sandbox: Sandbox) -> None:
    paths = [sandbox.directory]
    for folder, folders, files in os.walk(sandbox.directory):
        paths += [Path(folder, name) for name in (*folders, *files)]
    seen = 0
    for path in paths:
        with suppress(FileNotFoundError):  # etcd renames and removes files
            mode = path.lstat().st_mode
            assert stat.S_ISLNK(mode) or not stat.S_IMODE(mode) & 0o077, path
            seen += 1
    assert seen > 10


@pytest.mark.soak("chaos")
async def test_two_sandboxes_run_side_by_side_in_isolation(
    sandbox: Sandbox, second_sandbox: Sandbox
) -> None:
    key = Key("default", new_name())
    async with (
        Client.connect(load(sandbox.kubeconfig)) as first,
        Client.connect(load(second_sandbox.kubeconfig)) as second,
    ):
        await first.create(
            {
                "apiVersion": "v1",
                "kind": "ConfigMap",
                "metadata": {"name": key.name, "namespace": key.namespace},
            }
        )
        names = [o["metadata"]["name"] for o in await second.list(CONFIG_MAP, "default")]

    assert key.name not in names


@pytest.mark.soak("chaos")
async def test_a_second_sandbox_with_the_same_name_is_rejected(small: Sandbox) -> None:
    with pytest.raises(SandboxError, match=f'sandbox "{small.name}" is already running'):
        await start(small.name, components=API_ONLY)

    assert find(small.name) == small
    assert all(process.alive for process in processes(small))


async def test_nothing_is_left_after_stop(small: Sandbox) -> None:
    of_sandbox = processes(small)

    assert await stop(small.name)

    assert is_gone(small, of_sandbox)
    assert find(small.name) is None
    assert not await stop(small.name)


async def test_nothing_is_left_after_the_owner_was_killed() -> None:
    name = new_name()
    owner = await asyncio.create_subprocess_exec(
        sys.executable, "-c", OWNER.format(name=name), stdin=PIPE, stdout=PIPE
    )
    assert owner.stdout is not None
    assert await owner.stdout.readline() == b"ready\n"
    owned = find(name)
    assert owned is not None
    of_sandbox = processes(owned)

    owner.kill()
    await owner.wait()

    await until(lambda: is_gone(owned, of_sandbox))


@pytest.mark.soak("chaos")
async def test_a_killed_supervisor_leaves_no_process_and_the_next_start_removes_its_files(
    own_root: None, small: Sandbox
) -> None:
    of_sandbox = processes(small)
    os.kill(of_sandbox[0].pid, signal.SIGKILL)
    await until(lambda: not any(process.alive for process in of_sandbox))
    assert find(small.name) is None
    assert small.directory.exists()

    following = await start(new_name(), components=API_ONLY)
    await following.stop()

    assert is_gone(small, of_sandbox)


@pytest.mark.soak("chaos")
async def test_nothing_is_left_after_a_cancelled_start(tmp_path: Path) -> None:
    name = new_name()
    reached = asyncio.Event()

    def progress(line: str) -> None:
        if "etcd" in line:
            reached.set()

    starting = asyncio.create_task(start(name, components=API_ONLY, progress=progress))
    await reached.wait()
    starting.cancel()
    await asyncio.wait([starting])

    assert starting.cancelled()
    assert not await stop(name)


async def test_a_failing_component_is_named_with_the_end_of_its_log() -> None:
    name = new_name()

    with pytest.raises(SandboxError, match=r"kube-apiserver does not stay up(.|\n)*no-such-flag"):
        await start(name, components=API_ONLY, apiserver_flags=("--no-such-flag",))

    assert not await stop(name)


async def test_an_owner_that_has_exited_is_rejected() -> None:
    ended = await asyncio.create_subprocess_exec("true")
    await ended.wait()

    with pytest.raises(SandboxError, match="which should own the sandbox, has exited"):
        await start(new_name(), components=API_ONLY, owner=ended.pid)
