"""The life of a Garden: it is created, stable, repaired, moved and deleted.

Its virtual cluster is a second control plane, started with rendered objects of the operator. It
moves to another runtime cluster with its volumes and an export. The commands are those of the
guide.
"""

import asyncio
import base64
from collections.abc import AsyncIterator, Iterable, Iterator
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple
from urllib.parse import urlsplit

import pytest

from pergola.api.kinds import (
    CONFIG_MAP,
    CRD,
    DEPLOYMENT,
    NAMESPACE,
    SECRET,
    STATEFUL_SET,
)
from pergola.api.objects import JsonObject, Key, finalizers_of, generation_of, map_at, name_of
from pergola.api.operator_config import OperatorConfiguration
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.cli.garden.runtime_cluster import runtime_template
from pergola.cli.why.gardens import GARDEN_TASKS
from pergola.kube.client import Client
from pergola.kube.credentials import Credentials, StaticToken
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.kube.patches import apply_merge_patch
from pergola.kube.yaml import dump, parse_documents
from pergola.operator.plan import Plan, Verb, rehearse
from pergola.operator.reconcile.picture import Picture, State, following
from pergola.operator.start_checks import runtime_version
from pergola.operator.template import images, template
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.resource_manager.registration import garden_webhooks
from pergola.runtime.metrics import Metrics
from pergola.sandbox.directory import remove
from pergola.sandbox.simulated import Site
from pergola.testing.shared import require_images
from pergola.testing.waiting import until
from pergola.why import Reader, Topic
from pergola.why import explain as why
from pergola.why.garden_parts import answer
from tests.support.documented import Shell, blocks, commands
from tests.support.documented.manifests import objects
from tests.support.garden_at_rest import referring, rests, webhooks
from tests.support.garden_fixture import world_with
from tests.support.garden_states import is_healthy, reconciled_after
from tests.support.garden_world import (
    RECONCILE,
    contents,
    example,
    managed_secrets,
    operating,
)
from tests.support.lost_fields import lost_fields
from tests.support.service_accounts import until_allowed
from tests.support.virtual_credentials import access_config, client_certificate

pytestmark = pytest.mark.timeout(1200)

LOCAL = Key("", "local")
PATIENCE = 600.0
API = Key("garden", "virtual-garden-kube-apiserver")
GUIDE = "how-to/operating-a-garden.md"
GARDENLETS = "how-to/gardenlets.md"
CONFIDENTIAL: JsonObject = {
    "apiVersion": "v1",
    "kind": "Secret",
    "metadata": {"name": "confidential", "namespace": "garden"},
    "data": {"word": "eHl6enk="},
}
CHANGED: JsonObject = {
    "spec": {"virtualCluster": {"kubernetes": {"kubeAPIServer": {"eventTTL": "2h0m0s"}}}}
}


@pytest.fixture
def volumes(tmp_path: Path) -> Iterator[Path]:
    """Yield the folder of volumes that move, and delete it after the test, because it is large."""
    path = tmp_path / "volumes"
    yield path
    remove(path)


class Held(NamedTuple):
    """The credentials of users: a kubeconfig with a token, and a certificate."""

    access: ClusterConfig
    certificate: Credentials


def _prepare(folder: Path) -> None:
    """Write the files that the commands of the guide name."""
    (folder / "garden.yaml").write_text(dump(referring(example())))
    (folder / "passphrase").write_text("correct horse battery\n")


def _shell(site: Site, folder: Path) -> Shell:
    return Shell(site.sandbox.kubeconfig, folder)


def is_complete(garden: JsonObject) -> bool:
    return bool(last_operation(garden).get("progress") == 100)


def last_operation(garden: JsonObject) -> JsonObject:
    return map_at(garden, "status", "lastOperation")


def missing(names: Iterable[str], present: Iterable[str]) -> set[str]:
    return set(names) - set(present)


@pytest.fixture(autouse=True)
def gardener() -> None:
    require_images("gardener-apiserver")


async def test_a_garden_is_created_stable_repaired_and_deleted(
    garden_world: Site, tmp_path: Path
) -> None:
    """Takes more than a minute, because a whole Garden comes up: the only one of `make test`."""
    _prepare(tmp_path)
    client, shell, metrics = garden_world.client, _shell(garden_world, tmp_path), Metrics()
    async with operating(garden_world, metrics=metrics):
        await client.create(webhooks("old"))
        await shell.run(*commands(GUIDE, "Create the Garden"))
        await until(client, GARDEN, LOCAL, is_healthy, patience=PATIENCE)
        await _serves(garden_world)
        await _is_explained(client)
        await _is_stable(client)
        assert (await planned(garden_world)).is_empty
        await _is_repaired(client)
        _had_all_permissions(garden_world, metrics)
        await _is_deleted(client, shell)


@pytest.mark.soak("gardens")
async def test_a_garden_is_created_by_two_operators_and_moves_to_another_cluster(
    tmp_path: Path, volumes: Path
) -> None:
    _prepare(tmp_path)
    async with world_with(volumes) as site:
        held = await _lives(site, _shell(site, tmp_path))
    async with world_with(volumes) as site:
        await _moves(site, _shell(site, tmp_path), held)


async def _lives(site: Site, shell: Shell) -> Held:
    """Check that the Garden is created, stable and repaired; return credentials of its users."""
    client, metrics = site.client, Metrics()
    async with operating(site, metrics=metrics):
        await client.create(webhooks("old"))
        await shell.run(*commands(GUIDE, "Create the Garden"))
        started = await until(
            client,
            GARDEN,
            LOCAL,
            lambda it: last_operation(it).get("progress", 0) > 15,
            patience=PATIENCE,
        )
        assert "gardener.cloud/operator" in finalizers_of(started)
        _had_all_permissions(site, metrics)
    # An operator that starts in the middle of an operation continues it.
    async with operating(site, metrics=metrics):
        await _is_followed(client)
        await until(client, GARDEN, LOCAL, is_complete, patience=PATIENCE)
        await _serves(site)
        await until(client, GARDEN, LOCAL, is_healthy, patience=PATIENCE)
        await shell.run(*commands(GUIDE, "Use it"))
        await _is_explained(client)
        await _is_stable(client)
        await rests(client, metrics)
        await _is_planned(site)
        await _is_repaired(client)
        await _serves_programs(site)
        _had_all_permissions(site, metrics)
        return await _is_exported(site, shell)


async def _moves(site: Site, shell: Shell, held: Held) -> None:
    """Check that the Garden runs in another cluster, accepts credentials, and can be deleted."""
    async with operating(site):
        await shell.run(*commands(GUIDE, "Import the credentials"))
        await shell.run(*commands(GUIDE, "Start the Garden"))
        await _accepts(site, held)
        assert "local" in await shell.run(*commands(GUIDE, "Watch"))
        await shell.run(*commands(GUIDE, "Change the Garden"))
        await _is_deleted(site.client, shell)


async def _is_exported(site: Site, shell: Shell) -> Held:
    """Export the credentials, stop the virtual cluster, and keep its volumes."""
    async with VirtualCluster(site.client, reach=site.reach) as access:
        await (await access.client()).create(CONFIDENTIAL)
    held = Held(await access_config(site.client), await client_certificate(site.client))
    await shell.run(*commands(GUIDE, "Export the credentials"))
    await shell.run(*commands(GUIDE, "Move"))
    main = Key("garden", "virtual-garden-etcd-main")
    await until(site.client, STATEFUL_SET, main, has_stopped, patience=PATIENCE)
    return held


def has_stopped(stateful_set: JsonObject) -> bool:
    status = map_at(stateful_set, "status")
    is_observed = status.get("observedGeneration") == generation_of(stateful_set)
    return is_observed and not status.get("replicas")


async def _accepts(site: Site, held: Held) -> None:
    """Check that the old kubeconfig and the old certificate give access to the old data."""
    for config in (held.access, replace(held.access, credentials=held.certificate)):
        async with Client.connect(site.reach(config)) as virtual:
            found = await virtual.get(SECRET, Key.of(CONFIDENTIAL))
            assert found["data"] == CONFIDENTIAL["data"]


async def _is_followed(client: Client) -> None:
    """Follow the pictures until the operation has ended; which ones arrive is a matter of time."""
    template = await runtime_template(client, None)
    async with asyncio.timeout(PATIENCE), following(client, LOCAL.name, template) as pictures:
        async for picture in until_succeeded(pictures):
            assert picture.exists
    assert picture.operation.state == "Succeeded"


async def _is_followed_until_deleted(client: Client) -> None:
    """Follow the pictures until one reports that the Garden is deleted."""
    template = await runtime_template(client, None)
    async with asyncio.timeout(PATIENCE), following(client, LOCAL.name, template) as pictures:
        async for picture in pictures:
            if not picture.exists:
                break
    assert picture.is_over


async def until_succeeded(pictures: AsyncIterator[Picture]) -> AsyncIterator[Picture]:
    """Yield pictures until the Garden is reconciled; earlier attempts may fail."""
    async for picture in pictures:
        yield picture
        if picture.is_over and not picture.has_failed:
            return


async def _serves(site: Site) -> None:
    """Check that the virtual cluster answers with tokens from its own resource manager."""
    async with VirtualCluster(site.client, reach=site.reach) as access:
        virtual = await access.client()
        namespaces = {name_of(each) for each in await virtual.list(NAMESPACE)}
        await _accepts_documented_gardenlets(virtual)
    assert not missing({"garden", "gardener-system-public"}, namespaces)


async def _accepts_documented_gardenlets(virtual: Client) -> None:
    """Check that Gardener's API server knows each field of the Gardenlets in the guide."""
    found = [each for block in blocks(GARDENLETS) for each in objects(block.text)]
    found = [each for each in found if each.get("kind") == "Gardenlet"]
    assert found
    for each in found:
        assert [*lost_fields(each, await virtual.create(each, dry_run=True))] == []


async def _serves_programs(site: Site) -> None:
    """Check that a program gets a token and a role with the objects of the guide."""
    [block] = [each for each in blocks(GUIDE) if each.heading == "Access for programs"]
    for document in parse_documents(block.text):
        assert isinstance(document.value, dict)
        await site.client.apply(document.value, manager="kubectl")
    key = Key("garden", "shoot-access-virtual-garden")
    secret = await until(site.client, SECRET, key, has_token, patience=PATIENCE)
    token = StaticToken(base64.b64decode(secret["data"]["token"]).decode())
    access = replace(await access_config(site.client), credentials=token)
    async with Client.connect(site.reach(access)) as virtual:
        await until_allowed(virtual, NAMESPACE)


def has_token(secret: JsonObject) -> bool:
    return "token" in map_at(secret, "data")


async def _is_explained(client: Client) -> None:
    """Check that each task is done or skipped, and that the answers give the reasons."""
    template = await runtime_template(client, None)
    async with asyncio.timeout(PATIENCE), following(client, LOCAL.name, template) as pictures:
        async for picture in pictures:
            states = {task.state for task in picture.tasks}
            if picture.is_over and states == {State.DONE, State.SKIPPED}:
                break
    assert all(task.why for task in picture.of(State.SKIPPED))
    there = await answer(Reader(client), "gardener-scheduler", picture)
    assert "is there because the Garden needs it, as ManagedResource" in there.sentence
    assert there.statements == ()
    skipped = await answer(Reader(client), "nginx-ingress", picture)
    assert skipped.sentence.startswith("component nginx-ingress is skipped: ")
    garden = await why(client, GARDEN, LOCAL, [GARDEN_TASKS])
    assert (garden.state, garden.unread) == ("ok", ())
    managed = next(o for t in picture.tasks for o in t.objects if o.gvk == MANAGED_RESOURCE)
    owners = (await why(client, *managed, [GARDEN_TASKS])).about(Topic.WANTED)
    assert any(owner.subject.startswith("component ") for owner in owners)


async def _is_stable(client: Client) -> None:
    """Check that another reconciliation changes nothing."""
    before = await contents(client)
    last = await client.patch(GARDEN, LOCAL, RECONCILE)
    garden = await until(client, GARDEN, LOCAL, reconciled_after(last), patience=PATIENCE)
    assert generation_of(garden) == generation_of(last)
    assert "gardener.cloud/operation" not in garden["metadata"]["annotations"]
    assert await contents(client) == before


async def _is_planned(site: Site) -> None:
    """Check that plans are empty at rest, and otherwise have exactly the changes of the spec."""
    client = site.client
    assert [*map(str, (await planned(site)).changes)] == []
    assert (await planned(site)).is_empty

    before = await contents(client)
    plan = await planned(site, CHANGED)
    assert [(each.verb, str(each)) for each in plan.changes] == [(Verb.CHANGE, f"Deployment {API}")]
    (field,) = next(plan.changes).fields
    assert field.path == "spec.template.spec.containers[kube-apiserver].args"

    last = await client.patch(GARDEN, LOCAL, CHANGED)
    await until(client, GARDEN, LOCAL, reconciled_after(last), patience=PATIENCE)
    after = await contents(client)
    assert {name for name in before | after if before.get(name) != after.get(name)} == {
        f"Deployment {API.name}"
    }
    assert (await planned(site)).is_empty


async def planned(site: Site, patch: JsonObject | None = None) -> Plan:
    """Return the plan of the Garden, with a merge patch applied to it."""
    version = await runtime_version(site.client, any_version=True)
    vector = images(site.operator_environment)
    of = template(OperatorConfiguration(), vector, version, garden_webhooks)
    garden = apply_merge_patch(await site.client.get(GARDEN, LOCAL), patch or {})
    return await rehearse(site.client, garden, of, reach=site.reach)


async def _is_repaired(client: Client) -> None:
    """Check that the resource manager restores its objects without the operator."""
    key = Key("garden", "gardener-scheduler")
    deleted = await client.get(DEPLOYMENT, key)
    await client.delete(DEPLOYMENT, key)
    uid = deleted["metadata"]["uid"]
    await until(client, DEPLOYMENT, key, lambda it: it["metadata"]["uid"] != uid, patience=PATIENCE)


def _had_all_permissions(site: Site, metrics: Metrics) -> None:
    """Check that the runtime cluster has denied no request of the operator."""
    host = urlsplit(load(site.sandbox.kubeconfig).server).netloc
    counted = [
        sample.labels["code"]
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "rest_client_requests_total" and sample.labels["host"] == host
    ]
    assert "200" in counted
    assert "403" not in counted


async def _is_deleted(client: Client, shell: Shell) -> None:
    await shell.run(*commands(GUIDE, "Remove"))
    await _is_followed_until_deleted(client)
    await shell.run(*commands(GUIDE, "Wait for the end"))
    assert await managed_secrets(client) == []
    unique = "resources.gardener.cloud/garbage-collectable-reference=true"
    for kind in (CONFIG_MAP, SECRET):
        assert await client.list(kind, "garden", labels=unique) == []
    assert await client.list(DEPLOYMENT, "garden") == []
    definitions = {name_of(each) for each in await client.list(CRD)}
    assert "etcds.druid.gardener.cloud" not in definitions
    assert "gardens.operator.gardener.cloud" in definitions
    assert await client.find(NAMESPACE, Key("", "garden")) is not None
