"""Clients for Shoots, and ManagedResources for them (spec 40 §3.3). The sandbox is the Shoot."""

import base64
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from pergola.api import marks
from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, JsonValue, Key, labels_of, map_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.bundle import WaitTimeout
from pergola.extensions import Cluster, Context, ExtensionError, Shoot
from pergola.extensions.managed_resources import (
    create_for_shoot,
    delete,
    leave,
    set_keep,
    wait_applied,
    wait_deleted,
)
from pergola.extensions.shoot_access import (
    EXTERNAL,
    INTERNAL,
    WHICH,
    request_access,
    shoot_client,
    shoot_config,
)
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump
from pergola.runtime.clock import SystemClock
from pergola.testing.crds import install_crds
from pergola.testing.world import RecordingClient, config_map, is_ready
from tests.support.objects import secret
from tests.support.service_accounts import service_account_config

TOKEN_FILE = "/var/run/secrets/gardener.cloud/shoot/generic-kubeconfig/token"
SHOOT = Shoot({"spec": {}})
ASLEEP = Shoot({"spec": {"hibernation": {"enabled": True}}, "status": {"hibernated": True}})
ACCESS_SECRET = "shoot-access-gardenet"
NAME = "extension-networking-gardenet-config"
ORIGIN = "extension-networking-gardenet"


def generic_kubeconfig(server: str, ca: bytes | None) -> str:
    """Return a kubeconfig for pods, whose token is in a file that only pods have."""
    cluster: JsonObject = {"server": server}
    if ca:
        cluster["certificate-authority-data"] = base64.b64encode(ca).decode()
    return dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "shoot",
            "contexts": [{"name": "shoot", "context": {"cluster": "shoot", "user": "shoot"}}],
            "clusters": [{"name": "shoot", "cluster": cluster}],
            "users": [{"name": "shoot", "user": {"tokenFile": TOKEN_FILE}}],
        }
    )


async def put_access(client: Client, namespace: str, server: str) -> Cluster:
    """Return a control plane whose Shoot is at this server."""
    name = "generic-token-kubeconfig-1"
    text = generic_kubeconfig(server, None)
    await client.create(secret(namespace, name, kubeconfig=text))
    await client.create(secret(namespace, ACCESS_SECRET, token="t"))
    return Cluster(namespace, SHOOT, token_kubeconfig=name)


# The client of a Shoot


async def test_a_shoot_is_reached_with_the_token_of_the_access_secret(
    cluster_client: Client, namespace: str, kubeconfig: Path
) -> None:
    admin = load(kubeconfig)
    account = await service_account_config(admin, namespace)
    token = (await account.credentials.headers())["Authorization"].removeprefix("Bearer ")
    key = Key(namespace, "generic-token-kubeconfig")
    text = generic_kubeconfig(admin.server, admin.ca)
    await cluster_client.create(secret(*key, kubeconfig=text))
    await cluster_client.create(secret(namespace, ACCESS_SECRET, token=token))
    review = {
        "apiVersion": "authentication.k8s.io/v1",
        "kind": "SelfSubjectReview",
    }
    cluster = Cluster(namespace, SHOOT)
    async with shoot_client(cluster_client, cluster, token_secret=ACCESS_SECRET) as shoot:
        assert shoot is not None
        answer = await shoot.create(review)
    name = map_at(answer, "status", "userInfo")["username"]
    assert name == f"system:serviceaccount:{namespace}:default"


def kubeconfig_of(server: str, **user: JsonValue) -> str:
    """Return a kubeconfig with credentials, as Gardener stores it in the control plane."""
    return dump(
        {
            "apiVersion": "v1",
            "kind": "Config",
            "current-context": "shoot",
            "contexts": [{"name": "shoot", "context": {"cluster": "shoot", "user": "shoot"}}],
            "clusters": [{"name": "shoot", "cluster": {"server": server}}],
            "users": [{"name": "shoot", "user": user}],
        }
    )


@pytest.mark.parametrize(
    ("stored", "environ", "expected"),
    [
        ([INTERNAL, EXTERNAL], {}, INTERNAL),
        ([INTERNAL], {}, INTERNAL),
        ([EXTERNAL], {}, EXTERNAL),
        ([INTERNAL, EXTERNAL], {WHICH: "external"}, EXTERNAL),
    ],
)
async def test_gardeners_kubeconfigs_are_used_in_order_of_preference(
    cluster_client: Client,
    namespace: str,
    stored: list[str],
    environ: dict[str, str],
    expected: str,
) -> None:
    for name in stored:
        text = kubeconfig_of(f"https://{name}.example.org", token=f"token of {name}")
        await cluster_client.create(secret(namespace, name, kubeconfig=text))

    config = await shoot_config(cluster_client, Cluster(namespace, SHOOT), environ=environ)

    assert config is not None
    assert config.server == f"https://{expected}.example.org"
    headers = await config.credentials.headers()
    assert headers["Authorization"] == f"Bearer token of {expected}"


async def test_without_gardeners_kubeconfigs_both_secrets_are_named(
    cluster_client: Client, namespace: str
) -> None:
    missing = f"there is no Secret {namespace}/gardener-internal or Secret {namespace}/gardener:"
    with pytest.raises(ExtensionError, match=missing):
        await shoot_config(cluster_client, Cluster(namespace, SHOOT), environ={})


@pytest.mark.parametrize(
    "user", [{"tokenFile": "/etc/passwd"}, {"client-certificate": "/x", "client-key": "/y"}]
)
async def test_a_kubeconfig_from_a_secret_must_not_name_files_of_this_process(
    cluster_client: Client, namespace: str, user: dict[str, str]
) -> None:
    text = kubeconfig_of("https://api.example.org", **user)
    await cluster_client.create(secret(namespace, INTERNAL, kubeconfig=text))

    with pytest.raises(ExtensionError, match=f"Secret {namespace}/{INTERNAL}: users"):
        await shoot_config(cluster_client, Cluster(namespace, SHOOT), environ={})


@pytest.mark.parametrize("shoot", [None, ASLEEP])
async def test_a_hibernated_or_missing_shoot_has_no_client(
    cluster_client: Client, namespace: str, shoot: Shoot | None
) -> None:
    async with shoot_client(cluster_client, Cluster(namespace, shoot)) as found:
        assert found is None


@pytest.mark.parametrize(
    ("server", "expected", "name"),
    [
        ("https://api.example.org", "https://api.example.org", None),
        ("https://10.0.0.1:6443/", "https://10.0.0.1:6443", None),
        ("https://[fd00::1]:443", "https://[fd00::1]:443", None),
        ("https://kube-apiserver", "https://kube-apiserver.{ns}.svc", "kube-apiserver"),
        ("kube-apiserver:443", "https://kube-apiserver.{ns}.svc:443", "kube-apiserver"),
    ],
)
async def test_a_bare_service_name_can_be_reached_from_other_namespaces(
    cluster_client: Client, namespace: str, server: str, expected: str, name: str | None
) -> None:
    cluster = await put_access(cluster_client, namespace, server)
    config = await shoot_config(cluster_client, cluster, token_secret=ACCESS_SECRET)
    assert config is not None
    assert config.server == expected.format(ns=namespace)
    assert config.tls_server_name == name


async def test_a_missing_secret_is_reported_with_the_component_that_creates_it(
    cluster_client: Client, namespace: str
) -> None:
    cluster = Cluster(namespace, SHOOT)
    where = f"Secret {namespace}/generic-token-kubeconfig"
    with pytest.raises(ExtensionError, match=f"{where} is missing: the control plane"):
        await shoot_config(cluster_client, cluster, token_secret=ACCESS_SECRET)
    key = Key(namespace, "generic-token-kubeconfig")
    await cluster_client.create(secret(*key, kubeconfig="current-context: shoot"))
    await request_access(cluster_client, namespace, token_secret=ACCESS_SECRET)
    where = f"Secret {namespace}/{ACCESS_SECRET}"
    with pytest.raises(ExtensionError, match=f'{where} has no key "token": the token requestor'):
        await shoot_config(cluster_client, cluster, token_secret=ACCESS_SECRET)
    token = {"data": {"token": base64.b64encode(b"very-secret").decode()}}
    await cluster_client.patch(SECRET, Key(namespace, ACCESS_SECRET), token)
    with pytest.raises(ExtensionError, match='context "shoot" does not exist') as raised:
        await shoot_config(cluster_client, cluster, token_secret=ACCESS_SECRET)
    assert "very-secret" not in str(raised.value)


async def test_access_is_requested_only_once(cluster_client: Client, namespace: str) -> None:
    secret_name = {"token_secret": ACCESS_SECRET}
    await request_access(cluster_client, namespace, account="extension-gardenet", **secret_name)
    await request_access(cluster_client, namespace, account="another", **secret_name)
    purpose, of_class = "resources.gardener.cloud/purpose", "resources.gardener.cloud/class"
    (asked,) = await cluster_client.list(
        SECRET, namespace, labels=f"{purpose}=token-requestor,{of_class}=shoot"
    )
    assert Key.of(asked) == Key(namespace, ACCESS_SECRET)
    name = "serviceaccount.resources.gardener.cloud/name"
    assert asked["metadata"]["annotations"][name] == "extension-gardenet"


# ManagedResources


@pytest.fixture
async def recorder(kubeconfig: Path) -> AsyncIterator[RecordingClient]:
    async with RecordingClient.connect(load(kubeconfig)) as client:
        await install_crds(client)
        client.taken()
        yield client


@pytest.fixture
def reported() -> list[tuple[int, str]]:
    return []


@pytest.fixture
def context(recorder: RecordingClient, namespace: str, reported: list[tuple[int, str]]) -> Context:
    async def progress(percent: int, description: str) -> None:
        reported.append((percent, description))

    async def save(_status: JsonObject) -> None:
        """Do nothing."""

    return Context(
        client=recorder,
        cluster=None,
        namespace=namespace,
        clock=SystemClock(),
        progress=progress,
        save=save,
    )


async def test_objects_are_shipped_in_a_managed_resource_only_once(
    context: Context, recorder: RecordingClient
) -> None:
    objects = [config_map("gardenet-config", "kube-system", podCIDR="10.0.0.0/8"), None]
    stored = await create_for_shoot(
        context, NAME, ORIGIN, objects, condition_type="SystemComponentsHealthy"
    )
    assert labels_of(stored) == {
        "origin": ORIGIN,
        marks.CARE_CONDITION_TYPE: "SystemComponentsHealthy",
    }
    assert stored["spec"]["keepObjects"] is False
    assert stored["spec"]["injectLabels"] == {"shoot.gardener.cloud/no-cleanup": "true"}
    assert "class" not in stored["spec"]
    assert len(recorder.taken()) == 2
    await create_for_shoot(context, NAME, ORIGIN, objects, condition_type="SystemComponentsHealthy")
    assert recorder.taken() == []


async def test_leaving_a_shoot_keeps_its_objects_before_anything_is_deleted(
    context: Context, recorder: RecordingClient, namespace: str
) -> None:
    await create_for_shoot(context, NAME, ORIGIN, [config_map("a", "kube-system")])
    recorder.taken()
    await leave(context, NAME)
    verbs = [write.split()[:2] for write in recorder.taken()]
    assert verbs[0] == ["patch", "ManagedResource"]
    assert verbs[-1] == ["delete", "ManagedResource"]
    assert not await recorder.list(MANAGED_RESOURCE, namespace)
    # It may be interrupted anywhere and called again.
    await leave(context, NAME)
    await set_keep(context, NAME, keep=True)


async def test_a_blocked_deletion_names_the_cause(context: Context) -> None:
    await create_for_shoot(context, NAME, ORIGIN, [config_map("a", "kube-system")])
    key = Key(context.namespace, NAME)
    held = {"metadata": {"finalizers": [marks.FINALIZER]}}
    await context.client.patch(MANAGED_RESOURCE, key, held)
    await delete(context, NAME)
    with pytest.raises(WaitTimeout, match=f"ManagedResource {key} is not deleted after"):
        await wait_deleted(context, NAME, 0.3)
    await context.client.patch(MANAGED_RESOURCE, key, {"metadata": {"finalizers": []}})
    await wait_deleted(context, NAME)


async def test_waiting_for_the_managed_resource_is_reported_as_progress(
    context: Context, reported: list[tuple[int, str]]
) -> None:
    stored = await create_for_shoot(context, NAME, ORIGIN, [config_map("a", "kube-system")])
    with pytest.raises(WaitTimeout):
        await wait_applied(context, NAME, 4)
    assert reported[0][0] == 60
    assert reported[0][1].startswith(f"Waiting for ManagedResource {NAME}: ")

    now = "2026-01-01T00:00:00Z"
    conditions = [
        {
            "type": kind,
            "status": status,
            "reason": "Test",
            "message": "as a test wants it",
            "lastTransitionTime": now,
            "lastUpdateTime": now,
        }
        for kind, status in (
            ("ResourcesApplied", "True"),
            ("ResourcesHealthy", "True"),
            ("ResourcesProgressing", "False"),
        )
    ]
    status = {"observedGeneration": stored["metadata"]["generation"], "conditions": conditions}
    key = Key(context.namespace, NAME)
    await context.client.patch(MANAGED_RESOURCE, key, {"status": status}, subresource="status")
    assert is_ready(await wait_applied(context, NAME, 30))
