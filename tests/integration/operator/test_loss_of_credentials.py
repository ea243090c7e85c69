"""A Garden whose credentials are lost: it refuses new ones, recovers, or gives the old ones up.

Its components are hollow, and its API servers and credentials are real.
"""

from collections.abc import AsyncIterator, Iterator
from contextlib import aclosing
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Final

import pytest

from pergola.api.kinds import EVENT, SECRET
from pergola.api.marks import OPERATION
from pergola.api.objects import JsonObject, Key, map_at, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.landscape.lost_secrets import (
    RECOVERED,
    REPLACE_LOST_SECRET,
    REPLACEABLE,
    REPLACED,
    given_up,
)
from pergola.kube import states
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.operator.compare.placed import without_hash
from pergola.operator.plan.model import Plan, Verb
from pergola.operator.plan.rehearse import rehearse
from pergola.runtime.clock import FakeClock
from pergola.runtime.controlling.controller import ReconcileError
from pergola.runtime.controlling.events import Recorder
from pergola.runtime.task_group import TaskGroup
from pergola.sandbox import API_ONLY, Sandbox
from pergola.secrets_manager import SecretLost
from pergola.testing.shared import private
from tests.support.garden_world import MANAGED
from tests.support.hollow_garden import (
    LOCAL,
    SETTINGS,
    everything_works,
    install_runtime,
    install_virtual,
    reconciler,
    uninstall_virtual,
)

pytestmark = pytest.mark.timeout(600)

KEYS: Final = REPLACEABLE[:2]
KUBERNETES: Final = KEYS[0]
COPIES: Final = tuple(
    f"role={server}-etcd-encryption-configuration"
    for server in ("kube-apiserver", "gardener-apiserver")
)
LOST: Final = (*KEYS, "ca-client", "service-account-key")
HOUR: Final = timedelta(hours=1)


@dataclass
class World:
    """The two clusters of a Garden, and the operator's clock and Events."""

    runtime: Client
    virtual: Client
    clock: FakeClock
    events: Recorder

    async def reconcile(self) -> None:
        await reconciler(self.runtime, self.virtual, self.clock, self.events).reconcile(LOCAL)

    async def fails(self, sentence: str) -> None:
        with pytest.raises(ReconcileError, match=sentence):
            await self.reconcile()

    def advance(self) -> None:
        self.clock.set(self.clock.now() + HOUR)


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
    """Yield a Garden that was reconciled at least once."""
    async with (
        Client.connect(load(runtime_sandbox.kubeconfig)) as runtime,
        Client.connect(load(garden_sandbox.kubeconfig)) as virtual,
    ):
        await install_virtual(virtual, 0)
        events = Recorder(runtime, "garden-controller", clock=clock)
        async with everything_works(runtime, virtual), TaskGroup() as group:
            sending = group.create_task(events.run())
            world = World(runtime, virtual, clock, events)
            await world.reconcile()
            yield world
            sending.cancel()
        await uninstall_virtual(virtual)


async def test_a_lost_credential_is_named_and_restored_instead_of_replaced(
    world: World,
) -> None:
    for key in LOST:
        secret = await lose(world, key)
        name = name_of(secret)

        for _ in range(2):  # neither the first attempt nor a retry
            await world.fails(f"Secret garden/{name} is lost")
            assert await credentials(world, key) == set()
        garden = await world.runtime.get(GARDEN, LOCAL)
        [error] = map_at(garden, "status")["lastErrors"]
        assert f"Secret garden/{name} is lost" in error["description"]
        assert "`pergola garden import`" in error["description"]
        assert f"{REPLACE_LOST_SECRET}={name}" in error["description"]

        await world.runtime.create(restored(secret))
        await world.reconcile()
        assert await credentials(world, key) == {name}
        assert (await world.runtime.get(SECRET, Key.of(secret)))["data"] == secret["data"]


async def test_a_lost_encryption_key_is_recovered_from_the_configuration_in_use(
    world: World,
) -> None:
    for key, copy in zip(KEYS, COPIES, strict=True):
        copies = await world.runtime.list(SECRET, "garden", labels=copy)
        secret = await lose(world, key, with_copies=False)
        await world.reconcile()
        assert await credentials(world, key) == {name_of(secret)}
        assert await world.runtime.list(SECRET, "garden", labels=copy) == copies
        [event] = await reported(world, RECOVERED, name_of(secret))
        assert event["type"] == "Warning"


async def test_the_annotation_allows_one_new_credential(
    world: World,
) -> None:
    for key in LOST:
        secret = await lose(world, key)
        name = name_of(secret)
        await give_up(world, f"{key}-00000000")
        await world.fails(f"Secret garden/{name} is lost")
        assert await credentials(world, key) == set()

        await give_up(world, name)
        await world.reconcile()
        assert await credentials(world, key) == {name}
        assert (await world.runtime.get(SECRET, Key.of(secret)))["data"] != secret["data"]
        assert await given_up_now(world) == ""
        [event] = await reported(world, REPLACED, name)
        assert event["type"] == "Warning"
        assert f"Secret garden/{name} was lost" in event["note"]

        await lose(world, key)
        await world.fails(f"Secret garden/{name} is lost")
        assert await credentials(world, key) == set()
        await world.runtime.create(restored(secret))
        await world.reconcile()


async def test_an_unused_permission_to_replace_a_key_does_not_outlive_a_reconciliation(
    world: World,
) -> None:
    [name] = await credentials(world, KUBERNETES)
    await give_up(world, name)
    before = await world.runtime.get(SECRET, Key("garden", name))
    await world.reconcile()
    assert await world.runtime.get(SECRET, Key("garden", name)) == before
    assert await given_up_now(world) == ""


async def test_a_permission_is_used_up_even_if_another_key_is_lost_too(world: World) -> None:
    secrets = [await lose(world, key) for key in KEYS]
    await give_up(world, name_of(secrets[0]))
    await world.fails(f"Secret {Key.of(secrets[1])} is lost")
    assert await given_up_now(world) == ""
    assert await credentials(world, KUBERNETES) == {name_of(secrets[0])}
    assert await credentials(world, KEYS[1]) == set()
    await world.runtime.create(restored(secrets[1]))
    await world.reconcile()


async def test_a_rotation_is_no_way_around_a_lost_key(world: World) -> None:
    secret = await lose(world, KUBERNETES)
    world.advance()
    patch = {"metadata": {"annotations": {OPERATION: "rotate-etcd-encryption-key"}}}
    await world.runtime.patch(GARDEN, LOCAL, patch)
    await world.fails("the Secret that a rotation replaces with")
    assert await credentials(world, KUBERNETES) == set()
    await world.runtime.create(restored(secret))
    for _ in range(3):
        await world.reconcile()
        world.advance()
    garden = await world.runtime.get(GARDEN, LOCAL)
    key = map_at(garden, "status", "credentials", "rotation", "etcdEncryptionKey")
    assert key["phase"] == "Completed"
    assert len(await credentials(world, KUBERNETES)) == 1


async def test_a_plan_names_a_lost_key_and_leaves_the_permission(world: World) -> None:
    secret = await lose(world, KUBERNETES)

    async def planned() -> Plan:
        garden = await world.runtime.get(GARDEN, LOCAL)
        return await rehearse(world.runtime, garden, SETTINGS.template, clock=world.clock)

    with pytest.raises(SecretLost, match=f"Secret {Key.of(secret)} is lost"):
        await planned()
    await give_up(world, name_of(secret))
    changes = {(each.verb, each.key.name) for each in (await planned()).changes}
    assert (Verb.CREATE, without_hash(name_of(secret))) in changes
    assert await credentials(world, KUBERNETES) == set()
    assert await given_up_now(world) == name_of(secret)
    await give_up(world, None)
    await world.runtime.create(restored(secret))


async def credentials(world: World, name: str) -> set[str]:
    """Return the names of the Secrets of a credential."""
    found = await world.runtime.list(SECRET, "garden", labels=f"{MANAGED},name={name}")
    return {name_of(each) for each in found}


async def lose(world: World, key: str, *, with_copies: bool = True) -> JsonObject:
    """Delete the only Secret of a credential, by default with its copies, and return it."""
    [secret] = await world.runtime.list(SECRET, "garden", labels=f"{MANAGED},name={key}")
    lost = [secret]
    for copy in COPIES if with_copies else ():
        lost += await world.runtime.list(SECRET, "garden", labels=copy)
    for each in lost:
        await world.runtime.delete(SECRET, Key.of(each))
    return secret


def restored(secret: JsonObject) -> JsonObject:
    metadata = {field: secret["metadata"][field] for field in ("name", "namespace", "labels")}
    return {**secret, "metadata": metadata}


async def give_up(world: World, name: str | None) -> None:
    patch = {"metadata": {"annotations": {REPLACE_LOST_SECRET: name}}}
    await world.runtime.patch(GARDEN, LOCAL, patch)


async def given_up_now(world: World) -> str:
    return given_up(await world.runtime.get(GARDEN, LOCAL))


async def reported(world: World, reason: str, name: str) -> list[JsonObject]:
    """Return the Events about a lost Secret, as soon as there are any."""
    async with aclosing(states.all_watched(world.runtime, EVENT)) as collections:
        async for _ in collections:
            events = await world.runtime.list(EVENT, fields=f"reason={reason}")
            if found := [event for event in events if name in event["note"]]:
                return found
    raise AssertionError
