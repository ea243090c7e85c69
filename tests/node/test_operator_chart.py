"""Helm installs, upgrades and removes the operator on a real node with its chart (spec 20 §2)."""

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, TypeAlias

import pytest

from pergola.admission.configurations import configuration_keys
from pergola.api.kinds import CONFIG_MAP, CRD, DEPLOYMENT, LEASE, POD, SECRET, SERVICE
from pergola.api.objects import (
    GroupVersionKind,
    Identity,
    JsonObject,
    Key,
    map_at,
    maps_at,
    name_of,
)
from pergola.api.operator_v1alpha1 import garden_crd
from pergola.kube.client import Client
from pergola.kube.errors import ApiError, Invalid, NotFound
from pergola.operator.serving import IDENTITY
from pergola.operator.serving import SERVICE as SERVICE_KEY
from pergola.operator.webhooks.catalog import CONFIGURATION_NAME
from pergola.sandbox import Sandbox
from pergola.sandbox.helm import helm, render
from pergola.testing.waiting import PATIENCE, until, until_gone
from tests.support.charts import with_image
from tests.support.deployed_manager import turn
from tests.support.gardens import GARDENER, MINIMAL, with_values
from tests.support.operator_chart import OperatorChart
from tests.support.previous_chart import previous_chart

pytestmark = [pytest.mark.soak("node"), pytest.mark.node]

CHART: Final = Path(__file__).parents[2] / "charts" / "operator"
OPERATOR: Final = Key("garden", "gardener-operator")
LOCK: Final = Key("garden", "gardener-operator-leader-election")
PODS: Final = "app=gardener,role=operator"
KINDS: Final = (CONFIG_MAP, DEPLOYMENT, LEASE, SECRET, SERVICE)
# A separate field manager: other tests label the namespace, and applying with theirs would remove
# the labels.
FIELD_MANAGER: Final = "pergola-testing-operator"
DEBUG: Final[JsonObject] = {"config": {"logLevel": "debug"}}
FOREIGN: Final = "istio-ca-root-cert"
"""The ConfigMap that istiod, in other tests, writes to every namespace."""
Install: TypeAlias = Callable[[JsonObject], Coroutine[None, None, None]]


@pytest.fixture
def own_turn(node_sandbox: Sandbox) -> Iterator[None]:
    """Exclude other tests that use the namespace of the garden."""
    with turn(node_sandbox, exclusive=True):
        yield


@pytest.fixture
async def install(
    own_turn: None, node_sandbox: Sandbox, node_client: Client
) -> AsyncIterator[Install]:
    """Yield a function that installs or upgrades the chart, and remove it at the end."""
    del own_turn
    labels = {"pod-security.kubernetes.io/enforce": "restricted"}
    metadata: JsonObject = {"name": OPERATOR.namespace, "labels": labels}
    await node_client.apply(
        {"apiVersion": "v1", "kind": "Namespace", "metadata": metadata}, manager=FIELD_MANAGER
    )
    await until(
        node_client, CONFIG_MAP, Key(OPERATOR.namespace, "kube-root-ca.crt"), lambda _: True
    )

    async def run(values: JsonObject) -> None:
        command = ("upgrade", "--install")
        flags = ("--wait", "--timeout", "5m", *where(node_sandbox))
        await asyncio.to_thread(
            helm, *command, OPERATOR.name, str(CHART), *flags, values=with_image(values)
        )

    yield run
    await remove(node_sandbox, node_client)


def where(sandbox: Sandbox) -> tuple[str, ...]:
    return ("--namespace", OPERATOR.namespace, "--kubeconfig", str(sandbox.kubeconfig))


async def remove(sandbox: Sandbox, client: Client) -> None:
    flags = ("--ignore-not-found", "--wait", *where(sandbox))
    await asyncio.to_thread(helm, "uninstall", OPERATOR.name, *flags)
    for gvk, key in configuration_keys(CONFIGURATION_NAME):
        await until_gone(client, gvk, key)
    for gvk, key in ((SECRET, IDENTITY), (LEASE, LOCK)):
        with suppress(NotFound):
            await client.delete(gvk, key)


async def pods(client: Client) -> list[JsonObject]:
    return await client.list(POD, OPERATOR.namespace, labels=PODS)


def is_configured(pod: JsonObject, values: JsonObject) -> bool:
    """Return whether a pod mounts the configuration of a release with these values."""
    name = name_of(OperatorChart.rendered(CHART, values).named("gardener-operator-configmap-"))
    volumes = maps_at(pod, "spec", "volumes")
    return name in {map_at(volume, "configMap").get("name") for volume in volumes}


async def there(client: Client) -> set[Identity]:
    """Return the objects in the namespace of the garden, without Helm's releases."""
    return {
        Identity(gvk, Key.of(obj))
        for gvk in KINDS
        for obj in await client.list(gvk, OPERATOR.namespace, metadata_only=True)
        if not name_of(obj).startswith("sh.helm.release") and name_of(obj) != FOREIGN
    }


async def registered(client: Client) -> None:
    """Wait until the API server calls the webhooks and refuses a Garden that breaks a rule."""
    for gvk, key in configuration_keys(CONFIGURATION_NAME):
        await until(client, gvk, key, lambda obj: bool(obj["webhooks"]))
    wrong = with_values(MINIMAL, {f"{GARDENER}.gardenerDashboard": {"enableTokenLogin": False}})
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.create(wrong, dry_run=True)
            except Invalid:
                return
            except ApiError:  # for example, the Service has no endpoint yet
                await client.get_raw("/version")


async def test_the_operator_becomes_ready_and_creates_only_its_own_objects(
    node_client: Client, install: Install
) -> None:
    before = await there(node_client)

    await install({})
    await registered(node_client)

    chart = {Identity(GroupVersionKind.of(obj), Key.of(obj)) for obj in render(CHART, with_image())}
    own = {Identity(SECRET, IDENTITY), Identity(LEASE, LOCK)}
    made = await there(node_client) - before
    assert made == own | {each for each in chart if each.gvk in KINDS}
    lease = await node_client.get(LEASE, LOCK)
    (pod,) = await pods(node_client)
    assert name_of(pod) in lease["spec"]["holderIdentity"]


async def test_the_api_server_trusts_the_authority_that_the_operator_created(
    node_client: Client, install: Install
) -> None:
    await install({})
    await registered(node_client)

    secret = await node_client.get(SECRET, IDENTITY)
    for gvk, key in configuration_keys(CONFIGURATION_NAME):
        for webhook in maps_at(await node_client.get(gvk, key), "webhooks"):
            found = map_at(webhook, "clientConfig")
            assert found["caBundle"] == secret["data"]["ca.crt"]
            assert Key(found["service"]["namespace"], found["service"]["name"]) == SERVICE_KEY


async def test_a_changed_configuration_replaces_the_pods(
    node_client: Client, install: Install
) -> None:
    await install({})
    (old,) = await pods(node_client)

    await install(DEBUG)

    await until_gone(node_client, POD, Key.of(old))
    (new,) = await pods(node_client)
    assert is_configured(new, DEBUG)
    await registered(node_client)


async def test_a_release_of_the_previous_chart_is_upgraded_rolled_back_and_restored(
    node_client: Client, node_sandbox: Sandbox, install: Install, tmp_path: Path
) -> None:
    previous = await asyncio.to_thread(previous_chart, "operator", tmp_path)
    chart = (OPERATOR.name, str(previous), *where(node_sandbox))
    # The node has had the definitions since the first of these tests.
    await asyncio.to_thread(helm, "install", "--take-ownership", *chart, values=with_image())

    # The charts may have equal pods, so only another configuration replaces them for certain.
    await install(DEBUG)
    (upgraded,) = (pod for pod in await pods(node_client) if is_configured(pod, DEBUG))
    await asyncio.to_thread(helm, "rollback", OPERATOR.name, "1", *where(node_sandbox))
    await until_gone(node_client, POD, Key.of(upgraded))
    wait = ("--wait", "--timeout", "5m")
    await asyncio.to_thread(helm, "rollback", OPERATOR.name, "2", *wait, *where(node_sandbox))

    await registered(node_client)


async def test_another_replica_leads_after_the_deletion_of_the_leader(
    node_client: Client, install: Install
) -> None:
    await install({"replicaCount": 2})
    held = await until(node_client, LEASE, LOCK, lambda obj: bool(obj["spec"]["holderIdentity"]))
    holder = held["spec"]["holderIdentity"]
    (leader,) = (pod for pod in await pods(node_client) if name_of(pod) in holder)

    await node_client.delete(POD, Key.of(leader))

    await until(
        node_client,
        LEASE,
        LOCK,
        lambda obj: obj["spec"]["holderIdentity"] not in ("", holder),
    )
    await registered(node_client)


async def test_uninstalling_keeps_the_definitions(
    node_client: Client, node_sandbox: Sandbox, install: Install
) -> None:
    before = await there(node_client)
    await install({})
    await registered(node_client)

    await remove(node_sandbox, node_client)

    assert await there(node_client) == before
    assert await node_client.find(CRD, Key("", name_of(garden_crd())))
