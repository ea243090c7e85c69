"""The authority of etcd's members is rotated while they restart one by one.

The cluster is real, and the members present and verify the certificates in its Secrets. The test
restarts them as etcd-druid does: in the order of the writes that it observes.
"""

import base64
import ssl
from collections.abc import AsyncIterator
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from datetime import UTC, datetime, timedelta
from itertools import permutations
from pathlib import Path
from typing import Final

import pytest

from pergola.api.conditions import timestamp
from pergola.api.kinds import SECRET
from pergola.api.marks import OPERATION, TIMESTAMP
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    generation_of,
    map_at,
)
from pergola.garden.components.component import Rendered
from pergola.garden.components.etcds.access import ROLES, name
from pergola.garden.components.etcds.etcd import etcd
from pergola.garden.components.etcds.etcds import ETCDS
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.kube import states
from pergola.kube.client import Client
from pergola.operator.run.build import IDENTITY, Built
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.rotation_times import rotation_times
from pergola.operator.run.run import Run
from pergola.runtime.clock import FakeClock
from pergola.runtime.task_group import TaskGroup
from pergola.secrets_manager import SecretsManager
from pergola.testing.crds import install_definitions
from pergola.testing.world import RecordingClient
from tests.support.dying import killed_after
from tests.support.garden import HIGHLY_AVAILABLE, landscape
from tests.support.garden_run import GivenVirtualCluster

COMPONENT: Final = replace(
    ETCDS, render=lambda found: Rendered(direct=tuple(etcd(found, role) for role in ROLES))
)
MEMBERS: Final = 3
LATER: Final = datetime.now(UTC)
NOW: Final = LATER - timedelta(days=1)


class Member:
    """A member of an etcd, with the certificate and authorities with which it was started."""

    def __init__(self, directory: Path, host: str, content: dict[str, str]) -> None:
        self.host = host
        self._files = {key: directory / key for key in content}
        directory.mkdir(parents=True, exist_ok=True)
        for key, text in content.items():
            self._files[key].write_text(text)

    def context(self, purpose: ssl.Purpose) -> ssl.SSLContext:
        found = ssl.create_default_context(purpose, cafile=str(self._files["bundle.crt"]))
        found.load_cert_chain(self._files["tls.crt"], self._files["tls.key"])
        found.verify_mode = ssl.CERT_REQUIRED
        return found

    def accepts(self, other: "Member") -> bool:
        """Return whether another member can connect to this one."""
        to_server, to_client = ssl.MemoryBIO(), ssl.MemoryBIO()
        server = self.context(ssl.Purpose.CLIENT_AUTH).wrap_bio(
            to_server, to_client, server_side=True
        )
        client = other.context(ssl.Purpose.SERVER_AUTH).wrap_bio(
            to_client, to_server, server_hostname=self.host
        )
        pending = {client, server}
        for _ in range(10):
            for side in [*pending]:
                try:
                    side.do_handshake()
                    pending.discard(side)
                except ssl.SSLWantReadError:
                    pass
                except ssl.SSLError:
                    return False
        return not pending


class Druid:
    """What druid and the StatefulSets do: members restart one by one after each request.

    Attributes:
        refused: Two members that could not connect to each other while some were restarted.
        rolled_out: How often the members of all etcds were restarted.
    """

    def __init__(self, client: Client, directory: Path) -> None:
        self._client = client
        self._directory = directory
        self.refused: list[str] = []
        self.rolled_out = 0

    @asynccontextmanager
    async def running(self) -> AsyncIterator[None]:
        async with TaskGroup() as group:
            tasks = [group.create_task(self._follow(Key("garden", name(role)))) for role in ROLES]
            yield
            for task in tasks:
                task.cancel()

    async def _follow(self, key: Key) -> None:
        members: list[Member] = []
        async with aclosing(states.watched(self._client, ETCD, key, 1.0)) as seen:
            async for obj in seen:
                if obj is None or OPERATION not in annotations_of(obj):
                    continue
                await self._roll_out(obj, members)
                done = {"metadata": {"annotations": {OPERATION: None, TIMESTAMP: None}}}
                await self._client.patch(ETCD, key, done)
                updated = {"type": "AllMembersUpdated", "status": "True", "reason": "Test"}
                now = timestamp(NOW)
                updated |= {"message": "", "lastTransitionTime": now, "lastUpdateTime": now}
                observed = {"observedGeneration": generation_of(obj), "ready": True}
                status = {"status": {**observed, "conditions": [updated]}}
                await self._client.patch(ETCD, key, status, subresource="status")

    async def _roll_out(self, obj: JsonObject, members: list[Member]) -> None:
        tls = map_at(obj, "spec", "etcd", "peerUrlTls")
        pair = await self._content(tls["serverTLSSecretRef"]["name"])
        bundle = await self._content(tls["tlsCASecretRef"]["name"])
        self.rolled_out += 1
        for index in range(MEMBERS):
            directory = self._directory / Key.of(obj).name / f"{index}-{self.rolled_out}"
            host = f"etcd-{index}.{Key.of(obj).name}-peer.garden.svc"
            fresh = Member(directory, host, {**pair, "bundle.crt": bundle["bundle.crt"]})
            members[index : index + 1] = [fresh]
            self.refused += [
                f"{Key.of(obj).name}: {one.host} refuses {other.host}"
                for one, other in permutations(members, 2)
                if not one.accepts(other)
            ]

    async def _content(self, secret: str) -> dict[str, str]:
        obj = await self._client.get(SECRET, Key("garden", secret))
        return {key: base64.b64decode(text).decode() for key, text in obj["data"].items()}


@pytest.fixture
async def druid(runtime: Client, tmp_path: Path) -> AsyncIterator[Druid]:
    await install_definitions(runtime, "etcds.druid.gardener.cloud")
    found = Druid(runtime, tmp_path)
    async with found.running():
        yield found
    for role in ROLES:
        await runtime.delete(ETCD, Key("garden", name(role)))


def rotating(phase: str) -> Landscape:
    rotation = {"phase": phase, "lastInitiationTime": timestamp(LATER)}
    status = {"credentials": {"rotation": {"certificateAuthorities": rotation}}} if phase else {}
    return landscape(HIGHLY_AVAILABLE, {"status": status}).with_credentials(Credentials({}))


async def reconcile(client: Client, phase: str, now: datetime) -> None:
    """Deploy the etcds, and wait until they are ready."""
    clock, found = FakeClock(now), rotating(phase)
    times = rotation_times(found.rotation)
    secrets = await SecretsManager.open(
        client, "garden", IDENTITY, clock=clock, rotation_times=times
    )
    run = Run(
        client=client,
        clock=clock,
        deployer=Deployer(client, clock),
        virtual=GivenVirtualCluster(client),
        built=Built(found, secrets),
    )
    await run.built.generate_authorities()
    rendered = await run.deploy(COMPONENT)
    await run.wait_ready(rendered, 60)
    await secrets.cleanup(is_complete=False)


async def test_members_accept_each_other_at_every_moment_of_a_rotation(
    client: RecordingClient, druid: Druid
) -> None:
    await reconcile(client, "", NOW)
    assert druid.rolled_out == len(ROLES)

    await reconcile(client, "Preparing", LATER)
    assert druid.refused == []
    assert druid.rolled_out == len(ROLES) * 3
    for phase in ("Preparing", "Prepared"):
        await reconcile(client, phase, LATER)
    assert druid.rolled_out == len(ROLES) * 3

    await reconcile(client, "Completing", LATER)
    assert druid.rolled_out == len(ROLES) * 4
    assert druid.refused == []


async def test_members_accept_each_other_although_the_operator_is_killed_after_any_write(
    client: RecordingClient, druid: Druid
) -> None:
    await reconcile(client, "", NOW)
    writes, is_killed = 0, True
    while is_killed:
        writes += 1
        is_killed = await killed_after(
            writes, client, lambda mortal: reconcile(mortal, "Preparing", LATER)
        )
    assert druid.refused == []
    assert druid.rolled_out >= len(ROLES) * 3
