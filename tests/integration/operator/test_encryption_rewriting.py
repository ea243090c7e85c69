"""Rewriting encrypted resources on a real API server, whose etcd shows how they are stored.

The API server runs with encryption configurations that the operator rendered. It is the runtime
cluster, too: its Deployment carries the marks.
"""

import asyncio
import base64
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from pathlib import Path
from typing import Any

import aiohttp
import pytest

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    name_of,
)
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.components.api_server.encryption import configuration
from pergola.garden.components.api_server.roll_out import second_stage
from pergola.garden.components.component import Rendered, no_credentials
from pergola.garden.components.kube_apiserver.component import KUBE_APISERVER, api_server
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.encryption_at_rest import POPULATED
from pergola.kube.client import PAGE, Client, ObjectList
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump
from pergola.operator.rotation.encryption import marks
from pergola.operator.rotation.encryption.kinds import NotServed, kinds_of
from pergola.operator.rotation.encryption.rewrite import KEY_NAME, Rewriter
from pergola.operator.rotation.encryption.situation import Situation
from pergola.operator.rotation.encryption.tasks import label, snapshot, unlabel
from pergola.operator.run.deploy import Deployer
from pergola.operator.run.run import Run
from pergola.sandbox import API_ONLY, Sandbox
from pergola.secrets_manager import Generated, ManagedSecret
from pergola.testing.crds import install_operator_crds
from pergola.testing.shared import private
from pergola.testing.world import RecordingClient
from tests.support.dying import killed_after
from tests.support.garden import landscape
from tests.support.garden_run import garden_run
from tests.support.gardens import MINIMAL

LOCAL = Key("", "minimal")
SERVER = Key("garden", "virtual-garden-kube-apiserver")
KEYS = {name: f"{name:_<32}".encode() for name in ("old", "new")}
CREDENTIAL = "kube-apiserver-etcd-encryption-key"
MAPS = {
    "spec": {
        "virtualCluster": {
            "kubernetes": {"kubeAPIServer": {"encryptionConfig": {"resources": ["configmaps"]}}}
        }
    }
}
ALL_SECRETS = Situation(frozenset({"secrets"}), frozenset({"secrets"}))
ALL_MAPS = Situation(frozenset({"configmaps"}), frozenset({"configmaps"}))


class Cluster:
    """An API server whose encryption configuration can be changed."""

    def __init__(self, sandbox: Sandbox, file: Path) -> None:
        self.sandbox = sandbox
        self._file = file

    async def encrypt(self, of: Landscape) -> None:
        """Restart the API server with the configuration of a landscape."""
        self._file.write_text(served(of))
        await self.sandbox.restart_apiserver()

    async def stored(self, resource: str, namespace: str) -> dict[str, str]:
        """Return the names of the keys that encrypt stored objects by name; empty for plain."""
        prefix = f"/registry/{resource}/{namespace}/".encode()
        end = prefix[:-1] + b"0"
        body = {
            name: base64.b64encode(key).decode()
            for name, key in (("key", prefix), ("range_end", end))
        }
        connector = aiohttp.UnixConnector(str(self.sandbox.directory / "etcd.sock"))
        async with (
            aiohttp.ClientSession(connector=connector) as session,
            session.post("http://etcd/v3/kv/range", json=body) as answer,
        ):
            found: JsonObject = await answer.json()
        return {
            base64.b64decode(each["key"]).decode().rpartition("/")[2]: _key(
                base64.b64decode(each["value"])
            )
            for each in found.get("kvs", [])
        }


def _key(value: bytes) -> str:
    parts = value.split(b":", 5)
    return parts[4].decode() if parts[:2] == [b"k8s", b"enc"] else ""


def served(of: Landscape) -> str:
    """Return the configuration of a landscape, without Gardener's resources."""
    return dump(configuration(of, api_server(of)))


def key(name: str) -> ManagedSecret:
    data = {"key": name.encode(), "secret": KEYS[name], "encoding": b"none", "provider": b""}
    metadata: JsonObject = {"name": f"{CREDENTIAL}-{name}", "namespace": "garden"}
    return ManagedSecret({"apiVersion": "v1", "kind": "Secret", "metadata": metadata}, data)


def with_keys(
    *patches: JsonObject, current: str = "old", old: str = "", phase: str = "", **attributes: Any
) -> Landscape:
    """Return a landscape with these encryption keys, in a phase of their rotation."""
    status: JsonObject = {"credentials": {"rotation": {"etcdEncryptionKey": {"phase": phase}}}}
    of = landscape({"status": status}, *patches, **attributes)
    keys = Generated(key(current), old=key(old) if old else None)
    generated = {**of.credentials.generated, CREDENTIAL: keys}
    return of.with_credentials(type(of.credentials)(generated))


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    """Yield etcd and an API server for the tests of this module."""
    file = tmp_path_factory.mktemp("encryption") / "configuration.yaml"
    file.write_text(served(with_keys()))
    flags = (f"--encryption-provider-config={file}",)
    with private(API_ONLY, apiserver_flags=flags) as own:
        yield Cluster(own, file)


@pytest.fixture
async def client(cluster: Cluster) -> AsyncIterator[RecordingClient]:
    """Yield a client of the cluster, which has a Garden, and a Deployment for the marks."""
    async with RecordingClient.connect(load(cluster.sandbox.kubeconfig)) as client:
        await cluster.encrypt(with_keys())
        await install_operator_crds(client)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}}
        await client.apply(namespace, manager="test", force=True)
        pod = {
            "metadata": {"labels": {"a": "b"}},
            "spec": {"containers": [{"name": "a", "image": "a"}]},
        }
        await client.create(
            {
                "apiVersion": "apps/v1",
                "kind": "Deployment",
                "metadata": {"name": SERVER.name, "namespace": SERVER.namespace},
                "spec": {"replicas": 0, "selector": {"matchLabels": {"a": "b"}}, "template": pod},
            }
        )
        await client.create(MINIMAL)
        client.taken()
        yield client
        await client.delete(DEPLOYMENT, SERVER)
        await client.delete(GARDEN, LOCAL)
        for kind in (SECRET, CONFIG_MAP):
            for obj in await client.list(kind, "garden", metadata_only=True):
                with suppress(NotFound):
                    await client.delete(kind, Key.of(obj))


async def create(client: Client, kind: GroupVersionKind, *names: str) -> None:
    for name in names:
        metadata: JsonObject = {"name": name, "namespace": "garden"}
        obj = {"apiVersion": "v1", "kind": kind.kind, "metadata": metadata}
        await client.create({**obj, "data": {"text": "aGVsbG8="}})


async def a_run(client: Client, of: Landscape) -> Run:
    return await garden_run(client, client, of)


async def writes(client: RecordingClient) -> list[str]:
    """Return the writes of users' objects since the last call."""
    return [write for write in client.taken() if DEPLOYMENT.kind not in write]


async def test_a_new_key_replaces_the_old_one_in_etcd(
    client: RecordingClient, cluster: Cluster
) -> None:
    await create(client, SECRET, "a", "b")
    assert await cluster.stored("secrets", "garden") == {"a": "old", "b": "old"}

    # Every replica knows the new key before any replica encrypts with it.
    keys = {"current": "new", "old": "old"}
    await cluster.encrypt(with_keys(**keys, phase="Preparing"))
    await create(client, SECRET, "c")
    assert (await cluster.stored("secrets", "garden"))["c"] == "old"

    of = with_keys(**keys, phase="Preparing", is_new_key_known=True)
    await cluster.encrypt(of)
    await create(client, SECRET, "d")
    run = await a_run(client, of)
    await label(run, ALL_SECRETS)
    stored = await cluster.stored("secrets", "garden")
    assert stored == dict.fromkeys("abcd", "new")

    await unlabel(run, LOCAL, ALL_SECRETS)
    assert await client.list(SECRET, labels=KEY_NAME) == []
    at_rest = map_at(await client.get(GARDEN, LOCAL), "status", "credentials", "encryptionAtRest")
    assert at_rest == {"resources": [], "provider": {"type": "aescbc"}}
    assert not annotations_of(await client.get(DEPLOYMENT, SERVER)).keys() & {marks.LABELED}

    # The old key is gone, and everything can still be read.
    await cluster.encrypt(with_keys(current="new", phase="Completing"))
    assert {name_of(each) for each in await client.list(SECRET, "garden")} == set("abcd")


async def test_added_resources_become_encrypted_and_removed_ones_plain(
    client: RecordingClient, cluster: Cluster
) -> None:
    await create(client, CONFIG_MAP, "a", "b")
    assert set((await cluster.stored("configmaps", "garden")).values()) == {""}

    added = with_keys(MAPS)
    await cluster.encrypt(added)
    assert len(await client.list(CONFIG_MAP, "garden")) >= 2
    run = await a_run(client, added)
    await label(run, ALL_MAPS)
    await unlabel(run, LOCAL, ALL_MAPS)
    assert set((await cluster.stored("configmaps", "garden")).values()) == {"old"}
    at_rest = {"resources": ["configmaps"], "provider": {"type": "aescbc"}}
    status = map_at(await client.get(GARDEN, LOCAL), "status")
    assert map_at(status, "credentials")["encryptionAtRest"] == at_rest
    assert status["encryptedResources"] == ["configmaps"]

    removed = with_keys({"status": {"credentials": {"encryptionAtRest": at_rest}}})
    await cluster.encrypt(removed)
    assert len(await client.list(CONFIG_MAP, "garden")) >= 2
    run = await a_run(client, removed)
    await label(run, ALL_MAPS)
    await unlabel(run, LOCAL, ALL_MAPS)
    assert set((await cluster.stored("configmaps", "garden")).values()) == {""}
    assert "encryptedResources" not in map_at(await client.get(GARDEN, LOCAL), "status")


async def test_a_restarted_operator_labels_no_object_again(client: RecordingClient) -> None:
    await create(client, SECRET, *(f"s{number}" for number in range(40)))

    async def work(mortal: Client) -> None:
        await label(await a_run(mortal, with_keys()), ALL_SECRETS)

    assert await killed_after(15, client, work)
    done = {name_of(each) for each in await client.list(SECRET, labels=KEY_NAME)}
    assert len(done) == 15
    client.taken()
    await label(await a_run(client, with_keys()), ALL_SECRETS)
    again = {write.rpartition("/")[2] for write in await writes(client)}
    assert not again & done
    assert len(again | done) == 40

    # The mark says that everything is done, so no object is read.
    await label(await a_run(client, with_keys()), ALL_SECRETS)
    assert client.taken() == []


async def test_marks_of_another_change_are_ignored_but_those_of_the_original_count(
    client: RecordingClient,
) -> None:
    await create(client, SECRET, "a")
    await label(await a_run(client, with_keys()), ALL_SECRETS)
    other = with_keys(current="new", old="old", phase="Preparing")
    await label(await a_run(client, other), ALL_SECRETS)
    secret = await client.get(SECRET, Key("garden", "a"))
    assert labels_of(secret)[KEY_NAME] == f"{CREDENTIAL}-new"

    patch = {"metadata": {"annotations": {marks.LABELED: "true"}}}
    await client.patch(DEPLOYMENT, SERVER, patch)
    client.taken()
    await label(await a_run(client, with_keys()), ALL_SECRETS)
    assert client.taken() == []


async def test_objects_deleted_during_the_rewrite_do_not_matter(
    client: RecordingClient, cluster: Cluster
) -> None:
    await create(client, SECRET, "a", "b")

    class Late(Client):
        """A client whose pages contain an object that is deleted before they are used."""

        async def pages(
            self,
            gvk: GroupVersionKind,
            namespace: str | None = None,
            *,
            labels: str | None = None,
            fields: str | None = None,
            metadata_only: bool = False,
            page_size: int | Callable[[], int] = PAGE,
        ) -> AsyncGenerator[ObjectList]:
            found = super().pages(gvk, labels=labels, metadata_only=True, page_size=page_size)
            async for page in found:
                await client.delete(SECRET, Key("garden", "a"))
                yield page

    async with Late.connect(load(cluster.sandbox.kubeconfig)) as late:
        await Rewriter(late).label(SECRET, "x")
    [left] = await client.list(SECRET, "garden")
    assert labels_of(left) == {KEY_NAME: "x"}


async def test_a_snapshot_is_taken_only_once(client: RecordingClient) -> None:
    taken = []

    async def take(*of: object) -> None:
        taken.append(of)

    for _ in range(2):
        run = await a_run(client, with_keys())
        run.snapshot = take
        await snapshot(run)
    assert len(taken) == 1


async def test_only_served_resources_are_rewritten_but_gardeners_must_be_served(
    client: RecordingClient,
) -> None:
    resources = ("secrets", "deployments.apps", "bindings", "unknown.example.org")
    assert await kinds_of(client, resources) == {"secrets": SECRET, "deployments.apps": DEPLOYMENT}
    with pytest.raises(NotServed, match=r"does not serve shootstates\.core\.gardener\.cloud"):
        await kinds_of(client, ["shootstates.core.gardener.cloud"])


class Recorded(Deployer):
    """A deployer that records in which order it applies and awaits keys."""

    def __init__(self, client: Client) -> None:
        super().__init__(client)
        self.steps: list[str] = []

    async def wait(self, rendered: Rendered, limit: float) -> None:
        self.steps.append("wait")


async def roll_out_key(client: Client, of: Landscape) -> list[str]:
    """Deploy kube-apiserver; return the steps, each apply with the order of its keys."""
    run = await a_run(client, of)
    run.deployer = deployer = Recorded(client)

    def render(landscape: Landscape) -> Rendered:
        [first] = configuration(landscape, api_server(landscape))["resources"]
        keys = first["providers"][0]["aescbc"]["keys"]
        deployer.steps.append(",".join(each["name"] for each in keys))
        return Rendered()

    stages = (second_stage(api_server, render),)
    server = replace(
        KUBE_APISERVER, render=render, credentials=no_credentials, then=stages, waits=False
    )
    await run.deploy(server)
    return [step for step in deployer.steps if step != "apply"]


async def test_a_new_key_encrypts_only_once_every_replica_knows_it(client: RecordingClient) -> None:
    preparing = with_keys(current="new", old="old", phase="Preparing")
    # The second stage renders what it waits for.
    assert await roll_out_key(client, preparing) == ["old,new", "old,new", "wait", "new,old"]
    assert POPULATED in annotations_of(await client.get(DEPLOYMENT, SERVER))

    # The next run learns that from the mark.
    assert await roll_out_key(client, preparing) == ["new,old"]
    prepared = with_keys(current="new", old="old", phase="Prepared")
    assert await roll_out_key(client, prepared) == ["new,old"]
    assert POPULATED in annotations_of(await client.get(DEPLOYMENT, SERVER))

    completing = with_keys(current="new", phase="Completing")
    assert await roll_out_key(client, completing) == ["new"]
    assert POPULATED not in annotations_of(await client.get(DEPLOYMENT, SERVER))


async def test_an_operator_that_is_killed_before_the_mark_starts_over_with_the_first_step(
    client: RecordingClient,
) -> None:
    class Killed(RecordingClient):
        """A client of an operator that dies before it marks the Deployment."""

        async def patch(self, *of: object, **options: object) -> JsonObject:
            raise asyncio.CancelledError

    preparing = with_keys(current="new", old="old", phase="Preparing")
    killed = Killed(client._transport)
    with pytest.raises(asyncio.CancelledError):
        await roll_out_key(killed, preparing)
    steps = await roll_out_key(client, preparing)
    assert steps == ["old,new", "old,new", "wait", "new,old"]


async def test_a_rewrite_that_is_killed_between_any_two_writes_is_completed(
    client: RecordingClient,
) -> None:
    names = ("a", "b", "c")
    await create(client, SECRET, *names)
    taken: list[object] = []

    async def take(*of: object) -> None:
        taken.append(of)

    async def work(mortal: Client) -> None:
        run = await a_run(mortal, with_keys())
        run.snapshot = take
        await label(run, ALL_SECRETS)
        await snapshot(run)
        await unlabel(run, LOCAL, ALL_SECRETS)

    writes, is_killed = 0, True
    while is_killed:
        taken.clear()
        client.taken()
        is_killed = await killed_after(writes, client, work)
        before = {name_of(each) for each in await client.list(SECRET, "garden", labels=KEY_NAME)}
        is_labelled = await marks.is_marked(client, with_keys(), marks.LABELED)
        is_snapshotted = await marks.is_marked(client, with_keys(), marks.SNAPSHOTTED)
        client.taken()
        await work(client)

        # In the second life, an object that already has the label only loses it.
        touched = [write.rpartition("/")[2] for write in await writes_of(client, SECRET)]
        assert {name: touched.count(name) for name in before} == dict.fromkeys(before, 1)
        assert not is_labelled or {*touched} == before
        assert not is_snapshotted or len(taken) <= 1
        assert await client.list(SECRET, "garden", labels=KEY_NAME) == []
        annotations = annotations_of(await client.get(DEPLOYMENT, SERVER))
        assert not annotations.keys() & {marks.LABELED, marks.SNAPSHOTTED}
        status = map_at(await client.get(GARDEN, LOCAL), "status", "credentials")
        assert status["encryptionAtRest"]["provider"] == {"type": "aescbc"}
        patch = {"status": {"credentials": None}}
        await client.patch(GARDEN, LOCAL, patch, subresource="status")
        writes += 1
    assert writes == 2 * len(names) + 5


async def writes_of(client: RecordingClient, kind: GroupVersionKind) -> list[str]:
    """Return the writes of objects of a kind since the last call."""
    return [write for write in client.taken() if kind.kind in write]
