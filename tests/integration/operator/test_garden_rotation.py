"""The rotation of all credentials of a Garden, from its start to its completion.

Its virtual cluster is a second control plane. What a client uses is checked against that, and what
is encrypted against the bytes in its etcd.
"""

import asyncio
import base64
import shlex
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AsyncExitStack, asynccontextmanager
from dataclasses import dataclass
from typing import Self

import orjson
import pytest

from pergola.api.kinds import CONFIG_MAP, DEPLOYMENT, NAMESPACE, SECRET
from pergola.api.objects import JsonObject, Key, annotations_of, map_at, name_of
from pergola.api.operator_config import OperatorConfiguration
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.cli.cluster_options import ClusterOptions
from pergola.cli.garden.app import app
from pergola.cli.garden.rotate_steps import Options, take_step
from pergola.cli.garden.runtime_cluster import Source
from pergola.kube.client import Client
from pergola.kube.credentials import Certificate, Credentials, StaticToken
from pergola.kube.errors import ApiError, KubeError, Unauthorized
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.patches import apply_merge_patch
from pergola.kube.transport import Transport
from pergola.operator.components.virtual_access import KUBECONFIG
from pergola.operator.garden.encryption_at_rest import POPULATED
from pergola.operator.garden.seeds import SEED
from pergola.operator.plan import Fate, rehearse
from pergola.operator.rotation.access_tokens import RENEW
from pergola.operator.rotation.encryption.marks import LABELED
from pergola.operator.rotation.encryption.rewrite import KEY_NAME
from pergola.operator.rotation.encryption.tasks import LABEL, SNAPSHOT, UNLABEL
from pergola.operator.rotation.requested import Action, Kind
from pergola.operator.rotation.seeds.standing import SKIPPED_SEEDS
from pergola.operator.rotation.seeds.tasks import RECONCILE_SEEDS, RENEW_KUBECONFIGS, TOKENS
from pergola.operator.start_checks import runtime_version
from pergola.operator.template import images, template
from pergola.operator.virtual_cluster import VirtualCluster
from pergola.resource_manager.registration import garden_webhooks
from pergola.runtime.metrics import Metrics
from pergola.sandbox.simulated import Site
from pergola.testing.documented import commands
from pergola.testing.garden_world import MANAGED, example, managed_secrets, operating
from pergola.testing.operator_lives import operator_lives
from pergola.testing.secret_history import secret_history
from pergola.testing.seeds import gardenlets, private_seed, register_provider
from pergola.testing.shared import require_images
from pergola.testing.virtual_credentials import (
    access_config,
    client_certificate,
    current_secrets,
    is_refused,
)
from pergola.testing.waiting import until

pytestmark = pytest.mark.timeout(2400)

LOCAL = Key("", "local")
PATIENCE = 700.0
PHASED = ("certificateAuthorities", "serviceAccountKey", "workloadIdentityKey")
AUTHORITIES = ("ca", "ca-client", "ca-etcd", "ca-etcd-peer", "ca-front-proxy", "ca-gardener")
KEYS = ("service-account-key", "gardener-apiserver-workload-identity-signing-key")
ENCRYPTION_KEYS = (
    "kube-apiserver-etcd-encryption-key",
    "gardener-apiserver-etcd-encryption-key",
)
START, COMPLETE = 1, 2
"""The commands of the guide; the first one shows what would happen."""
FATAL = (RENEW, TOKENS)
"""Each kills an operator when it is done: before the Seeds, and between two operations on them."""
SEEDS = ("far", "gone", "near")
GONE = "gone"
RECORD = "rotation.operator.gardener.cloud"
RENEWALS = ("renew-garden-access-secrets", "renew-workload-identity-tokens", "renew-kubeconfig")

CONTENT: tuple[JsonObject, ...] = (
    {"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "a", "namespace": "garden"}},
    {
        "apiVersion": "core.gardener.cloud/v1beta1",
        "kind": "ControllerDeployment",
        "metadata": {"name": "a"},
        "type": "custom",
        "providerConfig": {"some": "config"},
    },
)


@pytest.fixture(autouse=True)
def gardener() -> None:
    require_images("gardener-apiserver")


async def test_all_credentials_of_a_garden_are_rotated_by_operators_that_are_killed(
    garden_world: Site, capsys: pytest.CaptureFixture[str]
) -> None:
    client = garden_world.client
    async with AsyncExitStack() as stack:
        async with operating(garden_world, metrics=(metrics := Metrics())):
            await client.create(example())
            await until(client, GARDEN, LOCAL, has_succeeded, patience=PATIENCE)
            await all_ages_are_known(client, metrics)
            await create_content(garden_world)
            before = await Before.of(client)
            assert await encrypting_keys(garden_world) == key_names(before.secrets)

            secrets = await stack.enter_async_context(secret_history(client, "garden", MANAGED))
            virtual = await stack.enter_async_context(seeds(garden_world))
            await stack.enter_async_context(never_refused(garden_world))
            await is_foreseen(garden_world)
            following = asyncio.create_task(taken(garden_world, START))
            # It goes on until a user decides about the Seed that is gone.
            await until_rendered(
                client, metrics, 'phase="Preparing",rotation="certificateAuthorities"'
            )

        async def rotated() -> None:
            await decide_to_skip(client)
            assert await following
            await until(client, GARDEN, LOCAL, is_prepared, patience=PATIENCE)
            await all_seeds_but_one_are_renewed(virtual)
            await all_namespaces_publish_the_new_authority(garden_world)
            await both_are_accepted(garden_world, before)
            assert await taken(garden_world, COMPLETE)
            await until(client, GARDEN, LOCAL, is_completed, patience=PATIENCE)

        lives = await stack.enter_async_context(operator_lives(garden_world))
        await lives.killed_after(FATAL, rotated())
        assert len(lives.boundaries) == len(FATAL)
        assert {secrets.generated[name] for name in (*AUTHORITIES, *KEYS, *ENCRYPTION_KEYS)} == {2}
    assert "tokens that the old key signed are no longer accepted" in capsys.readouterr().out
    await only_the_new_ones_are_accepted(garden_world, before)


async def all_ages_are_known(client: Client, metrics: Metrics) -> None:
    for name in (*AUTHORITIES, *KEYS, *ENCRYPTION_KEYS):
        await until_rendered(client, metrics, f'credential_age_seconds{{credential="{name}"}}')


@dataclass
class Before:
    """What clients and API servers use before the rotation."""

    secrets: dict[str, JsonObject]
    certificate: Credentials
    token: Credentials

    @classmethod
    async def of(cls, client: Client) -> Self:
        return cls(
            await current_secrets(client),
            await client_certificate(client),
            await access_token(client),
        )


async def taken(site: Site, number: int) -> bool:
    """Take a step of the guide, and follow it."""
    source = Source("", None, ClusterOptions(kubeconfig=site.sandbox.kubeconfig))
    command = commands("how-to/operating-a-garden.md", "Rotating credentials")[number]
    return await take_step(source, *step(command), Options())


def step(command: str) -> tuple[Kind, Action]:
    """Return what a command of the guide requests."""
    _, _, *arguments = shlex.split(command, comments=True)
    given = app.parse_args(arguments, print_error=False, exit_on_error=False)[1].arguments
    return given.get("kind", "all"), "start" if given.get("start") else "complete"


async def is_foreseen(site: Site) -> None:
    """A plan of the start says which tasks run, and writes nothing."""
    before = {*await managed_secrets(site.client)}
    version = await runtime_version(site.client, any_version=True)
    vector = images(site.operator_environment)
    of = template(OperatorConfiguration(), vector, version, garden_webhooks)
    request: JsonObject = {
        "metadata": {"annotations": {"gardener.cloud/operation": "rotate-credentials-start"}}
    }
    garden = apply_merge_patch(await site.client.get(GARDEN, LOCAL), request)
    plan = await rehearse(site.client, garden, of, reach=site.reach)
    fates = {task.name: task.fate for task in plan.tasks}
    assert {fates[name] for name in (RENEW, RENEW_KUBECONFIGS, RECONCILE_SEEDS, LABEL)} == {
        Fate.RUN
    }
    assert {fates[name] for name in (UNLABEL, SNAPSHOT)} == {Fate.SKIP}
    # The operator may remove one meanwhile: the first kubeconfig of the virtual resource manager.
    assert {*await managed_secrets(site.client)} <= before
    for secret in await site.client.list(SECRET, "garden", metadata_only=True):
        assert not any("rotation" in name for name in annotations_of(secret))


async def all_namespaces_publish_the_new_authority(site: Site) -> None:
    """A rotation is not prepared before kube-controller-manager has written it everywhere."""
    current = (await current_secrets(site.client))["ca"]
    authority = base64.b64decode(current["data"]["ca.crt"]).decode().strip()
    async with VirtualCluster(site.client, reach=site.reach) as access:
        virtual = await access.client()
        found = await virtual.list(CONFIG_MAP, fields="metadata.name=kube-root-ca.crt")
    assert found
    assert all(authority in each["data"]["ca.crt"] for each in found)


async def until_rendered(client: Client, metrics: Metrics, text: str) -> None:
    """Return when metrics have a text: they read the operator's copies, which may be late."""
    async with asyncio.timeout(PATIENCE):
        while text not in rendered(metrics):
            await client.get_raw("/version")


def rendered(metrics: Metrics) -> str:
    return metrics.render().decode()


async def both_are_accepted(site: Site, before: Before) -> None:
    """Old and new credentials are valid; etcd has the new key only."""
    client = site.client
    after = await current_secrets(client)
    for name in (*AUTHORITIES, *KEYS, *ENCRYPTION_KEYS, "observability-ingress"):
        assert after[name]["data"] != before.secrets[name]["data"], name
    assert not await is_refused(site, before.certificate)
    assert not await is_refused(site, before.token)
    assert not await is_refused(site, await client_certificate(client))
    assert not await is_refused(site, await access_token(client))
    assert await access_token_text(client) != token_of(before.token)
    assert await encrypting_keys(site) == key_names(after)


async def only_the_new_ones_are_accepted(site: Site, before: Before) -> None:
    client = site.client
    assert await is_refused(site, before.certificate)
    assert await is_refused(site, before.token)
    assert not await is_refused(site, await client_certificate(client))
    assert not await is_refused(site, await access_token(client))

    left = {name_of(secret) for secret in await client.list(SECRET, "garden", labels=MANAGED)}
    for name in (*AUTHORITIES, *KEYS, *ENCRYPTION_KEYS):
        assert name_of(before.secrets[name]) not in left
    # Pods may still mount the kubeconfig before the last one, which has the new authority, too.
    assert len([name for name in left if name.startswith(KUBECONFIG)]) == 2
    after = await current_secrets(client)
    assert await encrypting_keys(site) == key_names(after)
    async with VirtualCluster(client, reach=site.reach) as access:
        virtual = await access.client()
        assert await virtual.list(SECRET, labels=KEY_NAME) == []
    server = await client.get(DEPLOYMENT, Key("garden", "virtual-garden-kube-apiserver"))
    assert not annotations_of(server).keys() & {POPULATED, LABELED}
    garden = await client.get(GARDEN, LOCAL)
    assert rotation(garden)["observability"]["lastCompletionTime"]


# The Garden


async def create_content(site: Site) -> None:
    """Create objects that the two API servers encrypt."""
    async with VirtualCluster(site.client, reach=site.reach) as access:
        virtual = await access.client()
        for obj in CONTENT:
            await virtual.create(obj)


@asynccontextmanager
async def seeds(site: Site) -> AsyncGenerator[Client]:
    """Create Seeds, and run their gardenlets but one; yield a client of the virtual cluster."""
    async with VirtualCluster(site.client, reach=site.reach) as access:
        virtual = await access.client()
        await register_provider(virtual)
        for name in SEEDS:
            await virtual.create(private_seed(name))
        async with gardenlets(virtual, absent={GONE}):
            yield virtual


async def decide_to_skip(client: Client) -> None:
    """Go on without the Seed whose gardenlet is gone, once the Garden says that it waits for it."""
    waiting = f"{len(SEEDS) - 1} of {len(SEEDS)} Seeds done, waiting for {GONE}"
    await until(client, GARDEN, LOCAL, lambda it: waiting in progress(it), patience=PATIENCE)
    await patched(client, {"metadata": {"annotations": {SKIPPED_SEEDS: GONE}}})


async def patched(client: Client, patch: JsonObject) -> None:
    """Patch the Garden once an operator lives whose webhooks admit that."""
    async with asyncio.timeout(PATIENCE):
        while True:
            try:
                await client.patch(GARDEN, LOCAL, patch)
            except ApiError as error:
                if error.code < 500:
                    raise
                await asyncio.sleep(0.5)
            else:
                return


async def all_seeds_but_one_are_renewed(virtual: Client) -> None:
    """The one that is gone still has its first operation; the others have performed them all."""
    found = {name_of(seed): annotations_of(seed) for seed in await virtual.list(SEED)}
    requests = [f"{RECORD}/{each}" for each in RENEWALS]
    assert found[GONE]["gardener.cloud/operation"] == RENEWALS[0]
    assert not found[GONE].keys() & {*requests[1:]}
    for name in {*SEEDS} - {GONE}:
        assert {*requests, f"{RECORD}/reconcile"} <= found[name].keys()


def progress(garden: JsonObject) -> str:
    return str(map_at(garden, "status", "lastOperation").get("description"))


def has_succeeded(garden: JsonObject) -> bool:
    return map_at(garden, "status", "lastOperation").get("state") == "Succeeded"


def rotation(garden: JsonObject) -> JsonObject:
    return map_at(garden, "status", "credentials", "rotation")


def phases(garden: JsonObject) -> dict[str, str]:
    return {name: each.get("phase", "") for name, each in rotation(garden).items()}


def is_prepared(garden: JsonObject) -> bool:
    """Return whether all are prepared; the key of etcd completes by itself with 1.34 and later."""
    found = phases(garden)
    return (
        all(found.get(name) == "Prepared" for name in PHASED)
        and found["etcdEncryptionKey"] == "Completed"
        and has_succeeded(garden)
    )


def is_completed(garden: JsonObject) -> bool:
    found = phases(garden)
    return all(found.get(name) == "Completed" for name in PHASED) and has_succeeded(garden)


# Credentials


async def access_token(client: Client) -> Credentials:
    return StaticToken(await access_token_text(client))


async def access_token_text(client: Client) -> str:
    headers = await (await access_config(client)).credentials.headers()
    return headers["Authorization"].removeprefix("Bearer ")


def token_of(credentials: Credentials) -> str:
    assert isinstance(credentials, StaticToken)
    return credentials._headers["Authorization"].removeprefix("Bearer ")


@asynccontextmanager
async def never_refused(site: Site) -> AsyncIterator[None]:
    """Check that a client which connects again and again is never refused meanwhile."""
    accepted, refused = 0, 0

    async def connect() -> None:
        nonlocal accepted, refused
        while True:
            try:
                config = await access_config(site.client)
                async with Client.connect(site.reach(config)) as virtual:
                    await virtual.list(NAMESPACE)
                accepted += 1
            except Unauthorized:
                refused += 1
            except KubeError:
                pass  # the only replica of a server restarts
            await asyncio.sleep(0.5)

    task = asyncio.create_task(connect())
    yield
    task.cancel()
    await asyncio.gather(task, return_exceptions=True)
    assert refused == 0
    assert accepted


# etcd


def key_names(secrets: dict[str, JsonObject]) -> set[str]:
    """Return the names of the encryption keys, as they are in etcd."""
    return {base64.b64decode(secrets[name]["data"]["key"]).decode() for name in ENCRYPTION_KEYS}


async def encrypting_keys(site: Site) -> set[str]:
    """Return the names of the keys with which anything in the main etcd is encrypted."""
    secrets = await current_secrets(site.client)
    pair = {name: base64.b64decode(each) for name, each in secrets["etcd-client"]["data"].items()}
    bundle = base64.b64decode(secrets["ca-etcd-bundle"]["data"]["bundle.crt"])
    config = ClusterConfig(
        server="https://virtual-garden-etcd-main-client.garden.svc:2379",
        ca=bundle,
        insecure=False,
        tls_server_name=None,
        proxy_url=None,
        credentials=Certificate(pair["tls.crt"], pair["tls.key"]),
        namespace="garden",
        context="etcd",
    )
    everything = base64.b64encode(b"\0").decode()
    body = orjson.dumps({"key": everything, "range_end": everything})
    transport = Transport(site.reach(config))
    try:
        answer = orjson.loads(await transport.request("POST", "/v3/kv/range", body=body))
    finally:
        await transport.close()
    found = set()
    for pair_of in answer["kvs"]:
        value = base64.b64decode(pair_of["value"])
        if value.startswith(b"k8s:enc:"):
            found.add(value.split(b":")[4].decode())
    return found
