"""The content of the Secrets in source and target cluster (spec 11 §1.4 step 8, §1.5)."""

import base64
from dataclasses import dataclass
from datetime import datetime
from typing import Final

from pergola.api.kinds import SECRET
from pergola.api.objects import JsonObject, Key, map_at
from pergola.resource_manager.controllers.token_requestor import kubeconfig, names
from pergola.resource_manager.controllers.token_requestor.observe import data_of

_MOVED: Final = (names.KEY_TOKEN, names.KEY_CA, names.KEY_KUBECONFIG)


@dataclass(frozen=True, slots=True)
class Credentials:
    """The credentials to store in a Secret.

    Attributes:
        ca: PEM certificates; None if not requested.
        raw_kubeconfig: The kubeconfig that must contain both; None to use separate keys.
    """

    token: str
    ca: bytes | None
    raw_kubeconfig: bytes | None


def data_for(credentials: Credentials) -> JsonObject:
    """Return the data as a merge patch, in which None removes a key.

    Raises:
        KubeconfigError: The kubeconfig cannot contain them.
    """
    token, ca, raw = credentials.token, credentials.ca, credentials.raw_kubeconfig
    if raw is not None:
        return {names.KEY_KUBECONFIG: _encoded(kubeconfig.with_credentials(raw, token, ca))}
    return {
        names.KEY_TOKEN: _encoded(token.encode()),
        names.KEY_CA: None if ca is None else _encoded(ca),
    }


def source_patch(secret: JsonObject, renewal: datetime, data: JsonObject | None) -> JsonObject:
    """Return the merge patch for the source Secret; it fails if the Secret has changed.

    Args:
        data: The new data; None to remove the credentials, because the target cluster has them.
    """
    present = map_at(secret, "data")
    changes = data if data is not None else dict.fromkeys(_MOVED)
    changes = {key: text for key, text in changes.items() if text is not None or key in present}
    patch: JsonObject = {
        "metadata": {
            "resourceVersion": map_at(secret, "metadata")["resourceVersion"],
            "annotations": {names.RENEW: timestamp(renewal)},
        }
    }
    return patch | ({"data": changes} if changes else {})


def target_secret(key: Key, live: JsonObject | None, data: JsonObject) -> JsonObject:
    """Return the Secret of the target cluster: a new one, or the live one with new credentials."""
    if live is None:
        live = {
            "apiVersion": SECRET.api_version,
            "kind": SECRET.kind,
            "metadata": {"namespace": key.namespace, "name": key.name},
        }
    merged = map_at(live, "data") | data
    return live | {"data": {name: text for name, text in merged.items() if text is not None}}


def kubeconfig_to_fill(source: JsonObject, target: JsonObject | None) -> bytes | None:
    """Return the kubeconfig that must contain the token; that of the source moves to the target."""
    for secret in (source, target or {}):
        if names.KEY_KUBECONFIG in map_at(secret, "data"):
            return data_of(secret, names.KEY_KUBECONFIG)
    return None


def timestamp(moment: datetime) -> str:
    """Format a time as RFC 3339 in UTC with whole seconds."""
    return moment.strftime("%Y-%m-%dT%H:%M:%SZ")


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
