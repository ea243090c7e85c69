"""A client for the Shoot, as the extension's own ServiceAccount there (spec 40 §3.3).

The generic kubeconfig says where the API server is, a Secret of the token requestor has the token.
The kubeconfig refers to a file in which pods find their token; it is not looked at.
"""

import base64
import binascii
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.extension_api.cluster import Cluster
from pergola.extension_api.errors import ExtensionError
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.kubeconfig_file import Entry
from pergola.kube.transport import Observer, unobserved
from pergola.kube.yaml import YamlError, parse

# ruff: noqa: S105 - these are names, no secrets

ACCESS_SECRET: Final = "shoot-access-extension"
_ACCOUNT_NAMESPACE: Final = "kube-system"
_ACCOUNT_PREFIX: Final = "serviceaccount.resources.gardener.cloud"


@asynccontextmanager
async def shoot_client(
    client: Client,
    cluster: Cluster,
    *,
    secret: str = ACCESS_SECRET,
    observe: Observer = unobserved,
) -> AsyncGenerator[Client | None]:
    """A client for the Shoot while the context lasts; None if it has no API server now.

    Args:
        client: of the seed.
        secret: the Secret beside the extension resources that has the token.
        observe: told of each request, for metrics.

    Raises:
        ExtensionError: the kubeconfig or the token is not there (yet), or cannot be used.
        KubeError: the seed's API server refused, or did not answer.
    """
    config = await shoot_config(client, cluster, secret=secret)
    if config is None:
        yield None
        return
    async with Client.connect(config, observe=observe) as shoot:
        yield shoot


async def shoot_config(
    client: Client, cluster: Cluster, *, secret: str = ACCESS_SECRET
) -> ClusterConfig | None:
    """How to reach the Shoot; None if it sleeps, or the Cluster has none.

    Raises:
        ExtensionError, KubeError: see `shoot_client`.
    """
    if cluster.shoot is None or cluster.shoot.is_hibernated:
        return None
    kubeconfig = Key(cluster.name, cluster.token_kubeconfig)
    raw = await _read(
        client, kubeconfig, "kubeconfig", "the control plane of the Shoot is not complete yet"
    )
    token = await _read(
        client,
        Key(cluster.name, secret),
        "token",
        "the token requestor has not filled it yet, or the extension has not asked for access",
    )
    return _config(kubeconfig, raw, token.decode().strip())


async def request_access(
    client: Client, namespace: str, *, secret: str = ACCESS_SECRET, account: str = "extension"
) -> None:
    """Asks the token requestor for a token, if nobody did yet.

    What the ServiceAccount may do in the Shoot belongs into a ManagedResource.

    Args:
        namespace: of the extension resources.
        secret: where the token is to be put.
        account: the ServiceAccount in the Shoot's namespace `kube-system`.
    """
    key = Key(namespace, secret)
    try:
        await client.get(SECRET, key, metadata_only=True)
    except NotFound:
        with suppress(AlreadyExists):
            await client.create(access_secret(key, account))


def access_secret(key: Key, account: str) -> JsonObject:
    """The Secret that makes the token requestor create a ServiceAccount and keep its token."""
    return {
        "apiVersion": "v1",
        "kind": "Secret",
        "metadata": {
            "name": key.name,
            "namespace": key.namespace,
            "labels": {
                "resources.gardener.cloud/purpose": "token-requestor",
                "resources.gardener.cloud/class": "shoot",
            },
            "annotations": {
                f"{_ACCOUNT_PREFIX}/name": account,
                f"{_ACCOUNT_PREFIX}/namespace": _ACCOUNT_NAMESPACE,
            },
        },
        "type": "Opaque",
    }


async def _read(client: Client, key: Key, field: str, otherwise: str) -> bytes:
    try:
        secret = await client.get(SECRET, key)
    except NotFound:
        raise ExtensionError(f"Secret {key} is not there: {otherwise}") from None
    text = map_at(secret, "data").get(field)
    if not isinstance(text, str) or not text:
        raise ExtensionError(f'Secret {key} has no key "{field}": {otherwise}')
    try:
        return base64.b64decode(text)
    except binascii.Error:
        raise ExtensionError(f'Secret {key}: key "{field}" is no base64') from None


def _config(key: Key, raw: bytes, token: str) -> ClusterConfig:
    """The cluster of the kubeconfig's current context, with the token for its user."""
    where = Path(f"Secret {key}")
    try:
        parsed = parse(raw)
    except (YamlError, UnicodeDecodeError) as error:
        raise ExtensionError(f"{where}: the kubeconfig is no YAML: {error}") from None
    content: JsonObject = parsed if isinstance(parsed, dict) else {}
    current = content.get("current-context")
    context = _named(where, content, "contexts", "context", current)
    cluster = _named(where, content, "clusters", "cluster", context.values.get("cluster"))
    server, name = _reachable(cluster.text("server"), key.namespace)
    if not server:
        raise cluster.error("server", "is no URL")
    return ClusterConfig(
        server=server,
        ca=cluster.data("certificate-authority-data"),
        insecure=cluster.flag("insecure-skip-tls-verify"),
        tls_server_name=cluster.text("tls-server-name") or name,
        proxy_url=None,
        credentials=StaticToken(token),
        namespace="default",
        context=context.name,
    )


def _named(where: Path, content: JsonObject, items: str, field: str, name: object) -> Entry:
    for item in maps_at(content, items):
        if isinstance(name, str) and name and item.get("name") == name:
            return Entry(name, where, f"{items}[{name}].{field}", map_at(item, field))
    raise ExtensionError(f"{where}: the kubeconfig has no {field} {name or 'of that context'}")


def _reachable(server: str, namespace: str) -> tuple[str, str | None]:
    """The URL from any namespace of the seed, and what the server's certificate must name.

    Pods beside the control plane know its Service by its mere name; an extension runs elsewhere.
    """
    url = urlsplit(server if "://" in server else f"https://{server}")
    host = url.hostname or ""
    if not host or "." in host or ":" in host or host == "localhost":
        return (urlunsplit(url).rstrip("/") if host else ""), None
    port = f":{url.port}" if url.port else ""
    qualified = url._replace(netloc=f"{host}.{namespace}.svc{port}")
    return urlunsplit(qualified).rstrip("/"), host
