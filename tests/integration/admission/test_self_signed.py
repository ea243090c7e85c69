"""Self-signed certificates and registration of a webhook server, on a real API server."""

import asyncio
import base64
from collections.abc import AsyncIterator, Callable
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pergola.admission.certificates import ServingError
from pergola.admission.configurations import (
    MUTATING,
    VALIDATING,
    by_service,
    by_url,
    configurations,
)
from pergola.admission.owner import Owner
from pergola.admission.registration import Registration, Rule
from pergola.admission.self_signed import SelfSigned, read_identity
from pergola.api import marks
from pergola.api.kinds import CLUSTER_ROLE, SECRET
from pergola.api.objects import JsonObject, Key, owner_references_of, uid_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.pki import Plan, read_bundle, read_certificate, signed_by
from pergola.runtime.clock import FakeClock
from pergola.runtime.metrics import Metrics
from pergola.testing.waiting import PATIENCE, running, settled, until, until_gone
from pergola.testing.world import RecordingClient

NOW = datetime.now(UTC).replace(microsecond=0)


def registrations(namespace: str) -> list[Registration]:
    """Return harmless registrations: no test creates an object of the kind in the namespace."""
    rule = Rule(("CREATE",), ("apps",), ("v1",), ("controllerrevisions",))
    selector = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    return [
        Registration(
            name="mutates.example.org",
            path="/mutate",
            kind="mutating",
            rules=(rule,),
            namespace_selector=selector,
            failure_policy="Ignore",
        ),
        Registration(
            name="validates.example.org",
            path="/validate",
            kind="validating",
            rules=(rule,),
            namespace_selector=selector,
            failure_policy="Ignore",
        ),
    ]


class Installed:
    """The installation of one test, with unique names in the shared cluster."""

    def __init__(self, client: RecordingClient, namespace: str, directory: Path) -> None:
        self.client = client
        self.name = f"pergola-{namespace}"
        self.secret = Key(namespace, "webhook-server")
        self.directory = directory
        self.clock = FakeClock(NOW)
        self.owner: Owner | None = None
        self._namespace = namespace

    def server(self) -> SelfSigned:
        return SelfSigned(
            self.client,
            self.secret,
            Plan("webhook-server", ("localhost",)),
            name=self.name,
            render=self.render,
            directory=self.directory,
            owner=self.owner,
            clock=self.clock,
        )

    def render(self, bundle: bytes) -> list[JsonObject]:
        return configurations(
            self.name,
            {"app": "pergola"},
            registrations(self._namespace),
            by_service("webhook-server", self._namespace),
            bundle,
        )

    async def passes(self, time: timedelta) -> None:
        """Advance the clock, and wait until the leader has noticed."""
        self.clock.set(NOW + time)
        annotations = {"example.org/looked-at": str(time)}
        await self.client.patch(SECRET, self.secret, {"metadata": {"annotations": annotations}})

    def served(self) -> bytes:
        """Return the certificate that the server presents."""
        return (self.directory / "tls.crt").read_bytes()


def trusted(configuration: JsonObject) -> bytes:
    """Return the authorities that the API server trusts."""
    return base64.b64decode(configuration["webhooks"][0]["clientConfig"]["caBundle"])


def owned_by(uid: str) -> Callable[[JsonObject], bool]:
    """Return a predicate of objects with one owner."""

    def is_owned(obj: JsonObject) -> bool:
        return [owner["uid"] for owner in owner_references_of(obj)] == [uid]

    return is_owned


@pytest.fixture
async def installed(kubeconfig: Path, namespace: str, tmp_path: Path) -> AsyncIterator[Installed]:
    async with RecordingClient.connect(load(kubeconfig)) as client:
        own = Installed(client, namespace, tmp_path)
        yield own
        await own.server().unregister()


async def test_a_starting_replica_has_a_certificate(installed: Installed) -> None:
    await installed.server().prepare()
    identity = read_identity(await installed.client.get(SECRET, installed.secret))
    assert identity is not None
    assert installed.served() == identity.server.public
    assert (installed.directory / "tls.key").stat().st_mode & 0o777 == 0o600


async def test_replicas_that_start_together_agree_on_a_certificate(
    installed: Installed, tmp_path: Path
) -> None:
    directories = [tmp_path / str(number) for number in range(4)]
    servers = []
    for directory in directories:
        directory.mkdir()
        installed.directory = directory
        servers.append(installed.server())
    await asyncio.gather(*(server.prepare() for server in servers))
    assert len({(directory / "tls.crt").read_bytes() for directory in directories}) == 1


async def test_the_leader_registers_once_and_then_writes_nothing(installed: Installed) -> None:
    server = installed.server()
    await server.prepare()
    leading = server.leading(Metrics())
    async with running(leading):
        for gvk in (MUTATING, VALIDATING):
            await until(installed.client, gvk, Key("", installed.name), lambda _: True)
        await settled(leading, installed.client)
        installed.client.taken()
        await server.reconcile("")
        assert installed.client.taken() == []


async def test_an_edited_or_deleted_configuration_is_restored(
    installed: Installed, cluster_client: Client
) -> None:
    server = installed.server()
    await server.prepare()
    key = Key("", installed.name)
    leading = server.leading(Metrics())
    async with running(leading):
        first = await until(installed.client, MUTATING, key, lambda _: True)
        await until(installed.client, VALIDATING, key, lambda _: True)
        await cluster_client.patch(
            MUTATING, key, {"webhooks": [], "metadata": {"labels": {"x": "y"}}}
        )
        restored = await until(
            installed.client, MUTATING, key, lambda obj: obj.get("webhooks") == first["webhooks"]
        )
        assert restored["metadata"]["labels"] == {"app": "pergola", "x": "y"}
        await cluster_client.delete(VALIDATING, key)
        await until(installed.client, VALIDATING, key, lambda obj: obj["webhooks"] != [])


async def test_a_configuration_with_the_break_glass_label_is_left_alone(
    installed: Installed, cluster_client: Client
) -> None:
    server = installed.server()
    await server.prepare()
    key = Key("", installed.name)
    leading = server.leading(Metrics())
    async with running(leading):
        first = await until(installed.client, MUTATING, key, lambda _: True)
        await until(installed.client, VALIDATING, key, lambda _: True)
        emergency = {"metadata": {"labels": {marks.BREAK_GLASS: "true"}}, "webhooks": []}
        await cluster_client.patch(MUTATING, key, emergency)
        await settled(leading, installed.client)
        assert not (await installed.client.get(MUTATING, key)).get("webhooks")
        # A process that starts now leaves it alone, too.
        await server.reconcile("")
        assert not (await installed.client.get(MUTATING, key)).get("webhooks")

        over = {"metadata": {"labels": {marks.BREAK_GLASS: None}}}
        await cluster_client.patch(MUTATING, key, over)
        await until(
            installed.client, MUTATING, key, lambda obj: obj.get("webhooks") == first["webhooks"]
        )


async def test_a_registration_is_owned_by_the_current_incarnation_of_its_owner(
    installed: Installed, cluster_client: Client
) -> None:
    server = installed.server()
    await server.prepare()
    key = Key("", installed.name)
    async with running(server.leading(Metrics())):
        await until(installed.client, MUTATING, key, lambda obj: not owner_references_of(obj))
        await until(installed.client, VALIDATING, key, lambda obj: not owner_references_of(obj))

    installed.owner = Owner(CLUSTER_ROLE, installed.name, "ownerClusterRole")
    role: JsonObject = {
        "apiVersion": CLUSTER_ROLE.api_version,
        "kind": CLUSTER_ROLE.kind,
        "metadata": {"name": installed.name},
    }
    server = installed.server()
    with pytest.raises(ServingError, match=r"ClusterRole .* does not exist.*ownerClusterRole"):
        await server.prepare()
    for _ in range(2):
        uid = uid_of(await cluster_client.create(role))
        await server.prepare()
        leading = server.leading(Metrics())
        async with running(leading):
            for gvk in (MUTATING, VALIDATING):
                await until(installed.client, gvk, key, owned_by(uid))
            await settled(leading, installed.client)
            installed.client.taken()
            await server.reconcile("")
            assert installed.client.taken() == []
        await cluster_client.delete(CLUSTER_ROLE, key)
    for gvk in (MUTATING, VALIDATING):
        await until_gone(installed.client, gvk, key)


async def test_a_new_authority_is_registered_before_it_signs_anything(
    installed: Installed,
) -> None:
    server = installed.server()
    await server.prepare()
    old = installed.served()
    leading = server.leading(Metrics())
    async with running(leading, server.serving()):
        await settled(leading, installed.client)
        await installed.passes(timedelta(days=20, seconds=1))
        registered = await until(
            installed.client,
            MUTATING,
            Key("", installed.name),
            lambda obj: len(read_bundle(trusted(obj))) == 2,
        )
        await settled(leading, installed.client)
        assert installed.served() == old

        await installed.passes(timedelta(days=20, minutes=6))
        newest = read_bundle(trusted(registered))[0]
        async with asyncio.timeout(PATIENCE):
            while not signed_by(read_certificate(installed.served()), newest):
                await installed.client.get_raw("/version")


async def test_a_broken_secret_is_recreated(installed: Installed, cluster_client: Client) -> None:
    server = installed.server()
    await server.prepare()
    await cluster_client.patch(SECRET, installed.secret, {"data": {"tls.key": None}})
    await server.prepare()
    assert read_identity(await cluster_client.get(SECRET, installed.secret)) is not None


async def test_nothing_waits_for_the_server_after_it_was_unregistered(
    installed: Installed,
) -> None:
    server = installed.server()
    await server.prepare()
    async with running(server.leading(Metrics())):
        for gvk in (MUTATING, VALIDATING):
            await until(installed.client, gvk, Key("", installed.name), lambda _: True)
    await server.unregister()
    for gvk in (MUTATING, VALIDATING):
        await until_gone(installed.client, gvk, Key("", installed.name))
    with pytest.raises(NotFound):
        await installed.client.get(MUTATING, Key("", installed.name))


async def test_a_registration_by_url_contains_the_path() -> None:
    (mutating, validating) = configurations(
        "x", {}, registrations("ns"), by_url("https://server.garden:443/"), b"CA"
    )
    assert mutating["webhooks"][0]["clientConfig"]["url"] == "https://server.garden:443/mutate"
    assert "reinvocationPolicy" not in validating["webhooks"][0]
