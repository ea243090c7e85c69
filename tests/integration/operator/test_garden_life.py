"""The life of a Garden: it comes up, stays as it is, repairs itself, moves, and goes away.

Its virtual cluster is a second control plane, started with what the operator rendered. It moves to
another runtime cluster with its volumes and an export. The commands are those of the guide.
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
from pergola.operator.garden.explain import answer
from pergola.operator.garden.picture import Picture, State, following
from pergola.operator.plan import Plan, Verb, rehearse
from pergola.operator.start_checks import runtime_version
from pergola.operator.template import images, template
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.resource_manager.registration import garden_webhooks
from pergola.runtime.metrics import Metrics
from pergola.sandbox.directory import remove
from pergola.sandbox.simulated import Site
from pergola.testing.documented import Shell, blocks, commands
from pergola.testing.documented.manifests import objects
from pergola.testing.garden_at_rest import referring, rests, webhooks
from pergola.testing.garden_fixture import world_with
from pergola.testing.garden_states import is_healthy, reconciled_after
from pergola.testing.garden_world import (
    RECONCILE,
    contents,
    example,
    managed_secrets,
    operating,
)
from pergola.testing.lost_fields import lost_fields
from pergola.testing.service_accounts import until_allowed
from pergola.testing.shared import require_images
from pergola.testing.virtual_credentials import access_config, client_certificate
from pergola.testing.waiting import until
from pergola.why import Topic
from pergola.why import explain as why

pytestmark = pytest.mark.timeout(2400)

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
    """Yield the folder of volumes that move; they are large, and go with the test."""
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
    return Shell(site.client, site.sandbox.kubeconfig, folder)


def is_complete(garden: JsonObject) -> bool:
    return bool(last_operation(garden).get("progress") == 100)


def last_operation(garden: JsonObject) -> JsonObject:
    return map_at(garden, "status", "lastOperation")


def missing(names: Iterable[str], present: Iterable[str]) -> set[str]:
    return set(names) - set(present)


@pytest.fixture(autouse=True)
def gardener() -> None:
    require_images("gardener-apiserver")


async def test_a_garden_comes_up_stays_repairs_itself_moves_and_goes(
    tmp_path: Path, volumes: Path
) -> None:
    _prepare(tmp_path)
    async with world_with(volumes) as site:
        held = await _lives(site, _shell(site, tmp_path))
    async with world_with(volumes) as site:
        await _moves(site, _shell(site, tmp_path), held)


async def _lives(site: Site, shell: Shell) -> Held:
    """The Garden comes up, stays and repairs itself; return what users of it have."""
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
        _is_permitted_all(site, metrics)
    # An operator that starts in the middle goes on.
    async with operating(site, metrics=metrics):
        await _is_followed(client)
        await until(client, GARDEN, LOCAL, is_complete, patience=PATIENCE)
        await _serves(site)
        await until(client, GARDEN, LOCAL, is_healthy, patience=PATIENCE)
        await shell.run(*commands(GUIDE, "Use it"))
        await _is_explained(client)
        await _stays(client)
        await rests(client, metrics)
        await _is_planned(site)
        await _is_repaired(client)
        await _serves_programs(site)
        _is_permitted_all(site, metrics)
        return await _leaves(site, shell)


async def _moves(site: Site, shell: Shell, held: Held) -> None:
    """The Garden comes up in another cluster, accepts what users have, and goes."""
    async with operating(site):
        await shell.run(*commands(GUIDE, "Import the credentials"))
        await shell.run(*commands(GUIDE, "Start the Garden"))
        await _accepts(site, held)
        assert "local" in await shell.run(*commands(GUIDE, "Watch"))
        await shell.run(*commands(GUIDE, "Change the Garden"))
        await _goes(site.client, shell)


async def _leaves(site: Site, shell: Shell) -> Held:
    """The credentials are exported, and the virtual cluster stops; its volumes stay."""
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
    """The old kubeconfig, with its token, and the old certificate give access to the old data."""
    for config in (held.access, replace(held.access, credentials=held.certificate)):
        async with Client.connect(site.reach(config)) as virtual:
            found = await virtual.get(SECRET, Key.of(CONFIDENTIAL))
            assert found["data"] == CONFIDENTIAL["data"]


async def _is_followed(client: Client) -> None:
    """Pictures come until the operation has ended; which ones in between is a matter of time."""
    template = await runtime_template(client, None)
    async with asyncio.timeout(PATIENCE), following(client, LOCAL.name, template) as pictures:
        async for picture in until_succeeded(pictures):
            assert picture.exists
    assert picture.operation.state == "Succeeded"


async def _is_followed_until_it_is_gone(client: Client) -> None:
    """Pictures come until one says that the Garden is gone."""
    template = await runtime_template(client, None)
    async with asyncio.timeout(PATIENCE), following(client, LOCAL.name, template) as pictures:
        async for picture in pictures:
            if not picture.exists:
                break
    assert picture.is_over


async def until_succeeded(pictures: AsyncIterator[Picture]) -> AsyncIterator[Picture]:
    """Yield pictures until the Garden is reconciled; an attempt may fail before."""
    async for picture in pictures:
        yield picture
        if picture.is_over and not picture.has_failed:
            return


async def _serves(site: Site) -> None:
    """The virtual cluster answers, and its tokens come from its own resource manager."""
    async with VirtualCluster(site.client, reach=site.reach) as access:
        virtual = await access.client()
        namespaces = {name_of(each) for each in await virtual.list(NAMESPACE)}
        await _accepts_documented_gardenlets(virtual)
    assert not missing({"garden", "gardener-system-public"}, namespaces)


async def _accepts_documented_gardenlets(virtual: Client) -> None:
    """Gardener's API server knows each field of the Gardenlets that the guide has."""
    found = [each for block in blocks(GARDENLETS) for each in objects(block.text)]
    found = [each for each in found if each.get("kind") == "Gardenlet"]
    assert found
    for each in found:
        assert [*lost_fields(each, await virtual.create(each, dry_run=True))] == []


async def _serves_programs(site: Site) -> None:
    """A program gets a token with the objects of the guide, and its role with them."""
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
    """Each task is done, or skipped for a reason; the answers say why."""
    template = await runtime_template(client, None)
    async with asyncio.timeout(PATIENCE), following(client, LOCAL.name, template) as pictures:
        async for picture in pictures:
            states = {task.state for task in picture.tasks}
            if picture.is_over and states == {State.DONE, State.SKIPPED}:
                break
    assert all(task.why for task in picture.of(State.SKIPPED))
    there = await answer(client, "gardener-scheduler", picture)
    assert "is there because the Garden needs it, as ManagedResource" in there.sentence
    assert there.findings == ()
    skipped = await answer(client, "nginx-ingress", picture)
    assert skipped.sentence.startswith("component nginx-ingress is skipped: ")
    garden = await why(client, GARDEN, LOCAL, [GARDEN_TASKS])
    assert (garden.state, garden.unread) == ("ok", ())
    managed = next(o for t in picture.tasks for o in t.objects if o.gvk == MANAGED_RESOURCE)
    owners = (await why(client, *managed, [GARDEN_TASKS])).about(Topic.WANTED)
    assert any(owner.subject.startswith("component ") for owner in owners)


async def _stays(client: Client) -> None:
    """Another reconciliation changes nothing."""
    before = await contents(client)
    last = await client.patch(GARDEN, LOCAL, RECONCILE)
    garden = await until(client, GARDEN, LOCAL, reconciled_after(last), patience=PATIENCE)
    assert generation_of(garden) == generation_of(last)
    assert "gardener.cloud/operation" not in garden["metadata"]["annotations"]
    assert await contents(client) == before


async def _is_planned(site: Site) -> None:
    """A plan has no changes at rest, and those of a change in the spec: no more and no fewer."""
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
    """The resource manager restores what it manages, without the operator."""
    key = Key("garden", "gardener-scheduler")
    deleted = await client.get(DEPLOYMENT, key)
    await client.delete(DEPLOYMENT, key)
    uid = deleted["metadata"]["uid"]
    await until(client, DEPLOYMENT, key, lambda it: it["metadata"]["uid"] != uid, patience=PATIENCE)


def _is_permitted_all(site: Site, metrics: Metrics) -> None:
    """The runtime cluster has refused no request of the operator, which has its chart's roles."""
    host = urlsplit(load(site.sandbox.kubeconfig).server).netloc
    counted = [
        sample.labels["code"]
        for family in metrics.registry.collect()
        for sample in family.samples
        if sample.name == "rest_client_requests_total" and sample.labels["host"] == host
    ]
    assert "200" in counted
    assert "403" not in counted


async def _goes(client: Client, shell: Shell) -> None:
    await shell.run(*commands(GUIDE, "Remove"))
    await _is_followed_until_it_is_gone(client)
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
