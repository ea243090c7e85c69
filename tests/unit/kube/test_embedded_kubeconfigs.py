"""A kubeconfig from an object reads no files, runs no programs, and reaches an API server only."""

import asyncio
import base64
from collections.abc import Callable
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import SECRET
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extension_api.errors import ExtensionError
from pergola.extensions.shoot_access import shoot_config
from pergola.kube.client import Client
from pergola.kube.errors import ConfigurationError
from pergola.kube.kubeconfig import load, parse_cluster
from pergola.kube.transport import Transport
from pergola.kube.yaml import dump
from pergola.operator.gardenlet.connection import garden_address
from pergola.operator.gardenlet.names import GARDENLET
from pergola.operator.gardenlet.target import open_target
from pergola.operator.virtual_cluster import VirtualCluster

SERVER: Final = "https://api.example.org"
BAD_USERS: Final[list[JsonObject]] = [
    {"tokenFile": "/etc/passwd"},
    {"token": "t", "tokenFile": "/etc/passwd"},
    {"client-certificate": "/x", "client-key": "/y"},
    {"client-certificate-data": "eA==", "client-key": "/y"},
    {"exec": {"apiVersion": "client.authentication.k8s.io/v1", "command": "/bin/true"}},
    {"auth-provider": {"name": "oidc", "config": {"a": "b"}}},
    {"token": "t", "as": "system:admin"},
    {"token": "t", "as": "a", "as-groups": ["system:masters"]},
]
BAD_CLUSTERS: Final[list[JsonObject]] = [
    {"certificate-authority": "/etc/passwd"},
    {"proxy-url": "http://10.0.0.1"},
    {"server": "http://api.example.org"},
    {"server": "HTTP://api.example.org"},
    {"server": "https://api.example.org/internal?"},
    {"server": "https://api.example.org/?a=b"},
    {"server": "https://api.example.org/#"},
    {"server": "https://user:password@api.example.org"},
    {"server": "https://api.example.org:port"},
    {"server": "https://"},
    {"server": "unix:///run/x"},
    {"server": "https://api.example.org/\n"},
    {"insecure-skip-tls-verify": True, "certificate-authority-data": "eA=="},
]
BAD: Final[list[tuple[JsonObject, JsonObject]]] = [({}, user) for user in BAD_USERS] + [
    (cluster, {}) for cluster in BAD_CLUSTERS
]


def kubeconfig(cluster: JsonObject, user: JsonObject) -> bytes:
    content: JsonObject = {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "a",
        "contexts": [{"name": "a", "context": {"cluster": "a", "user": "a"}}],
        "clusters": [{"name": "a", "cluster": {"server": SERVER, **cluster}}],
        "users": [{"name": "a", "user": user or {"token": "hush"}}],
    }
    return dump(content).encode()


class Serving(Client):
    """A client of a cluster in which each Secret has the kubeconfig."""

    def __init__(self, content: bytes) -> None:
        self.secret: JsonObject = {"data": {"kubeconfig": base64.b64encode(content).decode()}}

    async def get(
        self, gvk: GroupVersionKind, key: Key, *, metadata_only: bool = False
    ) -> JsonObject:
        return self.secret if gvk == SECRET else {"metadata": {"uid": "own", "name": key.name}}


async def for_a_target(client: Client) -> None:
    gardenlet = {
        "apiVersion": GARDENLET.api_version,
        "kind": GARDENLET.kind,
        "metadata": {"name": "a", "namespace": "garden"},
        "spec": {"kubeconfigSecretRef": {"name": "evil"}},
    }
    async with open_target(gardenlet, client, client):
        pass


async def for_an_address(client: Client) -> None:
    await garden_address(client)


async def for_the_virtual_cluster(client: Client) -> None:
    await VirtualCluster(client).client()


async def for_a_shoot(client: Client) -> None:
    await shoot_config(client, Cluster("shoot--a", Shoot({})), environ={})


CALLERS: Final = [for_a_target, for_an_address, for_the_virtual_cluster, for_a_shoot]


@pytest.fixture(autouse=True)
def no_requests(monkeypatch: pytest.MonkeyPatch) -> None:
    async def request(*_: object, **__: object) -> bytes:
        raise AssertionError("a request was sent")

    monkeypatch.setattr(Transport, "request", request)


@pytest.mark.parametrize("caller", CALLERS)
@pytest.mark.parametrize(("cluster", "user"), BAD, ids=str)
def test_no_caller_accepts_a_kubeconfig_that_reaches_beyond_its_object(
    caller: Callable[[Client], object], cluster: JsonObject, user: JsonObject
) -> None:
    with pytest.raises((ConfigurationError, ExtensionError), match="Secret "):
        asyncio.run(caller(Serving(kubeconfig(cluster, user))))  # type: ignore[arg-type]


@pytest.mark.parametrize(
    "user",
    [{"token": "hush"}, {"username": "a", "password": "b"}],
    ids=str,
)
@pytest.mark.parametrize(
    "cluster",
    [{}, {"insecure-skip-tls-verify": True}, {"server": "https://[fd00::1]:6443/path/"}],
    ids=str,
)
def test_embedded_credentials_of_an_https_server_are_accepted(
    cluster: JsonObject, user: JsonObject
) -> None:
    config = parse_cluster(kubeconfig(cluster, user), "Secret garden/a")

    assert config.server == cluster.get("server", SERVER).rstrip("/")
    assert config.proxy_url is None


def test_the_own_kubeconfig_of_a_process_may_still_name_files(tmp_path: Path) -> None:
    (tmp_path / "token").write_text("hush")
    path = tmp_path / "kubeconfig"
    path.write_bytes(kubeconfig({}, {"tokenFile": "token"}))

    config = load(path, restricted=True)

    assert asyncio.run(config.credentials.headers()) == {"Authorization": "Bearer hush"}
