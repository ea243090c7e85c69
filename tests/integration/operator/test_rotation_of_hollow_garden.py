"""Whole rotations by the operator's reconciler with hollow components, on real API servers.

The operator dies between two writes, and starts and completes rotations on schedule.
"""

from collections import Counter
from collections.abc import AsyncIterator, Iterator
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import orjson
import pytest

from pergola.api.kinds import DEPLOYMENT, SECRET, SEED
from pergola.api.marks import OPERATION
from pergola.api.objects import JsonObject, annotations_of, labels_of, map_at, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.kube.client import Client
from pergola.kube.errors import Conflict
from pergola.kube.kubeconfig import load
from pergola.operator.rotation.encryption.rewrite import KEY_NAME
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.controller import Again
from pergola.sandbox import API_ONLY, Sandbox
from pergola.testing.shared import private
from tests.support.dying import Lives, Write
from tests.support.garden_world import MANAGED
from tests.support.hollow_garden import (
    LOCAL,
    everything_works,
    install_runtime,
    install_virtual,
    reconciler,
    uninstall_virtual,
)
from tests.support.overtaken import Overtaken

pytestmark = pytest.mark.timeout(1800)

SEEDS = 3
MOST = 400
"""An upper limit of the lives in a step, and of its writes."""
HOUR = timedelta(hours=1)
DAY = timedelta(days=1)
FEWEST = 10
STEPS = ("rotate-credentials-start", "rotate-credentials-complete")
"""The requests of a user; the first one also completes the rotation of etcd's key."""
KEPT = "generic-token-kubeconfig"
"""Contains the authorities, so both steps replace it; pods may still mount the old one."""
ROTATED = ("ca", "ca-client", "service-account-key", "kube-apiserver-etcd-encryption-key")
PHASED = ("certificateAuthorities", "etcdEncryptionKey", "serviceAccountKey", "workloadIdentityKey")
REQUESTS = ("renew-garden-access-secrets", "renew-workload-identity-tokens", "renew-kubeconfig")


@dataclass
class World:
    """The two clusters of a Garden, and the operator's clock."""

    runtime: Client
    virtual: Client
    clock: FakeClock

    async def reconcile(self, runtime: Client, virtual: Client) -> float:
        """Reconcile the Garden with these clients, and return the seconds until the next run."""
        outcome = await reconciler(runtime, virtual, self.clock).reconcile(LOCAL)
        assert isinstance(outcome, Again)
        return outcome.seconds

    async def settle(self) -> None:
        """Reconcile until no old credentials are left."""
        for _ in range(2):
            await self.reconcile(self.runtime, self.virtual)
            self.advance(DAY + HOUR)

    def advance(self, time: timedelta) -> None:
        self.clock.set(self.clock.now() + time)

    async def rotation(self) -> JsonObject:
        garden = await self.runtime.get(GARDEN, LOCAL)
        return map_at(garden, "status", "credentials", "rotation")


@pytest.fixture(scope="module")
def clock() -> FakeClock:
    return FakeClock(datetime.now(UTC).replace(microsecond=0))


@pytest.fixture(scope="module")
def runtime_sandbox() -> Iterator[Sandbox]:
    """Yield a runtime cluster of etcd and an API server."""
    with private(API_ONLY, prepare=install_runtime) as own:
        yield own


@pytest.fixture
async def world(
    runtime_sandbox: Sandbox, garden_sandbox: Sandbox, clock: FakeClock
) -> AsyncIterator[World]:
    """Yield a Garden with hollow components, and its Seeds."""
    async with (
        Client.connect(load(runtime_sandbox.kubeconfig)) as runtime,
        Client.connect(load(garden_sandbox.kubeconfig)) as virtual,
    ):
        await install_virtual(virtual, SEEDS)
        async with everything_works(runtime, virtual):
            world = World(runtime, virtual, clock)
            await world.settle()
            yield world
        await uninstall_virtual(virtual)


@pytest.fixture
async def overtaken(runtime_sandbox: Sandbox) -> AsyncIterator[Overtaken]:
    """Yield a client of the runtime cluster that another writer overtakes."""
    async with Overtaken.connect(load(runtime_sandbox.kubeconfig)) as client:
        yield client


@pytest.mark.thorough("gardens")
async def test_a_rotation_survives_kills_of_the_operator_between_any_two_writes(
    world: World, *, is_thorough: bool
) -> None:
    before = await shape(world)
    identify = each_write if is_thorough else each_sort
    writes: list[Write] = []
    for step in STEPS:
        world.advance(HOUR)
        patch = {"metadata": {"annotations": {OPERATION: step}}}
        await world.runtime.patch(GARDEN, LOCAL, patch)
        lives = Lives(identify, world.runtime, world.virtual)
        while await lives.live(world.reconcile):
            assert lives.count < MOST
        writes += lives.writes
        assert lives.count > FEWEST

    assert {name: each.get("phase") for name, each in (await world.rotation()).items()} == {
        **dict.fromkeys(PHASED, "Completed"),
        "observability": None,
    }
    assert await shape(world) == before
    assert phases(writes) == {
        name: ["Preparing", "Prepared", "Completing", "Completed"] for name in PHASED
    }
    once = generated(writes)
    assert {*ROTATED} <= once.keys()
    assert [name for name, count in once.items() if count > 1] == []
    assert requested(writes) == {
        (f"s{number}", operation): 1
        for number in range(SEEDS)
        for operation in (*REQUESTS, "reconcile")
    }
    assert set(relabelled(writes).values()) == {1}

    # Nothing is left to do.
    idle = Lives(each_write, world.runtime, world.virtual)
    assert not await idle.live(world.reconcile)
    assert idle.writes == []


async def test_a_scheduled_rotation_starts_and_completes_in_the_maintenance_window(
    world: World,
) -> None:
    schedule = {"serviceAccountKey": {"rotationPeriod": "720h", "completeAfter": "24h"}}
    window = {"begin": "220000+0000", "end": "230000+0000"}
    maintenance = {"timeWindow": window, "autoRotation": {"credentials": schedule}}
    patch = {"spec": {"virtualCluster": {"maintenance": maintenance}}}
    await world.runtime.patch(GARDEN, LOCAL, patch)
    generated = datetime.fromisoformat(await creation_or_rotation(world))
    seen: list[tuple[str, datetime]] = []
    while [phase for phase, _ in seen] != ["Prepared", "Completed"]:
        seconds = await world.reconcile(world.runtime, world.virtual)
        key = (await world.rotation()).get("serviceAccountKey", {})
        step = key.get("phase", ""), world.clock.now()
        if (
            datetime.fromisoformat(key.get("lastInitiationTime", "1970-01-01T00:00:00Z"))
            > generated
        ):
            seen += [step] if step[0] not in dict(seen) else []
        world.advance(timedelta(seconds=seconds))
    (_, began), (_, completed) = seen
    assert began.hour == completed.hour == 22
    assert 30 * DAY <= began - generated <= 31 * DAY
    assert DAY <= completed - began <= 2 * DAY
    await world.runtime.patch(
        GARDEN, LOCAL, {"spec": {"virtualCluster": {"maintenance": {"autoRotation": None}}}}
    )


async def test_an_encryption_provider_that_changes_as_a_run_begins_loses_no_key(
    world: World, overtaken: Overtaken
) -> None:
    key = "kube-apiserver-etcd-encryption-key"
    before = await credentials(world, key)
    world.advance(HOUR)
    overtaken.before = lambda: world.runtime.patch(GARDEN, LOCAL, encrypted_by("secretbox"))
    await world.reconcile(overtaken, world.virtual)
    world.advance(HOUR)
    await world.reconcile(world.runtime, world.virtual)
    assert (await world.rotation())["etcdEncryptionKey"]["phase"] == "Prepared"
    after = await credentials(world, key)
    assert before < after
    assert len(after) == len(before) + 1


async def test_a_request_that_replaces_another_as_a_run_begins_is_not_lost(
    world: World, overtaken: Overtaken
) -> None:
    await request(world, "reconcile")
    overtaken.before = lambda: request(world, "rotate-observability-credentials")
    world.advance(HOUR)
    await world.reconcile(overtaken, world.virtual)
    await world.reconcile(world.runtime, world.virtual)
    began = (await world.rotation())["observability"]["lastInitiationTime"]
    assert datetime.fromisoformat(began) == world.clock.now()


async def test_a_request_that_replaces_a_begun_one_is_not_lost(
    world: World, overtaken: Overtaken
) -> None:
    async def begin() -> None:
        overtaken.before = lambda: request(world, "rotate-observability-credentials")

    await request(world, "reconcile")
    overtaken.before = begin
    world.advance(HOUR)
    with pytest.raises(Conflict):
        await world.reconcile(overtaken, world.virtual)
    await world.reconcile(world.runtime, world.virtual)
    began = (await world.rotation())["observability"]["lastInitiationTime"]
    assert datetime.fromisoformat(began) == world.clock.now()


async def request(world: World, operation: str) -> None:
    patch = {"metadata": {"annotations": {OPERATION: operation}}}
    await world.runtime.patch(GARDEN, LOCAL, patch)


def encrypted_by(provider: str) -> JsonObject:
    """Return the patch that changes the encryption provider of both API servers."""
    encryption = {"encryptionConfig": {"provider": {"type": provider}}}
    servers = {
        "kubernetes": {"kubeAPIServer": encryption},
        "gardener": {"gardenerAPIServer": encryption},
    }
    return {"spec": {"virtualCluster": servers}}


async def credentials(world: World, name: str) -> set[str]:
    """Return the names of the Secrets of a credential."""
    found = await world.runtime.list(SECRET, "garden", labels=f"{MANAGED},name={name}")
    return {name_of(each) for each in found}


async def creation_or_rotation(world: World) -> str:
    """Return the time from which the key of ServiceAccounts is in use."""
    garden = await world.runtime.get(GARDEN, LOCAL)
    rotation = map_at(garden, "status", "credentials", "rotation", "serviceAccountKey")
    return str(rotation.get("lastInitiationTime") or garden["metadata"]["creationTimestamp"])


# Equal writes


def each_write(write: Write) -> object:
    """Distinguish all writes, except for those that only report the progress of the flow."""
    body: object = write.body
    if is_status(write):
        body = map_at(write.body, "status").get("credentials")
        if body is None:
            return None
    return write.method, write.path, orjson.dumps(body, option=orjson.OPT_SORT_KEYS)


def each_sort(write: Write) -> object:
    """Distinguish Secrets by sort, Seeds by request, and other writes as above."""
    identity = each_write(write)
    if identity is None:
        return None
    annotations = sorted(map_at(write.body, "metadata", "annotations"))
    if "/seeds/" in write.path:
        return write.method, "seed", *annotations
    if "/secrets" in write.path:
        name = name_of(write.body) if write.method == "POST" else write.path.rpartition("/")[2]
        sort = next((each for each in ("bundle", "ca-", "key") if each in name), "")
        return write.method, sort, *annotations, *sorted(map_at(write.body, "metadata"))
    return identity


def is_status(write: Write) -> bool:
    return write.path.endswith(f"/gardens/{LOCAL.name}/status")


# Content of writes


def phases(writes: list[Write]) -> dict[str, list[str]]:
    """Return the phases of each rotation in the order in which they were written."""
    found: dict[str, list[str]] = {name: [] for name in PHASED}
    for write in filter(is_status, writes):
        rotation = map_at(write.body, "status", "credentials", "rotation")
        for name in PHASED:
            phase = map_at(rotation, name).get("phase")
            found[name] += [phase] if phase else []
    return found


def generated(writes: list[Write]) -> Counter[str]:
    """Return how often each credential was generated, without credentials derived from others."""
    made = [labels_of(write.body) for write in writes if write.method == "POST"]
    names = [labels["name"] for labels in made if "managed-by" in labels]
    return Counter(name for name in names if not name.endswith("-bundle") and name != KEPT)


def requested(writes: list[Write]) -> Counter[tuple[str, str]]:
    """Return how often each operation was requested on each Seed."""
    asked = (write for write in writes if "/seeds/" in write.path)
    return Counter(
        (write.path.rpartition("/")[2], annotations_of(write.body)[OPERATION]) for write in asked
    )


def relabelled(writes: list[Write]) -> Counter[str]:
    """Return how often each encrypted object got the label of a new key."""
    return Counter(write.path for write in writes if KEY_NAME in labels_of(write.body))


async def shape(world: World) -> dict[str, object]:
    """Return everything that a rotation must not change: all but the credentials themselves."""
    managed = await world.runtime.list(SECRET, "garden", labels=MANAGED)
    deployments = await world.runtime.list(DEPLOYMENT, "garden")
    kinds = Counter((labels_of(each)["name"], len(each["data"])) for each in managed)
    return {
        "secrets": {kind: count for kind, count in kinds.items() if kind[0] != KEPT},
        "deployments": {
            name_of(each): sorted(
                name for name in annotations_of(each) if not name.startswith("reference.")
            )
            for each in deployments
        },
        "seeds": [OPERATION in annotations_of(each) for each in await world.virtual.list(SEED)],
        "labelled": await world.virtual.list(SECRET, labels=KEY_NAME),
    }
