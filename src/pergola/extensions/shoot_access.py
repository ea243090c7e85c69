"""A client for the Shoot of an extension resource (spec 40 §3.3).

Gardener keeps a kubeconfig of the Shoot next to the extension resources: `gardener-internal`
reaches the API server without leaving the seed, `gardener` by its public name. For least privilege,
an extension requests its own account, and names the Secret with its token.
"""

import base64
import binascii
import os
from collections.abc import AsyncGenerator, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from pathlib import Path
from typing import Final
from urllib.parse import urlsplit, urlunsplit

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.extension_api.cluster import Cluster
from pergola.extension_api.errors import ExtensionError
from pergola.kube.client import Client
from pergola.kube.credentials import Credentials, StaticToken
from pergola.kube.errors import AlreadyExists, ConfigurationError, NotFound
from pergola.kube.kubeconfig import ClusterConfig, embedded_config
from pergola.kube.kubeconfig_embedded import embedded_credentials, embedded_server
from pergola.kube.kubeconfig_file import parse_kubeconfig
from pergola.kube.transport import Observer, unobserved
from pergola.manifests import manifest
from pergola.manifests.shoot_access import requests_token, token_of

INTERNAL: Final = "gardener-internal"
EXTERNAL: Final = "gardener"
WHICH: Final = "GARDENER_SHOOT_CLIENT"
"""The environment variable that, if set to `external`, allows only `gardener`."""

_INCOMPLETE: Final = "the control plane of the Shoot is not complete yet"


@asynccontextmanager
async def shoot_client(
    client: Client,
    cluster: Cluster,
    *,
    token_secret: str = "",
    observe: Observer = unobserved,
) -> AsyncGenerator[Client | None]:
    """Connect to the Shoot for the duration of the context; yield None if it has no API server now.

    Args:
        client: of the seed.
        token_secret: the Secret with the token of the extension's own account, see
            `request_access`; without it, Gardener's kubeconfig is used.
        observe: receives each request, for metrics.

    Raises:
        ExtensionError: a Secret is missing (yet), or unusable.
        KubeError: the seed's API server refused, or did not answer.
    """
    config = await shoot_config(client, cluster, token_secret=token_secret)
    if config is None:
        yield None
        return
    async with Client.connect(config, observe=observe) as shoot:
        yield shoot


async def shoot_config(
    client: Client,
    cluster: Cluster,
    *,
    token_secret: str = "",
    environ: Mapping[str, str] = os.environ,
) -> ClusterConfig | None:
    """Return the configuration for the Shoot; None if it is hibernated, or missing in the Cluster.

    Raises:
        ExtensionError, KubeError: see `shoot_client`.
    """
    if cluster.shoot is None or cluster.shoot.is_hibernated:
        return None
    if token_secret:
        return await _with_own_token(client, cluster, token_secret)
    names = [EXTERNAL] if environ.get(WHICH) == "external" else [INTERNAL, EXTERNAL]
    for name in names:
        key = Key(cluster.name, name)
        with suppress(NotFound):
            secret = await client.get(SECRET, key)
            return _config(key, _field(secret, key, "kubeconfig", _INCOMPLETE))
    missing = " or ".join(f"Secret {cluster.name}/{name}" for name in names)
    raise ExtensionError(f"there is no {missing}: {_INCOMPLETE}")


async def request_access(
    client: Client, namespace: str, *, token_secret: str, account: str = "extension"
) -> None:
    """Create the Secret that requests a token, unless it exists.

    The permissions of the ServiceAccount in the Shoot belong in a ManagedResource.

    Args:
        namespace: of the extension resources.
        token_secret: the Secret that the token requestor fills.
        account: the ServiceAccount in the Shoot's namespace `kube-system`.
    """
    key = Key(namespace, token_secret)
    try:
        await client.get(SECRET, key, metadata_only=True)
    except NotFound:
        with suppress(AlreadyExists):
            await client.create(
                manifest(
                    "v1",
                    "Secret",
                    key.name,
                    namespace=key.namespace,
                    labels=requests_token(),
                    annotations=token_of(account),
                    type="Opaque",
                )
            )


async def _with_own_token(client: Client, cluster: Cluster, token_secret: str) -> ClusterConfig:
    """Return the configuration with its own token: the generic kubeconfig names a file for pods."""
    generic, own = Key(cluster.name, cluster.token_kubeconfig), Key(cluster.name, token_secret)
    not_filled = "the token requestor has not filled it yet, or access was not requested"
    kubeconfig = await _read(client, generic, "kubeconfig", _INCOMPLETE)
    token = await _read(client, own, "token", not_filled)
    return _config(generic, kubeconfig, StaticToken(token.decode().strip()))


async def _read(client: Client, key: Key, field: str, otherwise: str) -> bytes:
    try:
        secret = await client.get(SECRET, key)
    except NotFound:
        raise ExtensionError(f"Secret {key} is missing: {otherwise}") from None
    return _field(secret, key, field, otherwise)


def _field(secret: JsonObject, key: Key, field: str, otherwise: str) -> bytes:
    text = map_at(secret, "data").get(field)
    if not isinstance(text, str) or not text:
        raise ExtensionError(f'Secret {key} has no key "{field}": {otherwise}')
    try:
        return base64.b64decode(text)
    except binascii.Error:
        raise ExtensionError(f'Secret {key}: key "{field}" is not valid base64') from None


def _config(key: Key, text: bytes, token: Credentials | None = None) -> ClusterConfig:
    """Return the cluster of the kubeconfig's current context, with its user or a token."""
    try:
        kubeconfig = parse_kubeconfig([(Path(f"Secret {key}"), text)])
        context = kubeconfig.context()
        cluster = kubeconfig.cluster(context)
        server, name = _reachable(embedded_server(cluster), key.namespace)
        credentials = token or embedded_credentials(kubeconfig.user(context), cluster)
        config = embedded_config(context, cluster, server=server, credentials=credentials)
        return replace(config, tls_server_name=config.tls_server_name or name)
    except ConfigurationError as error:
        raise ExtensionError(str(error)) from None


def _reachable(server: str, namespace: str) -> tuple[str, str | None]:
    """Return a URL that works in any namespace of the seed, and the host name in its certificate.

    Pods in the same namespace resolve the Service by its short name, but an extension runs
    elsewhere.
    """
    url = urlsplit(server)
    host = url.hostname or ""
    if "." in host or ":" in host or host == "localhost":
        return server, None
    port = f":{url.port}" if url.port else ""
    qualified = url._replace(netloc=f"{host}.{namespace}.svc{port}")
    return urlunsplit(qualified).rstrip("/"), host
