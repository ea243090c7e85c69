"""The generic actuator of ControlPlanes, with the provider in examples/control-plane."""

import base64
from collections.abc import AsyncIterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import DEPLOYMENT, SECRET
from pergola.api.objects import (
    JsonObject,
    Key,
    name_of,
    uid_of,
)
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.cluster import CLUSTER, Cluster
from pergola.extension_api.kinds import CONTROL_PLANE
from pergola.extensions import Actuator, Context
from pergola.extensions.control_planes import resources
from pergola.extensions.control_planes.hibernation import Hibernation
from pergola.extensions.loading import load_actuator
from pergola.garden.components.definitions import SHOOT_EXTENSIONS
from pergola.garden.components.definitions import load as load_definitions
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.runtime.clock import SystemClock
from pergola.runtime.controlling.controller import DONE, Again, Outcome
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.crds import serve
from pergola.testing.extension_site import ExtensionSite, WatchedClient, extension_site
from pergola.testing.network_site import renamed
from pergola.testing.waiting import running, until, until_gone
from tests.support.applied import report_applied
from tests.support.dying import killed_after
from tests.support.shipped import shipped_objects

EXAMPLE: Final = Path(__file__).parents[3] / "examples" / "control-plane" / "nimbus.py"
AUTHORITY: Final = "ca-provider-nimbus-controlplane"
SERVER: Final = "nimbus-controller-server"
ACCESS: Final = "shoot-access-nimbus-controller"


def config(**fields: object) -> JsonObject:
    return {"apiVersion": "nimbus.example.org/v1alpha1", "kind": "ControlPlaneConfig", **fields}


@dataclass
class Plane:
    """A ControlPlane of the example, with what its caller provides."""

    site: ExtensionSite
    actuator: Actuator

    @property
    def client(self) -> Client:
        return self.site.client

    @property
    def namespace(self) -> str:
        return self.site.namespace

    def units(self) -> list[Unit]:
        companions = self.actuator.companions(self.client, Metrics())
        return [self.site.unit(self.actuator), *companions]

    async def create(self, **spec: object) -> None:
        desired: JsonObject = {
            "region": "north",
            "secretRef": {"name": "cloudprovider", "namespace": self.namespace},
            "infrastructureProviderStatus": {"networkID": "net-1"},
            **spec,
        }
        await self.site.create("reconcile", spec=desired)

    async def context(self, client: Client | None = None) -> Context:
        """Return the inputs of a run without a controller."""

        async def nothing(*_: object) -> None: ...

        live = await self.client.get(CLUSTER, Key("", self.namespace))
        return Context(
            client=client or self.client,
            cluster=Cluster.from_object(live),
            namespace=self.namespace,
            clock=SystemClock(),
            progress=nothing,
            save=nothing,
        )

    async def resources(self) -> dict[str, JsonObject]:
        listed = await self.client.list(MANAGED_RESOURCE, self.namespace)
        return {name_of(each): each for each in listed}

    async def objects(self, managed_resource: str) -> dict[str, JsonObject]:
        """Return the objects that a ManagedResource ships, by kind."""
        found = await shipped_objects(self.client, Key(self.namespace, managed_resource))
        return {each["kind"]: each for each in found}

    async def deployment(self) -> JsonObject:
        return (await self.objects(resources.SEED))["Deployment"]

    async def secrets(self, credential: str) -> list[JsonObject]:
        return await self.client.list(SECRET, self.namespace, labels=f"name={credential}")

    async def uids(self) -> dict[str, str]:
        """Return the identities of all objects of the control plane."""
        listed = [
            *await self.client.list(SECRET, self.namespace),
            *await self.client.list(MANAGED_RESOURCE, self.namespace),
        ]
        return {f"{each['kind']} {name_of(each)}": uid_of(each) for each in listed}


@pytest.fixture
async def plane(cluster_client: Client, namespace: str) -> AsyncIterator[Plane]:
    await serve(cluster_client, *load_definitions(SHOOT_EXTENSIONS))
    site = await extension_site(cluster_client, namespace)
    site.gvk = CONTROL_PLANE
    await site.put_cluster(shoot())
    secret = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "cloudprovider", "namespace": namespace},
        "stringData": {"token": "secret"},
    }
    await cluster_client.create(secret)
    yield Plane(site, renamed(load_actuator(f"{EXAMPLE}:NimbusControlPlane"), site.type))
    await site.clean_up()


def shoot(
    *, asleep: bool = False, started: str = "", phase: str = "Prepared", self_hosted: bool = False
) -> JsonObject:
    rotation = {"lastInitiationTime": started, "phase": phase} if started else None
    workers = [{"name": "a", **({"controlPlane": {}} if self_hosted else {})}]
    return {
        "spec": {
            "kubernetes": {"version": "1.34.2"},
            "hibernation": {"enabled": asleep},
            "provider": {"workers": workers},
        },
        "status": {"credentials": {"rotation": {"certificateAuthorities": rotation}}},
    }


async def test_a_control_plane_gets_its_credentials_tokens_and_objects(plane: Plane) -> None:
    async with running(*plane.units()):
        await plane.create()
        await plane.site.until_operation("Create")

    deployment = await plane.deployment()
    pod = deployment["spec"]["template"]["spec"]
    [server] = await plane.secrets(SERVER)
    assert {"name": SERVER, "secret": {"secretName": name_of(server)}} in pod["volumes"]
    assert "--network=net-1" in pod["containers"][0]["args"]
    [authority] = await plane.secrets(AUTHORITY)
    assert authority["metadata"]["labels"]["persist"] == "true"
    access = await plane.client.get(SECRET, Key(plane.namespace, ACCESS))
    assert access["metadata"]["labels"]["resources.gardener.cloud/purpose"] == "token-requestor"
    found = await plane.resources()
    assert found.keys() == {resources.SEED, resources.SHOOT}
    assert found[resources.SEED]["spec"]["class"] == "seed"
    in_shoot = found[resources.SHOOT]["spec"]
    assert in_shoot["injectLabels"] == {"shoot.gardener.cloud/no-cleanup": "true"}
    assert (in_shoot["keepObjects"], in_shoot["forceOverwriteAnnotations"]) == (False, False)


async def test_a_run_without_a_change_writes_nothing_and_sends_four_requests(
    plane: Plane, kubeconfig: Path
) -> None:
    await plane.create()
    obj = await plane.site.read()
    await plane.actuator.reconcile(await plane.context(), obj)
    await report_applied(plane.client, plane.namespace)
    before = await plane.uids()
    sent: list[object] = []

    async with WatchedClient.connect(
        load(kubeconfig), observe=lambda *request: sent.append(request)
    ) as client:
        await plane.actuator.reconcile(await plane.context(client), obj)
        sent.clear()  # the first run also discovers which kinds the API server has
        await plane.actuator.reconcile(await plane.context(client), obj)
        assert getattr(client, "writes", []) == []

    assert len(sent) == 4
    assert await plane.uids() == before


@pytest.mark.parametrize(
    ("spec", "words"),
    [
        ({"providerConfig": {"workers": 3}}, "spec.providerConfig.kind"),
        ({"providerConfig": config(worker=1)}, "spec.providerConfig.worker"),
        ({"providerConfig": config(workers="many")}, "spec.providerConfig.workers"),
        ({"providerConfig": config(workers=0)}, "spec.providerConfig.workers"),
        ({"infrastructureProviderStatus": None}, "spec.infrastructureProviderStatus.networkID"),
        ({"secretRef": {"name": "missing", "namespace": "default"}}, "Secret default/missing"),
        ({"secretRef": {"name": ""}}, "spec.secretRef.name is missing"),
    ],
)
async def test_what_is_wrong_is_named_and_nothing_is_written(
    plane: Plane, spec: JsonObject, words: str
) -> None:
    before = await plane.uids()
    async with running(*plane.units()):
        await plane.create(**spec)
        obj = await plane.site.until_operation("Create", "Error")

    assert words in obj["status"]["lastError"]["description"]
    assert await plane.uids() == before


async def test_controllers_sleep_when_the_api_server_of_a_hibernated_shoot_has_stopped(
    plane: Plane,
) -> None:
    server = Key(plane.namespace, "kube-apiserver")
    await plane.client.create(api_server(server))
    async with running(*plane.units()):
        await plane.create()
        await plane.site.until_operation("Create")
        await plane.site.put_cluster(shoot(asleep=True))
        await plane.site.annotate("reconcile")
        await plane.site.until_operation("Reconcile")
        assert (await plane.deployment())["spec"]["replicas"] == 1

        version = (await plane.resources())[resources.SEED]["spec"]
        await plane.client.patch(DEPLOYMENT, server, {"spec": {"replicas": 0}})
        key = Key(plane.namespace, resources.SEED)
        await until(plane.client, MANAGED_RESOURCE, key, lambda each: each["spec"] != version)
        assert (await plane.deployment())["spec"]["replicas"] == 0

        asleep = (await plane.resources())[resources.SEED]["spec"]
        await plane.site.put_cluster(shoot())
        await plane.site.annotate("reconcile")
        await until(plane.client, MANAGED_RESOURCE, key, lambda each: each["spec"] != asleep)
    assert (await plane.deployment())["spec"]["replicas"] == 1


@pytest.mark.parametrize(
    ("shoot_state", "state", "expected"),
    [
        ("Processing", "Processing", Again(2.0)),
        ("Error", "Error", DONE),  # the extension tries again by itself
        ("Failed", "Error", DONE),
        ("Failed", "Processing", DONE),  # it has ended with its process
    ],
)
async def test_the_end_of_an_api_server_waits_only_for_a_run_that_is_under_way(
    plane: Plane, shoot_state: str, state: str, expected: Outcome
) -> None:
    asleep = shoot(asleep=True)
    await plane.site.put_cluster({**asleep, "status": {"lastOperation": {"state": shoot_state}}})
    await plane.create()
    last = {"type": "Reconcile", "progress": 1, "lastUpdateTime": "2026-01-01T00:00:00Z"}
    await plane.site.edit_status({"lastOperation": {**last, "state": state, "description": "x"}})
    found = Hibernation(plane.actuator, plane.client, SystemClock())
    assert await found.reconcile(Key("", plane.namespace)) == expected
    assert await plane.resources() == {}


async def test_a_process_that_starts_late_finds_shoots_whose_api_server_has_stopped(
    plane: Plane,
) -> None:
    server = Key(plane.namespace, "kube-apiserver")
    await plane.client.create(api_server(server))
    await plane.site.put_cluster(shoot(asleep=True))
    async with running(*plane.units()):
        await plane.create()
        await plane.site.until_operation("Create")
    version = (await plane.resources())[resources.SEED]["spec"]
    await plane.client.patch(DEPLOYMENT, server, {"spec": {"replicas": 0}})

    async with running(*plane.units()):
        key = Key(plane.namespace, resources.SEED)
        await until(plane.client, MANAGED_RESOURCE, key, lambda each: each["spec"] != version)
    assert (await plane.deployment())["spec"]["replicas"] == 0


async def test_authorities_rotate_together_with_those_of_the_shoot(plane: Plane) -> None:
    async def reconcile(**rotation: str) -> tuple[int, int, str]:
        """Return the number of authorities, of certificates in their bundle, and the server."""
        await plane.site.put_cluster(shoot(**rotation))  # type: ignore[arg-type]
        await plane.actuator.reconcile(await plane.context(), obj)
        bundles = await plane.secrets(f"{AUTHORITY}-bundle")
        [server] = await plane.secrets(SERVER)
        newest = [base64.b64decode(each["data"]["bundle.crt"]) for each in bundles]
        authorities = await plane.secrets(AUTHORITY)
        return len(authorities), newest[-1].count(b"BEGIN CERTIFICATE"), name_of(server)

    await plane.create()
    obj = await plane.site.read()
    started = "2026-05-04T12:00:00Z"

    one, certificates, server = await reconcile()
    assert (one, certificates) == (1, 1)
    both, certificates, of_old = await reconcile(started=started, phase="Preparing")
    assert (both, certificates) == (2, 2)
    assert of_old == server  # clients may not trust the new authority yet
    left, certificates, of_new = await reconcile(started=started, phase="Completing")
    assert (left, certificates) == (1, 1)
    assert of_new != server


async def test_a_deletion_leaves_nothing(plane: Plane) -> None:
    before = await plane.uids()
    async with running(*plane.units()):
        await plane.create()
        await plane.site.until_operation("Create")
        assert await plane.uids() != before
        await plane.site.delete()
        await plane.site.until_gone()

    assert await plane.uids() == before


async def test_a_control_plane_with_a_bad_config_can_be_deleted(plane: Plane) -> None:
    before = await plane.uids()
    async with running(*plane.units()):
        await plane.create()
        await plane.site.until_operation("Create")
        await plane.site.edit({"spec": {"providerConfig": config(workers=-1)}})
        await plane.site.delete()
        await plane.site.until_gone()

    assert await plane.uids() == before


async def test_a_forced_deletion_waits_for_nothing(plane: Plane) -> None:
    async with running(*plane.units()):
        await plane.create()
        await plane.site.until_operation("Create")
        key = Key(plane.namespace, resources.SHOOT)
        held = {"metadata": {"finalizers": ["example.org/held"]}}
        await plane.client.patch(MANAGED_RESOURCE, key, held)
        confirmed = {"confirmation.gardener.cloud/force-deletion": "true"}
        await plane.site.put_cluster({"metadata": {"annotations": confirmed}, **shoot()})
        await plane.site.delete()
        await plane.site.until_gone()

    assert (await plane.resources()).keys() == {resources.SHOOT}
    await plane.client.patch(MANAGED_RESOURCE, key, {"metadata": {"finalizers": []}})
    await until_gone(plane.client, MANAGED_RESOURCE, key)


async def test_a_migration_keeps_the_shoot_and_the_authority_for_the_next_seed(
    plane: Plane,
) -> None:
    async with running(*plane.units()):
        await plane.create()
        await plane.site.until_operation("Create")
        [authority] = await plane.secrets(AUTHORITY)
        key = Key(plane.namespace, resources.SHOOT)
        held = {"metadata": {"finalizers": ["example.org/held"]}}
        await plane.client.patch(MANAGED_RESOURCE, key, held)
        await plane.site.annotate("migrate")
        kept = await until(
            plane.client, MANAGED_RESOURCE, key, lambda each: "deletionTimestamp" in str(each)
        )
        assert kept["spec"]["keepObjects"] is True
        await plane.client.patch(MANAGED_RESOURCE, key, {"metadata": {"finalizers": []}})
        await plane.site.until_operation("Migrate")
        assert await plane.resources() == {}
        with pytest.raises(NotFound):
            await plane.client.get(SECRET, Key(plane.namespace, ACCESS))

        await plane.site.annotate("restore")
        await plane.site.until_operation("Restore")

    assert (await plane.resources()).keys() == {resources.SEED, resources.SHOOT}
    [same] = await plane.secrets(AUTHORITY)
    assert uid_of(same) == uid_of(authority)


@pytest.mark.parametrize("action", ["reconcile", "delete", "migrate"])
async def test_it_converges_when_killed_after_any_write(plane: Plane, action: str) -> None:
    await plane.create()
    obj, empty = await plane.site.read(), await plane.uids()
    for writes in range(40):
        if action != "reconcile":
            await plane.actuator.reconcile(await plane.context(), obj)
        elif writes:
            await plane.actuator.delete(await plane.context(), obj)

        async def act(client: Client) -> None:
            await getattr(plane.actuator, action)(await plane.context(client), obj)

        killed = await killed_after(writes, plane.client, act)
        await getattr(plane.actuator, action)(await plane.context(), obj)
        left = await plane.uids()
        if action == "reconcile":
            kinds = {name.split()[1].rsplit("-", 1)[0] for name in left.keys() - empty.keys()}
            assert {AUTHORITY, SERVER, "shoot-access-nimbus"} <= kinds
            assert (await plane.resources()).keys() == {resources.SEED, resources.SHOOT}
        elif action == "delete":
            assert left == empty
        else:
            assert await plane.resources() == {}
        if not killed:
            assert writes > 5
            return
    raise AssertionError("40 writes are too many")


def api_server(key: Key) -> JsonObject:
    labels = {"app": "kubernetes", "role": "apiserver"}
    container = {"name": "kube-apiserver", "image": "registry.example.org/kube-apiserver"}
    return {
        "apiVersion": "apps/v1",
        "kind": "Deployment",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "spec": {
            "replicas": 1,
            "selector": {"matchLabels": labels},
            "template": {"metadata": {"labels": labels}, "spec": {"containers": [container]}},
        },
    }
