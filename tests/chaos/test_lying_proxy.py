"""A proxy answers every kind of request wrongly: nothing is deleted, and everything converges."""

import asyncio
from pathlib import Path
from typing import Final

import orjson
import pytest

from pergola.api import marks
from pergola.api.kinds import CONFIG_MAP, SECRET
from pergola.api.objects import JsonObject, Key, map_at, name_of, uid_of
from pergola.kube.kubeconfig import load
from pergola.resource_manager.controllers.token_requestor import names
from pergola.sandbox import Sandbox
from pergola.testing.waiting import PATIENCE
from pergola.testing.world import World, is_ready
from tests.support.instances import Instances
from tests.support.lying_proxy import LyingProxy
from tests.support.wrong_answers import WRONG_ANSWERS

SECONDS_TO_CONVERGE: Final = 30.0
SECONDS_OF_LIES: Final = {False: 18.0, True: 300.0}
SHAPES: Final = 40
TOKENS: Final = 5
KINDS: Final = {
    *("GET", "LIST", "WATCH", "POST", "PUT", "PATCH", "DELETE", "DISCOVERY"),
    *("PUT status", "PUT leases", "POST token"),
}
CONFIG: Final[JsonObject] = {
    "leaderElection": {
        "leaderElect": True,
        "resourceNamespace": "kube-system",
        "leaseDuration": "60s",
        "renewDeadline": "40s",
        "retryPeriod": "300ms",
    },
    "controllers": {
        "garbageCollector": {"enabled": True, "syncPeriod": "15s", "minimumAge": "0s"},
        "tokenRequestor": {"enabled": True},
    },
}


def content(world: World, number: int, revision: int) -> list[JsonObject]:
    """Return the objects at a revision; the name of one changes with each."""
    return [
        world.config_map(f"stays-{number}", revision=str(revision)),
        world.config_map(f"moves-{number}-{revision}", revision=str(revision)),
    ]


def used_config_map(world: World) -> list[JsonObject]:
    """Return a ConfigMap that is garbage unless its Deployment is seen."""
    name = {"name": "used", "namespace": world.namespace}
    labels = {marks.GARBAGE_COLLECTABLE: "true"}
    pod = {
        "containers": [{"name": "c", "image": "example.org/c"}],
        "volumes": [{"name": "v", "configMap": {"name": "used"}}],
    }
    deployment = {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": name,
        "spec": {
            "replicas": 0,
            "selector": {"matchLabels": {"app": "used"}},
            "template": {"metadata": {"labels": {"app": "used"}}, "spec": pod},
        },
    }
    config_map = world.config_map("used", labels, a="b")
    return [deployment, {**config_map, "immutable": True}]


def token_secret(world: World, number: int) -> JsonObject:
    """Return a Secret that requests a token."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": f"token-{number}",
            "namespace": world.namespace,
            "labels": {names.PURPOSE: "token-requestor", names.CLASS: "shoot"},
            "annotations": {
                names.NAME: f"robot-{number}",
                names.NAMESPACE: world.namespace,
            },
        },
    }


async def change_all(world: World, revision: int) -> None:
    """Write a new revision of the content of every ManagedResource."""
    async with asyncio.TaskGroup() as group:
        for number in range(len(WRONG_ANSWERS)):
            group.create_task(world.put_secret(f"mr-{number}", *content(world, number, revision)))


async def converged(world: World, revision: int, patience: float = PATIENCE) -> float:
    """Wait until exactly the objects of a revision exist; return the seconds that it took."""
    began = asyncio.get_running_loop().time()
    numbers = range(len(WRONG_ANSWERS))
    desired = {name_of(obj) for number in numbers for obj in content(world, number, revision)}
    found: set[str] = set()
    try:
        async with asyncio.timeout(patience):
            for number in numbers:
                await world.until(f"mr-{number}", is_ready)
            while found != desired:
                await asyncio.sleep(0.1)
                found = {
                    name_of(obj)
                    for obj in await world.client.list(CONFIG_MAP, world.namespace)
                    if map_at(obj, "data").get("revision") == str(revision)
                    or name_of(obj).startswith("moves-")
                }
    except TimeoutError:
        raise AssertionError(f"did not converge: {sorted(found ^ desired)}") from None
    return asyncio.get_running_loop().time() - began


async def uids(world: World) -> dict[str, str]:
    """Return the uids of the objects that no revision deletes."""
    found = await world.client.list(CONFIG_MAP, world.namespace)
    return {name_of(obj): uid_of(obj) for obj in found if not name_of(obj).startswith("moves-")}


@pytest.mark.thorough("chaos")
async def test_wrong_answers_to_all_requests_delete_nothing(
    world: World,
    private_sandbox: Sandbox,
    tmp_path: Path,
    *,
    is_thorough: bool,
) -> None:
    proxy = LyingProxy(load(private_sandbox.kubeconfig), WRONG_ANSWERS)
    # A leader that cannot renew its Lease ends, by design.
    proxy.every = {"PUT leases": 3}
    async with proxy.serving() as url:
        kubeconfig = tmp_path / "kubeconfig"
        kubeconfig.write_bytes(orjson.dumps(a_kubeconfig(url)))
        instances = Instances(kubeconfig, tmp_path)
        try:
            instance = await instances.start(elect=True, config=CONFIG)
            async with asyncio.TaskGroup() as group:
                for number in range(len(WRONG_ANSWERS)):
                    group.create_task(world.create(f"mr-{number}", *content(world, number, 0)))
            for obj in used_config_map(world):
                await world.client.create(obj)
            usual = await converged(world, 0)
            before = await uids(world)

            proxy.is_honest = False
            revision = await lied(world, proxy, SECONDS_OF_LIES[is_thorough])
            proxy.is_honest = True

            # Beside the other tests of `make test`, the machine is too busy for a limit.
            limit = max(SECONDS_TO_CONVERGE, 2 * usual) if is_thorough else PATIENCE
            await converged(world, revision, limit)
            assert instance.process.returncode is None, log_of(tmp_path)
            assert await uids(world) == before
            assert set(proxy.seen) >= KINDS
            for number in range(TOKENS, (revision + 1) * TOKENS):
                await world.until_object(SECRET, Key(world.namespace, f"token-{number}"), has_token)
            if is_thorough:
                assert {k: n for k, n in proxy.seen.items() if k in KINDS and n < SHAPES} == {}
        finally:
            await instances.kill_all()


async def lied(world: World, proxy: LyingProxy, seconds: float) -> int:
    """Cause requests until each kind of them got every wrong answer, or the time is over.

    A kind that got none yet is waited for.
    """
    loop = asyncio.get_running_loop()
    end, revision = loop.time() + seconds, 0
    while not all(proxy.seen.get(kind, 0) >= len(WRONG_ANSWERS) for kind in KINDS):
        is_over = loop.time() >= end and proxy.seen.keys() >= KINDS
        if is_over or loop.time() >= end + PATIENCE:
            break
        revision += 1
        if proxy.seen["WATCH"] < len(WRONG_ANSWERS):
            proxy.end_watches()
        for number in range(TOKENS):
            await world.client.create(token_secret(world, revision * TOKENS + number))
        await change_all(world, revision)
        await asyncio.sleep(2)
    return revision


def has_token(secret: JsonObject) -> bool:
    return bool(map_at(secret, "data").get("token"))


def log_of(folder: Path) -> str:
    return (folder / "a.log").read_text()[-2000:]


def a_kubeconfig(url: str) -> JsonObject:
    """Return a kubeconfig of the proxy, which has credentials of its own."""
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "clusters": [{"name": "proxy", "cluster": {"server": url}}],
        "users": [{"name": "anonymous", "user": {}}],
        "contexts": [{"name": "proxy", "context": {"cluster": "proxy", "user": "anonymous"}}],
        "current-context": "proxy",
    }
