"""The token and the CA inside a kubeconfig, and how to replace them (spec 11 §1.5).

The kubeconfig stays a plain map, so that unknown fields survive, and only the entries of the
current context are checked. Errors name contexts, users and clusters, never their content.
"""

import base64
import binascii
from typing import Final, NamedTuple

from pergola.api.objects import JsonObject, JsonValue
from pergola.kube.yaml import YamlError, dump, parse

_HEAD: Final = {"apiVersion": "v1", "kind": "Config"}


class KubeconfigError(Exception):
    """A kubeconfig cannot contain a token; the text gives the reason."""


class Found(NamedTuple):
    """The credentials in the current context of a kubeconfig.

    Attributes:
        token: The user's token; empty without one.
        ca: The cluster's PEM certificates; empty without any, or if they are not base64.
        cluster_problem: Why it cannot contain a CA; None if it can.
    """

    token: bytes
    ca: bytes
    cluster_problem: str | None = None


def credentials_in(raw: bytes) -> Found:
    """Return the credentials in the current context.

    Raises:
        KubeconfigError: The kubeconfig cannot contain a token.
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
    """Return the kubeconfig as sorted YAML with another token and, unless it is None, another CA.

    Raises:
        KubeconfigError: It cannot be parsed, or lacks the user or cluster to change.
    """
    config = _read(raw)
    _user(config)["token"] = token
    if ca is not None:
        _cluster(config)["certificate-authority-data"] = base64.b64encode(ca).decode()
    return dump(config | _HEAD).encode()


def _read(raw: bytes) -> JsonObject:
    try:
        config = parse(raw)
    except YamlError as error:
        raise KubeconfigError(f"is neither YAML nor JSON: {error}") from None
    if not isinstance(config, dict):
        raise KubeconfigError("is not a kubeconfig: it must be a map")
    for name, expected in _HEAD.items():
        if config.get(name, expected) not in (expected, "", None):
            raise KubeconfigError(f"is not a kubeconfig: its {name} is not {expected}")
    return config


def _user(config: JsonObject) -> JsonObject:
    return _of_current(config, "user", "authInfo")


def _cluster(config: JsonObject) -> JsonObject:
    return _of_current(config, "cluster", "cluster")


def _of_current(config: JsonObject, field: str, what: str) -> JsonObject:
    """Return the user or cluster of the current context, for changes in place."""
    context = _entry(config, "context", config.get("current-context"))
    if context is None:
        raise KubeconfigError(
            "did not find context defined in current context; name one of contexts there"
        )
    name = context.get(field)
    found = _entry(config, field, name)
    if found is None:
        shown = name if isinstance(name, str) else ""
        raise KubeconfigError(f'did not find {what} of current context named "{shown}"')
    return found


def _entry(config: JsonObject, field: str, name: JsonValue) -> JsonObject | None:
    """Return the map in `field` of the first item of that name in the field's list."""
    items = config.get(f"{field}s")
    for item in items if isinstance(items, list) else ():
        if isinstance(item, dict) and isinstance(name, str) and item.get("name") == name:
            content = item.setdefault(field, {})
            if content is None:
                content = item[field] = {}
            return content if isinstance(content, dict) else None
    return None


def _text(value: JsonValue) -> bytes:
    return value.encode() if isinstance(value, str) else b""
