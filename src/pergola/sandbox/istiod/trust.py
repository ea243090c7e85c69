"""The authority of istiod: a Secret that replicas share, and a ConfigMap in every namespace."""

import os
import ssl
from base64 import b64decode
from datetime import datetime, timedelta
from typing import Final

from pergola.api.kinds import CONFIG_MAP, NAMESPACE, SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists, NotFound
from pergola.pki import Authority, Pair
from pergola.runtime.caching.cache import Cache, Change
from pergola.runtime.controlling.controller import DONE, Outcome
from pergola.runtime.controlling.unit import Controller, Unit
from pergola.runtime.controlling.watches import Watch
from pergola.runtime.metrics import Metrics

_SECRET: Final = "istio-ca-secret"  # noqa: S105 - a name
_CONFIG_MAP: Final = "istio-ca-root-cert"
_ENTRY: Final = "root-cert.pem"
_AUTHORITY_LIFETIME: Final = timedelta(days=3650)
_SERVER_LIFETIME: Final = timedelta(days=365)


async def apply_authority(client: Client, namespace: str, now: datetime) -> Authority:
    """Return the authority of all replicas, creating its Secret if it does not exist."""
    key = Key(namespace, _SECRET)
    try:
        return _read(await client.get(SECRET, key))
    except NotFound:
        pair = Authority.create("cluster.local", now, _AUTHORITY_LIFETIME).pair
    secret: JsonObject = {
        "apiVersion": "v1",
        "kind": "Secret",
        "type": "istio.io/ca-root",
        "metadata": {"name": key.name, "namespace": key.namespace},
        "stringData": {"ca-cert.pem": pair.public.decode(), "ca-key.pem": pair.private.decode()},
    }
    try:
        return _read(await client.create(secret))
    except AlreadyExists:  # another replica was faster
        return _read(await client.get(SECRET, key))


def server_context(authority: Authority, namespace: str, now: datetime) -> ssl.SSLContext:
    """Return the TLS settings of a server that is named like istiod's Service."""
    name = f"istiod.{namespace}.svc"
    pair = authority.issue_server(name, (name, f"{name}.cluster.local"), now, _SERVER_LIFETIME)
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    # ssl reads files only, and the container's file system may be read-only.
    with os.fdopen(os.memfd_create("istiod"), "wb") as file:
        file.write(pair.public + pair.private)
        file.flush()
        context.load_cert_chain(f"/proc/self/fd/{file.fileno()}")
    return context


class RootCertificates:
    """A controller that keeps the authority's certificate in every namespace."""

    def __init__(self, client: Client, authority: Authority) -> None:
        self._client = client
        self._data = {_ENTRY: authority.pair.public.decode()}
        self._namespaces: Cache[str] = Cache(client, NAMESPACE, keep=_phase)
        self._config_maps: Cache[JsonObject] = Cache(
            client, CONFIG_MAP, keep=lambda obj: obj, fields=f"metadata.name={_CONFIG_MAP}"
        )

    def unit(self) -> Unit:
        """Return the controller with its triggers."""
        namespaces: Watch[Change[str], str] = Watch(
            self._namespaces, to=lambda change: (change.key.name,)
        )
        config_maps: Watch[Change[JsonObject], str] = Watch(
            self._config_maps, to=lambda change: (change.key.namespace,)
        )
        return Controller(
            "root-certificates",
            self._reconcile,
            watches=[namespaces, config_maps],
            metrics=Metrics(),
            workers=2,
        )

    async def _reconcile(self, namespace: str) -> Outcome:
        if self._namespaces.get(Key("", namespace)) != "Active":
            return DONE
        current = self._config_maps.get(Key(namespace, _CONFIG_MAP))
        if current is None:
            await self._client.create(
                {
                    "apiVersion": "v1",
                    "kind": "ConfigMap",
                    "metadata": {"name": _CONFIG_MAP, "namespace": namespace},
                    "data": self._data,
                }
            )
        elif current.get("data") != self._data:
            await self._client.update({**current, "data": self._data})
        return DONE


def _phase(namespace: JsonObject) -> str:
    return str(map_at(namespace, "status").get("phase", ""))


def _read(secret: JsonObject) -> Authority:
    data = map_at(secret, "data")
    return Authority(Pair(b64decode(data["ca-cert.pem"]), b64decode(data["ca-key.pem"])))
