"""A Garden with bad input reports it in one sentence, loses nothing, and recovers by itself.

The cluster has no controllers, so a Garden only gets as far as its resource manager, which is never
rolled out. That is far enough to see that the input was accepted.
"""

import asyncio
import base64
import os
import sys
from collections.abc import AsyncGenerator, AsyncIterator, Iterator
from contextlib import asynccontextmanager, suppress
from pathlib import Path

import orjson
import pytest

from pergola.api.kinds import CRD, EVENT, SECRET, SEED
from pergola.api.marks import OPERATOR_FINALIZER
from pergola.api.objects import (
    JsonObject,
    Key,
    finalizers_of,
    labels_of,
    map_at,
    metadata_of,
    name_of,
    uid_of,
)
from pergola.api.operator_config import configuration_from
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.components.authorities import RUNTIME as RUNTIME_CA
from pergola.garden.components.gardener_access import INTERNAL
from pergola.garden.components.gardener_apiserver import GARDENER_APISERVER
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.kube.kubeconfig import load
from pergola.operator.copies import Copies
from pergola.operator.reconcile import reconcile
from pergola.operator.reconcile.controller import garden_unit
from pergola.operator.reconcile.reconcile import IGNORE, Settings
from pergola.operator.reconcile.status import Operator
from pergola.operator.reconcile.usage import ABANDON, UsageUnknown, ensure_unused
from pergola.operator.template import images, template
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.resource_manager.registration import garden_webhooks
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import API_ONLY, Sandbox
from pergola.testing.crds import definition, install_crds, install_operator_crds, serve
from pergola.testing.shared import private
from pergola.testing.waiting import running, settled, until, until_gone
from tests.support.cluster_config import NOWHERE, cluster_config
from tests.support.garden_world import (
    MANAGED,
    configuration,
    example,
    managed_secrets,
    operator,
)
from tests.support.gardens import GARDENER, RUNTIME, SERVER, VIRTUAL, with_values
from tests.support.logs import captured_logs
from tests.support.operator_site import OperatorSite

LOCAL = Key("", "local")
PATIENCE = 600.0
ENVIRONMENT = {"WEBHOOK_MODE": "url", "WEBHOOK_URL": "127.0.0.1"}
KUBECONFIG = b"""
clusters: [{name: a, cluster: {server: "https://webhook.example.org"}}]
contexts: [{name: a, context: {cluster: a, user: a}}]
users: [{name: a, user: {token: a}}]
current-context: a
"""
SEED_CRD: JsonObject = definition(SEED, scope="Cluster")


@pytest.fixture(scope="module")
def own_sandbox() -> Iterator[Sandbox]:
    """Yield etcd and an API server for the tests of this module."""
    with private(API_ONLY) as own:
        yield own


@pytest.fixture
async def client(own_sandbox: Sandbox) -> AsyncIterator[Client]:
    """Yield an administrator's client of the cluster, whose webhooks are down; delete Gardens."""
    async with Client.connect(load(own_sandbox.kubeconfig)) as client:
        await install_operator_crds(client)
        namespace = {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": "garden"}}
        await client.apply(namespace, manager="test", force=True)
        await OperatorSite(client).unregister()
        yield client
        await OperatorSite(client).unregister()
        for garden in await client.list(GARDEN):
            await client.patch(GARDEN, Key.of(garden), {"metadata": {"finalizers": None}})
            with suppress(NotFound):  # its deletion may have been requested
                await client.delete(GARDEN, Key.of(garden))
        # Of the credentials of a Garden whose deletion was cut short, some are missing.
        for secret in await client.list(SECRET, "garden", labels=MANAGED, metadata_only=True):
            await client.delete(SECRET, Key.of(secret))


@pytest.fixture
async def virtual(client: Client, own_sandbox: Sandbox) -> AsyncIterator[VirtualCluster]:
    """Yield the connection to the virtual cluster, which is the same cluster."""

    await apply_kubeconfig(client, INTERNAL, kubeconfig=KUBECONFIG)
    config = load(own_sandbox.kubeconfig)
    async with VirtualCluster(client, reach=lambda _: config) as access:
        yield access
    with suppress(NotFound):  # a deletion may have started
        await client.delete(SECRET, Key("garden", INTERNAL))


@asynccontextmanager
async def reconciling(
    client: Client, virtual: VirtualCluster, kubeconfig: Path
) -> AsyncGenerator[Unit]:
    """Run the controller of Gardens alone, without the operator's webhooks."""
    config = configuration_from(configuration(kubeconfig)).config
    settings = Settings(
        template=template(config, images({}), "1.36.0", garden_webhooks),
        operator=Operator(id="test", name="test", version="v1.150.0"),
        sync_period=3600,
    )
    copies = Copies(client)
    unit = garden_unit(copies, virtual, settings, metrics=Metrics())
    async with running(copies.unit, unit):
        yield unit


async def says(client: Client, sentence: str, key: Key = LOCAL) -> JsonObject:
    """Wait until the status of a Garden has exactly this sentence as its error."""
    description = f"{sentence} Operation will be retried."

    def holds(garden: JsonObject) -> bool:
        operation = map_at(garden, "status", "lastOperation")
        return operation.get("state") == "Error" and operation["description"] == description

    return await until(client, GARDEN, key, holds, patience=PATIENCE)


async def makes_progress(client: Client, key: Key = LOCAL) -> JsonObject:
    """Wait until tasks of a Garden have succeeded."""

    def holds(garden: JsonObject) -> bool:
        operation = map_at(garden, "status", "lastOperation")
        is_busy = operation.get("state") == "Processing" and operation.get("type") == "Reconcile"
        return is_busy and operation["progress"] > 0

    return await until(client, GARDEN, key, holds, patience=PATIENCE)


def waits_for_its_resource_manager(garden: JsonObject) -> bool:
    """Return whether the first task that needs another program is running."""
    operation = map_at(garden, "status", "lastOperation")
    return "Deployment garden/gardener-resource-manager" in str(operation.get("description"))


async def two_gardens(client: Client) -> tuple[JsonObject, JsonObject]:
    """Create two Gardens; return the older one first."""
    first = await client.create(example())
    second = await client.create(with_values(example(), {"metadata.name": "second"}))
    older, younger = sorted(
        [first, second], key=lambda it: (metadata_of(it)["creationTimestamp"], name_of(it))
    )
    return older, younger


async def apply_kubeconfig(client: Client, name: str = "webhook", **values: bytes) -> None:
    data = {key: base64.b64encode(value).decode() for key, value in values.items()}
    metadata = {"name": name, "namespace": "garden"}
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata, "data": data}
    await client.apply(secret, manager="test", force=True)


async def test_a_garden_that_admission_would_refuse_is_explained(
    client: Client, own_sandbox: Sandbox
) -> None:
    wrong = {
        f"{RUNTIME}.networking.pods": ["10.64.0.0/33"],
        f"{GARDENER}.gardenerDashboard": {"enableTokenLogin": False},
    }
    await client.create(with_values(example(), wrong))
    async with operator(own_sandbox.kubeconfig, ENVIRONMENT):
        garden = await says(
            client,
            "the Garden is invalid: spec.runtimeCluster.networking.pods[0]: Invalid value: "
            '"10.64.0.0/33": cannot parse pod network cidr of runtime cluster: invalid CIDR '
            "address: 10.64.0.0/33; spec.virtualCluster.gardener.gardenerDashboard."
            "enableTokenLogin: Forbidden: OIDC must be configured when token login is disabled.",
        )
        assert finalizers_of(garden) == []

        right = {
            "runtimeCluster": {"networking": {"pods": ["10.64.0.0/16"]}},
            "virtualCluster": {"gardener": {"gardenerDashboard": None}},
        }
        await client.patch(GARDEN, LOCAL, {"spec": right})
        await makes_progress(client)


async def test_a_kubernetes_version_out_of_range_is_explained(
    client: Client, own_sandbox: Sandbox
) -> None:
    await client.create(with_values(example(), {f"{VIRTUAL}.kubernetes.version": "1.99.0"}))
    async with operator(own_sandbox.kubeconfig, ENVIRONMENT):
        await says(
            client,
            "the Garden is invalid: spec.virtualCluster.kubernetes.version: Unsupported value: "
            '"1.99.0": supported values: "1.32", "1.33", "1.34", "1.35", "1.36".',
        )
        version = {"virtualCluster": {"kubernetes": {"version": "1.36.0"}}}
        await client.patch(GARDEN, LOCAL, {"spec": version})
        await makes_progress(client)


async def test_a_missing_empty_or_malformed_secret_is_explained(
    client: Client, own_sandbox: Sandbox
) -> None:
    field = f"{SERVER}.authentication.webhook"
    await client.create(with_values(example(), {field: {"kubeconfigSecretName": "webhook"}}))
    named = f"Secret garden/webhook ({field}.kubeconfigSecretName)"
    unusable = f"the Garden names objects that cannot be used: {named} %s; correct their content, "
    unusable += "or name others."
    async with operator(own_sandbox.kubeconfig, ENVIRONMENT):
        await says(
            client,
            f"the Garden names objects that do not exist: {named}; create them, or correct the "
            "fields.",
        )
        await apply_kubeconfig(client)
        await says(client, unusable % "is empty")
        await apply_kubeconfig(client, config=KUBECONFIG)
        await says(client, unusable % 'has no content at key "kubeconfig"')
        await apply_kubeconfig(client, kubeconfig=b"password: [secret")
        await says(
            client, unusable % 'has a key "kubeconfig" that is not a kubeconfig with a cluster'
        )
        await apply_kubeconfig(client, kubeconfig=KUBECONFIG)
        await makes_progress(client)
    await client.delete(SECRET, Key("garden", "webhook"))


async def test_a_corrupt_credential_is_named_in_the_status_the_event_and_the_log(
    client: Client, virtual: VirtualCluster, own_sandbox: Sandbox
) -> None:
    await client.create(example())
    async with reconciling(client, virtual, own_sandbox.kubeconfig):
        await makes_progress(client)
    [secret] = await client.list(SECRET, "garden", labels=f"name={RUNTIME_CA}")
    key = Key.of(secret)
    await client.delete(SECRET, key)
    metadata = {"name": key.name, "namespace": "garden", "labels": labels_of(secret)}
    data = dict.fromkeys(secret["data"], base64.b64encode(b"garbage").decode())
    await client.create({**secret, "metadata": metadata, "data": data})

    with captured_logs(reconcile) as lines:
        async with reconciling(client, virtual, own_sandbox.kubeconfig):
            garden = await until(client, GARDEN, LOCAL, lambda it: _names(it, f"Secret {key} "))
            [error] = map_at(garden, "status")["lastErrors"]
            text = error["description"]
            assert "holds no usable certificate" in text
            assert text.endswith("delete it to generate a new one")
            assert _names(garden, text)
            await _is_reported(client, uid_of(garden), f"{text}.")
    [line] = [line for line in lines if line["event"] == "garden not reconciled"][:1]
    assert line["error"] == text
    await client.delete(SECRET, key)


async def _is_reported(client: Client, garden: str, text: str) -> None:
    """Wait for the Event about a failed reconciliation of the Garden with this uid."""

    def is_about_it(event: JsonObject) -> bool:
        return event["regarding"].get("uid") == garden and event.get("note") == text

    async with asyncio.timeout(PATIENCE):
        while not any(map(is_about_it, await client.list(EVENT))):
            pass


def _names(garden: JsonObject, text: str) -> bool:
    operation = map_at(garden, "status", "lastOperation")
    return operation.get("state") == "Error" and text in operation["description"]


async def test_only_the_older_of_two_gardens_is_reconciled(
    client: Client, virtual: VirtualCluster, own_sandbox: Sandbox
) -> None:
    older, younger = await two_gardens(client)
    async with reconciling(client, virtual, own_sandbox.kubeconfig):
        await says(
            client,
            f"there can be only one Garden, and {name_of(older)} is older: delete one of them.",
            Key.of(younger),
        )
        await makes_progress(client, Key.of(older))
        await client.patch(GARDEN, Key.of(older), {"metadata": {"annotations": {IGNORE: "true"}}})
        await client.delete(GARDEN, Key.of(older))
        await client.patch(GARDEN, Key.of(older), {"metadata": {"finalizers": None}})
        await makes_progress(client, Key.of(younger))


async def test_an_operator_that_finds_two_gardens_at_its_start_reconciles_the_older_one(
    client: Client, own_sandbox: Sandbox
) -> None:
    older, younger = await two_gardens(client)
    for garden, version in ((older, "v1.149.0"), (younger, "v1.0.0")):
        status = {"status": {"gardener": {"id": "a", "name": "a", "version": version}}}
        await client.patch(GARDEN, Key.of(garden), status, subresource="status")
    async with operator(own_sandbox.kubeconfig, ENVIRONMENT):
        await says(
            client,
            f"there can be only one Garden, and {name_of(older)} is older: delete one of them.",
            Key.of(younger),
        )
        await makes_progress(client, Key.of(older))


async def test_the_deletion_of_a_garden_interrupts_its_reconciliation(
    client: Client, virtual: VirtualCluster, own_sandbox: Sandbox
) -> None:
    operations: list[tuple[str, str]] = []

    def is_being_deleted(garden: JsonObject) -> bool:
        operation = map_at(garden, "status", "lastOperation")
        operations.append((operation["type"], operation["state"]))
        return operations[-1][0] == "Delete" and int(operation["progress"]) > 0

    await client.create(example())
    async with reconciling(client, virtual, own_sandbox.kubeconfig):
        await until(client, GARDEN, LOCAL, waits_for_its_resource_manager, patience=PATIENCE)
        await client.delete(GARDEN, LOCAL)
        await until(client, GARDEN, LOCAL, is_being_deleted, patience=PATIENCE)
    # The wait for the resource manager was interrupted, not ended.
    assert ("Reconcile", "Error") not in operations


async def test_an_ignored_garden_is_left_alone(
    client: Client, virtual: VirtualCluster, own_sandbox: Sandbox
) -> None:
    garden = example()
    garden["metadata"]["annotations"] = {IGNORE: "true"}
    created = await client.create(garden)
    async with reconciling(client, virtual, own_sandbox.kubeconfig) as unit:
        await settled(unit, client)
        assert await client.get(GARDEN, LOCAL) == created

        labels = {"virtualCluster": {"maintenance": {"timeWindow": {"begin": "210000+0100"}}}}
        changed = await client.patch(GARDEN, LOCAL, {"spec": labels})
        await settled(unit, client)
        assert await client.get(GARDEN, LOCAL) == changed

        await client.patch(GARDEN, LOCAL, {"metadata": {"annotations": {IGNORE: None}}})
        await makes_progress(client)


async def test_a_garden_with_seeds_is_not_deleted(
    client: Client, virtual: VirtualCluster, own_sandbox: Sandbox
) -> None:
    await serve(client, SEED_CRD)
    seed = {
        "apiVersion": f"{SEED.group}/{SEED.version}",
        "kind": "Seed",
        "metadata": {"name": "far"},
    }
    await client.create(seed)
    unready = {f"{SERVER}.authentication.webhook": {"kubeconfigSecretName": "absent"}}
    await client.create(with_values(example(), unready))
    async with reconciling(client, virtual, own_sandbox.kubeconfig):
        await until(client, GARDEN, LOCAL, lambda it: OPERATOR_FINALIZER in finalizers_of(it))
        before = await managed_secrets(client)
        await client.delete(GARDEN, LOCAL)
        await says(
            client,
            "the garden still has 1 Seed (far): delete them first, or set the annotation "
            f"{ABANDON}=true to give them up.",
        )
        assert await managed_secrets(client) == before
        await client.delete(SEED, Key("", "far"))
        await until_gone(client, GARDEN, LOCAL)
    await client.delete(CRD, Key("", name_of(SEED_CRD)))


async def test_a_garden_is_not_deleted_while_its_seeds_cannot_be_listed(
    client: Client,
) -> None:
    await install_crds(client)
    await apply_kubeconfig(client, INTERNAL, kubeconfig=KUBECONFIG)
    garden, [key, *_] = example(), GARDENER_APISERVER.leftovers.managed
    async with VirtualCluster(client, reach=lambda _: cluster_config()) as unreachable:
        await ensure_unused(client, unreachable, garden)  # nothing is deployed yet

        await client.create(
            {
                "apiVersion": MANAGED_RESOURCE.api_version,
                "kind": MANAGED_RESOURCE.kind,
                "metadata": {"namespace": key.namespace, "name": key.name},
                "spec": {"secretRefs": []},
            }
        )
        with pytest.raises(UsageUnknown, match=f"cannot be listed: cannot reach {NOWHERE}"):
            await ensure_unused(client, unreachable, garden)
        garden["metadata"]["annotations"] = {ABANDON: "true"}
        await ensure_unused(client, unreachable, garden)

        del garden["metadata"]["annotations"]
        await client.patch(MANAGED_RESOURCE, key, {"metadata": {"finalizers": ["test/stays"]}})
        await client.delete(MANAGED_RESOURCE, key)
        await ensure_unused(client, unreachable, garden)  # the deletion has started
    await client.patch(MANAGED_RESOURCE, key, {"metadata": {"finalizers": None}})


async def test_a_broken_image_vector_ends_the_process_with_one_sentence(
    client: Client, own_sandbox: Sandbox, tmp_path: Path
) -> None:
    vector, config = tmp_path / "images.yaml", tmp_path / "operator.json"
    vector.write_text("images: [{name: etcd-druid, tag: 1, repository")
    config.write_bytes(orjson.dumps(configuration(own_sandbox.kubeconfig)))
    process = await asyncio.create_subprocess_exec(
        Path(sys.executable).parent / "pergola",
        "operator",
        "--config",
        config,
        env={**os.environ, **ENVIRONMENT, "IMAGEVECTOR_OVERWRITE": str(vector)},
        stderr=asyncio.subprocess.PIPE,
    )
    _, stderr = await process.communicate()
    assert process.returncode == 1
    *_, last = stderr.decode().splitlines()
    assert b"Traceback" not in stderr
    assert last.startswith(f"pergola: {vector}: ")
    assert "line 2, column 1: did not find expected ',' or '}'" in last
