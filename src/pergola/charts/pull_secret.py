"""Credentials for a registry, from a Secret of type `kubernetes.io/dockerconfigjson`."""

import base64
from dataclasses import dataclass, field
from typing import Final

import orjson

from pergola.api.objects import JsonObject, Key, map_at
from pergola.charts.errors import PullSecretInvalid
from pergola.charts.reference import ChartReference

CONFIG_KEY: Final = ".dockerconfigjson"
_DOCKER_HUB: Final = ("docker.io", "index.docker.io", "registry-1.docker.io")


@dataclass(frozen=True, slots=True)
class Credentials:
    """A user name and password, or a token, for one registry; its repr omits the secret parts."""

    username: str = ""
    password: str = field(default="", repr=False)
    token: str = field(default="", repr=False)

    @property
    def basic(self) -> str:
        """The value of the `Authorization` header with user name and password."""
        pair = f"{self.username}:{self.password}".encode()
        return f"Basic {base64.b64encode(pair).decode()}"


def credentials_in(secret: JsonObject, reference: ChartReference) -> Credentials | None:
    """Return the pull secret's credentials for a chart's registry, or None.

    An entry for the repository takes precedence over one for the whole registry.

    Raises:
        PullSecretInvalid: The Secret lacks its key, or the content is not in Docker's format.
    """
    entries = _entries(secret)
    for server in (f"{reference.registry}/{reference.repository}", reference.registry):
        for name, entry in entries.items():
            if _host_and_path(name) == _host_and_path(server) and isinstance(entry, dict):
                return _credentials(entry, secret)
    return None


def _entries(secret: JsonObject) -> JsonObject:
    encoded = map_at(secret, "data").get(CONFIG_KEY)
    if not encoded:
        raise _invalid(secret, f'has no key "{CONFIG_KEY}"')
    try:
        config = orjson.loads(base64.b64decode(str(encoded)))
    except ValueError:
        raise _invalid(secret, f'has a key "{CONFIG_KEY}" that is not valid JSON') from None
    entries = config.get("auths") if isinstance(config, dict) else None
    if not isinstance(entries, dict):
        raise _invalid(secret, f'has no map "auths" under its key "{CONFIG_KEY}"')
    return entries


def _credentials(entry: JsonObject, secret: JsonObject) -> Credentials:
    username, password = str(entry.get("username") or ""), str(entry.get("password") or "")
    if auth := str(entry.get("auth") or ""):
        try:
            username, _, password = base64.b64decode(auth).decode().partition(":")
        except ValueError:
            raise _invalid(secret, 'has an "auth" that is not base64') from None
    return Credentials(username, password, str(entry.get("registrytoken") or ""))


def _host_and_path(server: str) -> str:
    """Return the name of a server in a Docker configuration, without scheme and API version.

    Docker Hub has several names; `kubectl create secret docker-registry` uses the oldest one.
    """
    name = server.partition("://")[2] or server
    host, slash, path = name.rstrip("/").partition("/")
    host = host.lower()
    if host in _DOCKER_HUB:
        host = _DOCKER_HUB[0]
    return f"{host}{slash}{path}".removesuffix("/v1").removesuffix("/v2")


def _invalid(secret: JsonObject, problem: str) -> PullSecretInvalid:
    return PullSecretInvalid(
        f"pull secret {Key.of(secret)} {problem}: create it with type "
        "kubernetes.io/dockerconfigjson, as kubectl create secret docker-registry does"
    )
