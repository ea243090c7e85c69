"""`pergola garden kubeconfig` with Secrets as the operator applies them: spec 20 §15.5.

The runtime cluster is its own virtual cluster here: the kubeconfigs lead back to it.
"""

import asyncio
import base64
import os
import sys
from collections.abc import AsyncIterator
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any

import orjson
import pytest

from pergola.api.kinds import NAMESPACE, SECRET, SERVICE_ACCOUNT
from pergola.api.objects import JsonObject, Key, name_of
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.garden.components.gardener_access import EXTERNAL, GARDENER_ACCESS, INTERNAL
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse
from pergola.sandbox import Sandbox
from tests.support.garden import landscape
from tests.support.gardens import MINIMAL
from tests.support.service_accounts import until_allowed

PERGOLA = Path(sys.executable).parent / "pergola"
ACCOUNT = Key("kube-system", EXTERNAL)
HOURS = 12


@dataclass
class Answer:
    """The output and the exit code of the command."""

    code: int
    out: str
    err: str


class Access:
    """A runtime cluster with the Secrets of the operator, and the command."""

    def __init__(self, client: Client, sandbox: Sandbox, folder: Path) -> None:
        self.client = client
        self.runtime = sandbox.kubeconfig
        self.file = folder / "virtual.yaml"
        document: Any = parse(sandbox.kubeconfig.read_bytes())
        (self._here,) = document["clusters"]

    async def account(self) -> str:
        """Create the account and its permissions, and return a token for it."""
        account = {
            "apiVersion": "v1",
            "kind": "ServiceAccount",
            "metadata": {"name": ACCOUNT.name, "namespace": ACCOUNT.namespace},
        }
        (managed,) = GARDENER_ACCESS.objects(landscape()).managed
        for obj in (account, *managed.objects):
            await self.client.apply(obj, manager="test", force=True)
        request = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": HOURS * 3600},
        }
        answer = await self.client.create_subresource(SERVICE_ACCOUNT, ACCOUNT, "token", request)
        token = str(answer["status"]["token"])
        config = replace(load(self.runtime), credentials=StaticToken(token))
        async with Client.connect(config) as permitted:
            await until_allowed(permitted, NAMESPACE)
        return token

    async def apply(self, token: str) -> None:
        """Apply the Secrets with a token, as the resource manager leaves them."""
        tokens = {EXTERNAL: token, INTERNAL: token}
        for secret in GARDENER_ACCESS.objects(landscape(access_tokens=tokens)).direct:
            await self.client.apply(self._leading_here(secret), manager="test", force=True)

    async def run(self, *arguments: str, **environ: str) -> Answer:
        process = await asyncio.create_subprocess_exec(
            PERGOLA,
            *("garden", *arguments),
            stdout=asyncio.subprocess.PIPE,
            stderr=asyncio.subprocess.PIPE,
            env={**os.environ, "KUBECONFIG": str(self.runtime), **environ},
        )
        out, err = await process.communicate()
        return Answer(process.returncode or 0, out.decode(), err.decode())

    async def namespaces(self, kubeconfig: str) -> set[str]:
        """Return the namespaces that a client with a kubeconfig lists."""
        self.file.write_text(kubeconfig)
        async with Client.connect(load(self.file)) as client:
            return {name_of(each) for each in await client.list(NAMESPACE)}

    def _leading_here(self, secret: JsonObject) -> JsonObject:
        """Return a Secret whose kubeconfig has the address of the sandbox for each cluster."""
        document: Any = parse(base64.b64decode(secret["data"]["kubeconfig"]))
        (context,) = document["contexts"]
        name = context["context"]["cluster"]
        clusters: list[Any] = [{"name": name, "cluster": self._here["cluster"]}]
        content = dump({**document, "clusters": clusters}).encode()
        return {**secret, "data": {"kubeconfig": base64.b64encode(content).decode()}}


@pytest.fixture
async def access(runtime: Client, garden_sandbox: Sandbox, tmp_path: Path) -> AsyncIterator[Access]:
    found = Access(runtime, garden_sandbox, tmp_path)
    yield found
    for secret in await runtime.list(SECRET, "garden"):
        await runtime.delete(SECRET, Key.of(secret))


def jwt(expires: datetime) -> str:
    parts = [{"alg": "none"}, {"exp": int(expires.timestamp())}, {}]
    return ".".join(base64.urlsafe_b64encode(orjson.dumps(each)).decode() for each in parts)


async def test_the_kubeconfig_works_and_its_expiry_is_reported(access: Access) -> None:
    await access.apply(await access.account())

    answer = await access.run("kubeconfig")

    assert answer.code == 0
    assert "garden" in await access.namespaces(answer.out)
    assert answer.err.startswith("the token is valid until 20")


async def test_a_kubeconfig_with_a_plugin_has_no_token_and_works(
    access: Access, monkeypatch: pytest.MonkeyPatch
) -> None:
    token = await access.account()
    await access.apply(token)

    answer = await access.run("kubeconfig", "--exec")

    assert token not in answer.out
    assert answer.err == ""
    # As with kubectl: KUBECONFIG names the virtual cluster when the plugin runs.
    monkeypatch.setenv("KUBECONFIG", str(access.file))
    assert "garden" in await access.namespaces(answer.out)


@pytest.mark.soak("commands")
async def test_the_plugin_prints_a_credential_with_the_expiry_of_the_token(access: Access) -> None:
    token = await access.account()
    await access.apply(token)

    credential = orjson.loads((await access.run("token")).out)

    assert credential["apiVersion"] == "client.authentication.k8s.io/v1"
    assert credential["kind"] == "ExecCredential"
    assert credential["status"]["token"] == token
    left = datetime.fromisoformat(credential["status"]["expirationTimestamp"]) - datetime.now(UTC)
    assert timedelta(hours=HOURS - 1) < left <= timedelta(hours=HOURS)


@pytest.mark.soak("commands")
async def test_clients_in_the_runtime_cluster_get_the_internal_secret(access: Access) -> None:
    await access.apply(await access.account())
    await access.client.delete(SECRET, Key("garden", EXTERNAL))

    assert (await access.run("kubeconfig", "--internal")).code == 0
    plugin = await access.run("kubeconfig", "--internal", "--exec")
    assert "garden" in await access.namespaces(plugin.out)


async def test_a_cluster_without_a_garden_is_reported(access: Access) -> None:
    answer = await access.run("kubeconfig")

    assert answer.code == 1
    assert answer.err.startswith('pergola: the cluster of context "')
    assert "has no Garden; name the runtime cluster" in answer.err
    assert answer.err.count("\n") == 1


@pytest.mark.soak("commands")
async def test_the_progress_of_an_unready_garden_is_reported(access: Access) -> None:
    await access.client.create(MINIMAL)
    last = {
        "type": "Reconcile",
        "state": "Processing",
        "progress": 45,
        "description": "Waiting for etcds",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    status = {"status": {"lastOperation": last}}
    await access.client.patch(GARDEN, Key("", "minimal"), status, subresource="status")

    before = await access.run("kubeconfig")
    await access.apply("")
    after = await access.run("token")

    progress = "(Reconcile is Processing at 45 %: Waiting for etcds)"
    not_ready = "pergola: Garden minimal is not ready yet: Secret garden/gardener"
    assert before.err == f"{not_ready} does not exist {progress}\n"
    assert after.err == f"{not_ready} has no token yet {progress}\n"


@pytest.mark.soak("commands")
async def test_the_command_does_not_wait_for_a_garden_under_deletion(access: Access) -> None:
    held = {**MINIMAL, "metadata": {"name": "minimal", "finalizers": ["example.org/test"]}}
    await access.client.create(held)
    await access.client.delete(GARDEN, Key("", "minimal"))

    answer = await access.run("kubeconfig")

    patch: JsonObject = {"metadata": {"finalizers": None}}
    await access.client.patch(GARDEN, Key("", "minimal"), patch)
    assert answer.err.startswith("pergola: Garden minimal is being deleted: ")


@pytest.mark.soak("commands")
async def test_an_expired_token_is_not_returned(access: Access) -> None:
    await access.apply(jwt(datetime(2026, 1, 1, tzinfo=UTC)))

    answer = await access.run("kubeconfig")

    assert (answer.code, answer.out) == (1, "")
    assert "expired at 2026-01-01 00:00 UTC" in answer.err
    assert "virtual-garden-gardener-resource-manager runs" in answer.err


@pytest.mark.soak("commands")
async def test_a_secret_without_a_kubeconfig_is_named(access: Access) -> None:
    metadata = {"name": EXTERNAL, "namespace": "garden"}
    secret: JsonObject = {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}
    broken = {"data": {"kubeconfig": base64.b64encode(b"- a").decode()}}
    await access.client.create({**secret, **broken})

    answer = await access.run("kubeconfig")

    expected = "Secret garden/gardener: data.kubeconfig is not a kubeconfig: it must be a map"
    assert answer.err == f"pergola: {expected}\n"
