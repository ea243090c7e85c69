"""A second control plane that plays the virtual cluster, with tokens and authorities to renew."""

import asyncio
import base64
import secrets
from collections.abc import AsyncIterator, Iterator
from datetime import UTC, datetime
from typing import Final, NamedTuple

import pytest

from pergola.api.kinds import CLUSTER_ROLE_BINDING, SECRET, SERVICE_ACCOUNT
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at, uid_of
from pergola.garden.components.gardener_access import EXTERNAL, INTERNAL
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.kube.yaml import dump, parse
from pergola.manifests.shoot_access import requests_token
from pergola.pki import Authority, Token, kubeconfig
from pergola.sandbox import API_ONLY, Sandbox
from pergola.sandbox.directory import write
from pergola.sandbox.files import LIFETIME
from pergola.testing.shared import private

ROBOT: Final = Key("default", "robot")
"""The ServiceAccount whose tokens the operator gets."""

_TEN_MINUTES: Final = 600
_HOSTS: Final = ("127.0.0.1", "localhost")


class Issued(NamedTuple):
    """A token of ten minutes, which can be revoked before."""

    token: str
    bound_to: Key


class VirtualSite:
    """The virtual cluster, and the Secrets with its kubeconfigs in the runtime cluster.

    Args:
        runtime: The administrator of the runtime cluster.
        client: The administrator of the virtual one.

    Attributes:
        trusted: The authorities that the next kubeconfigs have.
    """

    def __init__(self, runtime: Client, client: Client, sandbox: Sandbox) -> None:
        self.runtime = runtime
        self.client = client
        self._sandbox = sandbox
        self.trusted = self.config.ca or b""

    @property
    def config(self) -> ClusterConfig:
        """The administrator's access to the virtual cluster."""
        return load(self._sandbox.kubeconfig)

    async def issue(self) -> Issued:
        """Return a new token of ten minutes: the shortest that an API server issues."""
        bound = Key(ROBOT.namespace, f"token-{secrets.token_hex(4)}")
        secret = await self.client.create(_manifest(SECRET, bound))
        reference = {
            "apiVersion": "v1",
            "kind": "Secret",
            "name": bound.name,
            "uid": uid_of(secret),
        }
        request: JsonObject = {
            "apiVersion": "authentication.k8s.io/v1",
            "kind": "TokenRequest",
            "spec": {"expirationSeconds": _TEN_MINUTES, "boundObjectRef": reference},
        }
        answer = await self.client.create_subresource(SERVICE_ACCOUNT, ROBOT, "token", request)
        return Issued(str(answer["status"]["token"]), bound)

    async def revoke(self, issued: Issued) -> None:
        """End the life of a token, as its expiry would."""
        await self.client.delete(SECRET, issued.bound_to)

    def kubeconfig(self, token: str) -> JsonObject:
        """Return a kubeconfig with a token and the authorities that are trusted now."""
        return kubeconfig("garden", self.config.server, self.trusted, Token(token))

    async def publish(self, content: JsonObject | bytes, name: str = INTERNAL) -> None:
        """Write a kubeconfig into the Secret where the operator looks for it."""
        text = content if isinstance(content, bytes) else dump(content).encode()
        key = Key("garden", name)
        secret = {
            **_manifest(SECRET, key, labels=requests_token()),
            "data": {"kubeconfig": base64.b64encode(text).decode()},
        }
        try:
            await self.runtime.create(secret)
        except AlreadyExists:
            await self.runtime.patch(SECRET, key, {"data": secret["data"]})

    async def withdraw(self) -> None:
        """Delete the Secrets with the kubeconfigs."""
        for name in (INTERNAL, EXTERNAL):
            try:
                await self.runtime.delete(SECRET, Key("garden", name))
            except NotFound:
                continue

    async def serve_with(self, authority: Authority) -> None:
        """Restart the API server with a certificate of another authority.

        The administrator trusts both from then on.
        """
        serving = authority.issue_server("kube-apiserver", _HOSTS, datetime.now(UTC), LIFETIME)
        await asyncio.to_thread(self._write, serving.public, serving.private, authority)
        await self.client.trust(self.config.ca)
        await self._sandbox.restart_apiserver()

    def _write(self, certificate: bytes, key: bytes, authority: Authority) -> None:
        directory, path = self._sandbox.directory, self._sandbox.kubeconfig
        found = parse(path.read_text())
        assert isinstance(found, dict)
        both = (self.config.ca or b"") + authority.pair.public
        for each in maps_at(found, "clusters"):
            each["cluster"]["certificate-authority-data"] = base64.b64encode(both).decode()
        write(path, dump(found))
        write(directory / "apiserver.crt", certificate)
        write(directory / "apiserver.key", key)


@pytest.fixture(scope="module")
def virtual_sandbox() -> Iterator[Sandbox]:
    """Etcd and an API server of their own, with an administrator `robot`."""
    with private(API_ONLY, prepare=_prepare) as own:
        yield own


@pytest.fixture
async def virtual_site(runtime: Client, virtual_sandbox: Sandbox) -> AsyncIterator[VirtualSite]:
    """The virtual cluster beside the runtime cluster, which has no kubeconfig of it yet."""
    async with Client.connect(load(virtual_sandbox.kubeconfig)) as client:
        site = VirtualSite(runtime, client, virtual_sandbox)
        yield site
        await site.withdraw()


async def _prepare(client: Client) -> None:
    binding: JsonObject = {
        **_manifest(CLUSTER_ROLE_BINDING, Key("", ROBOT.name)),
        "roleRef": {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [{"kind": "ServiceAccount", **ROBOT._asdict()}],
    }
    await client.create(_manifest(SERVICE_ACCOUNT, ROBOT))
    await client.create(binding)


def _manifest(gvk: GroupVersionKind, key: Key, **metadata: object) -> JsonObject:
    named = {"namespace": key.namespace, "name": key.name, **metadata}
    return {"apiVersion": gvk.api_version, "kind": gvk.kind, "metadata": named}
