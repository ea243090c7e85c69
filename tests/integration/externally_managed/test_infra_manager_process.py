"""`pergola infra-manager` as a process, with exactly its ClusterRole."""

import asyncio
import secrets
import ssl
import sys
from base64 import b64encode
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from itertools import product
from pathlib import Path

import aiohttp
import pytest

from pergola.api.cluster_api import MANAGED_BY, SOURCE
from pergola.api.conditions import get_condition
from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at, name_of
from pergola.kube.errors import ApiError, Invalid
from pergola.kube.kubeconfig import load
from pergola.kube.yaml import dump, parse_documents
from pergola.pki import Authority
from pergola.testing.waiting import PATIENCE, until
from pergola.testing.world import RecordingClient, config_map
from tests.support.charts import INFRA_MANAGER
from tests.support.cluster_api import (
    NEW,
    cluster,
    infra_cluster,
    infra_cluster_crd,
    install,
)
from tests.support.ports import held_port
from tests.support.service_accounts import service_account_config, until_allowed

PERGOLA = Path(sys.executable).parent / "pergola"
KIND = f"{NEW.kind}.{NEW.group}"
RBAC = "rbac.authorization.k8s.io"
NETWORK: JsonObject = {
    "endpoint": {"host": "api.example.org", "port": 6443},
    "failureDomains": [{"name": "a"}],
}


@pytest.fixture
async def restricted(
    infra_client: RecordingClient, kubeconfig: Path, namespace: str, tmp_path: Path
) -> AsyncIterator[Path]:
    """Yield the kubeconfig of an identity with exactly the ClusterRoles."""
    name = f"infra-manager-{namespace}"[:63]
    roles = {name: "pergola:infra-manager", f"{name}-crds": "pergola:infra-manager:definitions"}
    for own, role in roles.items():
        await bind(infra_client, role, own, namespace, "ClusterRoleBinding")
    admin = load(kubeconfig)
    config = await service_account_config(admin, namespace)
    headers = await config.credentials.headers()
    path = tmp_path / "kubeconfig"
    path.write_text(restricted_kubeconfig(kubeconfig, headers["Authorization"]))
    async with RecordingClient.connect(config) as client:
        await until_allowed(client, NEW)
    yield path
    for own, kind in product(roles, ("ClusterRole", "ClusterRoleBinding")):
        await infra_client.delete(GroupVersionKind(RBAC, "v1", kind), Key("", own))


async def bind(
    client: RecordingClient, role: str, name: str, namespace: str, binding: str, kind: str = KIND
) -> None:
    """Bind a role of the chart, under another name, to the default account of the namespace.

    Args:
        kind: as in the values of the chart, which grant only the kinds that they name.
    """
    objects = await asyncio.to_thread(INFRA_MANAGER.rendered, {"kinds": [kind]})
    (found,) = (obj for obj in objects if (obj["kind"], name_of(obj)) == ("ClusterRole", role))
    await client.create({**found, "metadata": {"name": name}})
    metadata = {"name": name} | ({"namespace": namespace} if binding == "RoleBinding" else {})
    account = {"kind": "ServiceAccount", "name": "default", "namespace": namespace}
    await client.create(
        {
            "apiVersion": f"{RBAC}/v1",
            "kind": binding,
            "metadata": metadata,
            "roleRef": {"apiGroup": RBAC, "kind": "ClusterRole", "name": name},
            "subjects": [account],
        }
    )


def restricted_kubeconfig(admin: Path, authorization: str) -> str:
    """Return the same cluster, with another token."""
    (document,) = parse_documents(admin.read_bytes())
    config = document.value
    assert isinstance(config, dict)
    users = config["users"]
    assert isinstance(users, list)
    name = users[0]["name"]  # type: ignore[index,call-overload] # as the sandbox writes it
    config["users"] = [{"name": name, "user": {"token": authorization.removeprefix("Bearer ")}}]
    return dump(config)


@asynccontextmanager
async def running(kubeconfig: Path, *arguments: str) -> AsyncIterator[asyncio.subprocess.Process]:
    process = await asyncio.create_subprocess_exec(
        PERGOLA,
        "infra-manager",
        "--kubeconfig",
        kubeconfig,
        "--bind",
        "127.0.0.1",
        "--health-port",
        "0",
        "--metrics-port",
        "0",
        *arguments,
        stdout=asyncio.subprocess.PIPE,
        stderr=asyncio.subprocess.STDOUT,
    )
    try:
        yield process
    finally:
        if process.returncode is None:
            process.kill()
        await process.wait()


async def health_port(process: asyncio.subprocess.Process) -> int:
    """Return the port of the probes, from the log."""
    assert process.stdout is not None
    async with asyncio.timeout(PATIENCE):
        async for line in process.stdout:
            if b'"health_port":' in line:
                return int(line.split(b'"health_port":')[1].split(b",")[0])
    raise AssertionError("it ended without a word")


async def until_ready(port: int) -> None:
    """Wait until the process reports that it is ready."""
    async with asyncio.timeout(PATIENCE), aiohttp.ClientSession() as session:
        while True:
            async with session.get(f"http://127.0.0.1:{port}/readyz") as answer:
                if answer.status == 200:
                    return


async def test_the_process_fills_objects_answers_probes_and_ends_gracefully(
    restricted: Path, infra_client: RecordingClient, namespace: str
) -> None:
    described = config_map("net", namespace)
    await infra_client.create({**described, "data": {"network.yaml": dump(NETWORK)}})
    annotations = {MANAGED_BY: "pergola", SOURCE: "configmap/net"}
    await infra_client.create(infra_cluster(NEW, "demo", namespace, annotations))
    await infra_client.create(cluster("demo", namespace, NEW))
    async with running(restricted, "--kind", KIND, "-n", namespace) as process:
        port = await health_port(process)
        await until(infra_client, NEW, Key(namespace, "demo"), is_complete)
        await until_ready(port)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0


@pytest.mark.parametrize(
    ("arguments", "sentence"),
    [
        (("--kind", "Nothing"), '"Nothing" is not a kind with its group'),
        (("--kind", "FooCluster.example.org"), "fooclusters.example.org does not exist"),
    ],
)
async def test_a_mistake_is_reported_in_one_sentence(
    kubeconfig: Path, arguments: tuple[str, ...], sentence: str
) -> None:
    async with running(kubeconfig, *arguments) as process:
        output, _ = await process.communicate()
    said = output.decode().splitlines()[-1]
    assert process.returncode == 1
    assert said.startswith("pergola: ")
    assert sentence in said


async def test_secrets_are_read_only_where_a_role_allows_it(
    restricted: Path, infra_client: RecordingClient, namespace: str
) -> None:
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {"name": "net", "namespace": namespace},
        "stringData": {"network.yaml": dump(NETWORK)},
    }
    await infra_client.create(secret)
    annotations = {MANAGED_BY: "pergola", SOURCE: "secret/net"}
    await infra_client.create(infra_cluster(NEW, "demo", namespace, annotations))
    await infra_client.create(cluster("demo", namespace, NEW))
    name = f"infra-manager-secrets-{namespace}"[:63]
    async with running(restricted, "--kind", KIND, "-n", namespace) as process:
        await health_port(process)
        key = Key(namespace, "demo")
        obj = await until(infra_client, NEW, key, lambda obj: reason(obj) == "SourceForbidden")
        condition = get_condition(maps_at(obj, "status", "conditions"), "Ready") or {}
        assert f"with a Role in namespace {namespace}" in condition["message"]
        await bind(infra_client, "pergola:infra-manager:secrets", name, namespace, "RoleBinding")
        await until(infra_client, NEW, key, is_complete)
    await infra_client.delete(GroupVersionKind(RBAC, "v1", "ClusterRole"), Key("", name))


@pytest.mark.soak("chaos")
async def test_a_kind_without_a_crd_starts_later_and_does_not_stop_the_others(
    restricted: Path, infra_client: RecordingClient, namespace: str
) -> None:
    suffix = secrets.token_hex(3)
    late = GroupVersionKind(NEW.group, "v1beta2", f"Late{suffix}Cluster")
    described = config_map("net", namespace)
    await infra_client.create({**described, "data": {"network.yaml": dump(NETWORK)}})
    annotations = {MANAGED_BY: "pergola", SOURCE: "configmap/net"}
    await infra_client.create(infra_cluster(NEW, "early", namespace, annotations))
    await infra_client.create(cluster("early", namespace, NEW))
    kind, role = f"{late.kind}.{late.group}", f"late-{suffix}"
    await bind(infra_client, "pergola:infra-manager", role, namespace, "ClusterRoleBinding", kind)
    kinds = ("--kind", kind, "--kind", KIND)
    async with running(restricted, *kinds, "-n", namespace) as process:
        await health_port(process)
        await until(infra_client, NEW, Key(namespace, "early"), is_complete)
        await install(infra_client, infra_cluster_crd(late))
        await infra_client.create(infra_cluster(late, "late", namespace, annotations))
        await infra_client.create(cluster("late", namespace, late))
        await until(infra_client, late, Key(namespace, "late"), is_complete)
        process.terminate()
        assert await asyncio.wait_for(process.wait(), PATIENCE) == 0
    crd = Key("", f"{late.kind.lower()}s.{late.group}")
    await infra_client.delete(CRD, crd)
    for rbac in ("ClusterRole", "ClusterRoleBinding"):
        await infra_client.delete(GroupVersionKind(RBAC, "v1", rbac), Key("", role))


def is_complete(obj: JsonObject) -> bool:
    return reason(obj) == "NetworkReady"


def reason(obj: JsonObject) -> str:
    condition = get_condition(maps_at(obj, "status", "conditions"), "Ready") or {}
    return str(condition.get("reason"))


@pytest.fixture
def port() -> Iterator[int]:
    with held_port() as port:
        yield port


@pytest.mark.timeout(600)  # Helm may have to be built
async def test_the_process_serves_the_webhook_that_protects_the_annotation(
    kubeconfig: Path,
    infra_client: RecordingClient,
    namespace: str,
    tmp_path: Path,
    port: int,
) -> None:
    now = datetime.now(UTC)
    authority = Authority.create("infra-manager", now, timedelta(days=1))
    pair = authority.issue_server("infra-manager", ["127.0.0.1"], now, timedelta(days=1))
    (tmp_path / "tls.crt").write_bytes(pair.public)
    (tmp_path / "tls.key").write_bytes(pair.private)
    values: JsonObject = {
        "kinds": [KIND],
        "webhook": {"enabled": True, "certificateSecret": "tls"},
    }
    objects = await asyncio.to_thread(INFRA_MANAGER.rendered, values)
    [registration] = [obj for obj in objects if obj["kind"] == WEBHOOKS.kind]
    (entry,) = maps_at(registration, "webhooks")
    url = f"https://127.0.0.1:{port}{entry['clientConfig']['service']['path']}"
    trusted = b64encode(authority.pair.public).decode()
    entry["clientConfig"] = {"url": url, "caBundle": trusted}
    entry["namespaceSelector"] = {"matchLabels": {"kubernetes.io/metadata.name": namespace}}
    key = Key("", f"infra-manager-{namespace}"[:63])
    await infra_client.create(infra_cluster(NEW, "demo", namespace, {MANAGED_BY: "terraform"}))
    flags = ("--webhook-port", str(port), "--webhook-cert-dir", str(tmp_path))
    async with running(kubeconfig, "--kind", KIND, "-n", namespace, *flags) as process:
        await until_ready(await health_port(process))
        await infra_client.create({**registration, "metadata": {"name": key.name}})
        try:
            removal: JsonObject = {"metadata": {"annotations": {MANAGED_BY: None}}}
            demo = Key(namespace, "demo")
            with pytest.raises(Invalid, match="removal of externally managed annotation"):
                await until_refused(infra_client, demo, removal)
            process.terminate()
            await process.wait()
            # Nothing else depends on the process.
            await infra_client.patch(NEW, demo, {"metadata": {"annotations": {"a": "b"}}})
            with pytest.raises(ApiError, match="failed calling webhook"):
                await infra_client.patch(NEW, demo, removal)
        finally:
            await infra_client.delete(WEBHOOKS, key)


async def test_with_a_client_ca_the_webhook_answers_only_clients_of_this_authority(
    kubeconfig: Path, infra_client: RecordingClient, namespace: str, tmp_path: Path, port: int
) -> None:
    now, day = datetime.now(UTC), timedelta(days=1)
    servers, clients = (Authority.create(name, now, day) for name in ("servers", "clients"))
    pair = servers.issue_server("infra-manager", ["127.0.0.1"], now, day)
    (tmp_path / "tls.crt").write_bytes(pair.public)
    (tmp_path / "tls.key").write_bytes(pair.private)
    (tmp_path / "clients.crt").write_bytes(clients.pair.public)
    flags = (
        *("--webhook-port", str(port), "--webhook-cert-dir", str(tmp_path)),
        *("--webhook-client-ca-file", str(tmp_path / "clients.crt")),
    )
    async with running(kubeconfig, "--kind", KIND, "-n", namespace, *flags) as process:
        await until_ready(await health_port(process))
        assert await status_of(port, tmp_path, clients) == 404  # the path is not a webhook's
        for stranger in (None, servers):
            with pytest.raises(aiohttp.ClientError):
                await status_of(port, tmp_path, stranger)


async def status_of(port: int, folder: Path, authority: Authority | None) -> int:
    """Return the status of an answer to a client with a certificate of an authority, if any."""
    context = ssl.SSLContext(ssl.PROTOCOL_TLS_CLIENT)
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    if authority:
        pair = authority.issue_client("client", (), datetime.now(UTC), timedelta(hours=1))
        (folder / "client.crt").write_bytes(pair.public)
        (folder / "client.key").write_bytes(pair.private)
        context.load_cert_chain(folder / "client.crt", folder / "client.key")
    async with (
        aiohttp.ClientSession() as session,
        session.post(f"https://127.0.0.1:{port}/nothing", data=b"{}", ssl=context) as answer,
    ):
        return answer.status


WEBHOOKS = GroupVersionKind("admissionregistration.k8s.io", "v1", "ValidatingWebhookConfiguration")


async def until_refused(client: RecordingClient, key: Key, removal: JsonObject) -> None:
    """Remove the annotation until the webhook refuses that, restoring it in between."""
    async with asyncio.timeout(PATIENCE):
        while True:
            await client.patch(NEW, key, {"metadata": {"annotations": {MANAGED_BY: "terraform"}}})
            await client.patch(NEW, key, removal)
