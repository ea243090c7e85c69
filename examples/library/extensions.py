"""Extensions of Gardener and their callers: `pergola.extension_api` and `pergola.extensions`."""

from datetime import UTC, datetime

from pergola.api import JsonObject, Key
from pergola.extension_api import Cluster, ExtensionKind, Shoot
from pergola.extension_api.caller import (
    EXTENSION,
    NETWORK,
    Extension,
    Progress,
    Request,
    Saved,
    Verdict,
    Waiting,
    abandon,
    ask,
    choose_cidr,
    collect,
    deploy,
    deploy_if_needed,
    destroy,
    explainer,
    leave,
    migrate,
    network_of,
    readiness,
    restore,
    saved,
    timestamp_of,
    wait_deleted,
    wait_migrated,
    wait_ready,
)
from pergola.kube import Client
from pergola.runtime import SystemClock

NOW = datetime(2026, 1, 1, tzinfo=UTC)
SHOOT: JsonObject = {
    "apiVersion": "core.gardener.cloud/v1beta1",
    "kind": "Shoot",
    "metadata": {"namespace": "garden-shop", "name": "web"},
    "spec": {
        "kubernetes": {"version": "1.34.0"},
        "networking": {"type": "calico", "pods": "10.0.0.0/16", "services": "10.1.0.0/16"},
        "provider": {"type": "aws", "workers": [{"name": "small"}]},
    },
}


def shoots() -> None:
    """Read what an extension needs of a Shoot; the rest is in `raw`."""
    shoot = Shoot(SHOOT)
    assert not shoot.is_workerless
    assert shoot.raw["spec"]["networking"]["type"] == "calico"
    cluster = Cluster("shoot--shop--web", shoot)
    network = network_of(cluster)
    assert network is not None
    assert network["spec"]["type"] == "calico"
    assert choose_cidr(["IPv4"], ["10.0.0.0/16", "fd00::/48"]) == "10.0.0.0/16"


def verdicts() -> None:
    """Judge whether an extension carried out the last request."""
    assert isinstance(NETWORK, ExtensionKind)
    verdict = readiness({"metadata": {"generation": 1}})
    assert isinstance(verdict, Verdict)
    assert verdict.problem
    assert timestamp_of(NOW).startswith("2026-01-01T00:00:00.")
    state: JsonObject = {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ShootState",
        "spec": {"extensions": [{"kind": "Network", "name": "web", "state": {}}]},
    }
    assert isinstance(saved(state, "Network", "web"), Saved)


async def calling(client: Client) -> None:
    """Prepare the life of a Network: deployed, awaited, moved to another seed, deleted."""
    clock, key = SystemClock(), Key("shoot--shop--web", "web")
    desired = network_of(Cluster("shoot--shop--web", Shoot(SHOOT))) or {}
    heard: list[Progress] = []
    explain = explainer(client, clock, Extension(name="networking-calico"))
    waiting = Waiting(timeout=300, report=heard.append, explain=explain)

    async def live() -> Request:
        first = await deploy(client, NETWORK, desired, clock)
        obj = await wait_ready(client, NETWORK, key, waiting, expected=first.timestamp)
        await deploy_if_needed(client, NETWORK, desired, obj, clock)
        return await ask(client, NETWORK, key, "reconcile", clock)

    async def move(to: Client) -> None:
        state = await leave(client, NETWORK, key, clock, waiting)
        await restore(to, NETWORK, desired, state, clock)

    async def move_by_hand(obj: JsonObject) -> JsonObject:
        await migrate(client, EXTENSION, key, clock)
        await wait_migrated(client, EXTENSION, key, waiting)
        state = await collect(client, EXTENSION, obj)
        await abandon(client, EXTENSION, key, clock, waiting)
        return state

    async def end() -> None:
        await destroy(client, NETWORK, key, clock)
        await wait_deleted(client, NETWORK, key, waiting)

    assert all(map(callable, (live, move, move_by_hand, end)))
