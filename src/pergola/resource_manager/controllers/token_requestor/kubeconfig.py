"""The token and the CA inside a kubeconfig, and how to exchange them (spec 11 §1.5).

A kubeconfig stays the plain map that it is, so that fields nobody here knows survive. Errors name
contexts, users and clusters, never what stands in them.
"""

import base64
import binascii
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.yaml import YamlError, dump, parse

_API_VERSION: Final = "v1"
_KIND: Final = "Config"


class KubeconfigError(Exception):
    """A kubeconfig into which no token can be put; the text says why."""


class Found(NamedTuple):
    """What the current context of a kubeconfig holds.

    Attributes:
        token: of its user; empty if it has none.
        ca: the PEM certificates of its cluster; empty if it has none, or no base64.
        cluster_problem: why no CA can be put in; None if one can.
    """

    token: bytes
    ca: bytes
    cluster_problem: str | None = None


def credentials_in(raw: bytes) -> Found:
    """The credentials of the current context.

    Raises:
        KubeconfigError: no token can be put in.
    """
    config = _read(raw)
    token = _text(_user(config).get("token"))
    try:
        encoded = _text(_cluster(config).get("certificate-authority-data"))
    except KubeconfigError as error:
        return Found(token, b"", str(error))
    try:
        return Found(token, base64.b64decode(encoded))
    except (binascii.Error, ValueError):
        return Found(token, b"")


def with_credentials(raw: bytes, token: str, ca: bytes | None) -> bytes:
    """The kubeconfig with another token and, unless it is None, another CA; sorted YAML.

    Raises:
        KubeconfigError: the kubeconfig cannot be read, or has no user or cluster to change.
    """
    config = _read(raw)
    _user(config)["token"] = token
    if ca is not None:
        _cluster(config)["certificate-authority-data"] = base64.b64encode(ca).decode()
    config["apiVersion"], config["kind"] = _API_VERSION, _KIND
    return dump(config).encode()


def _read(raw: bytes) -> JsonObject:
    try:
        config = parse(raw)
    except YamlError as error:
        raise KubeconfigError(f"is neither YAML nor JSON: {error}") from None
    if not isinstance(config, dict):
        raise KubeconfigError("is no kubeconfig: it must be a map")
    for name, expected in (("apiVersion", _API_VERSION), ("kind", _KIND)):
        if config.get(name, expected) not in (expected, "", None):
            raise KubeconfigError(f"is no kubeconfig: its {name} is not {expected}")
    return config


def _context(config: JsonObject) -> JsonObject:
    context = _entry(config, "contexts", "context", config.get("current-context"))
    if context is None:
        raise KubeconfigError(
            "did not find context defined in current context; name one of contexts there"
        )
    return context


def _user(config: JsonObject) -> JsonObject:
    name = _context(config).get("user")
    user = _entry(config, "users", "user", name)
    if user is None:
        raise KubeconfigError(f"did not find authInfo of current context named {_named(name)}")
    return user


def _cluster(config: JsonObject) -> JsonObject:
    name = _context(config).get("cluster")
    cluster = _entry(config, "clusters", "cluster", name)
    if cluster is None:
        raise KubeconfigError(f"did not find cluster of current context named {_named(name)}")
    return cluster


def _entry(config: JsonObject, list_name: str, field: str, name: JsonValue) -> JsonObject | None:
    """The map in `field` of the list's first item of that name, attached to the kubeconfig."""
    items = config.get(list_name)
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(name, str) and item.get("name") == name:
            content = item.setdefault(field, {})
            if content is None:
                content = item[field] = {}
            return content if isinstance(content, dict) else None
    return None


def _named(name: JsonValue) -> str:
    return f'"{name}"' if isinstance(name, str) else '""'


def _text(value: JsonValue) -> bytes:
    return value.encode() if isinstance(value, str) else b""
