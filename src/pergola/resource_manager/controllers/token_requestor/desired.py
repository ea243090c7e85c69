"""The ServiceAccount and the Secrets of both clusters as they should be (spec 11 §1.4, §1.5)."""

import base64
from typing import Final

import orjson

from pergola.api.kinds import SECRET, SERVICE_ACCOUNT
from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    metadata_of,
)
from pergola.resource_manager.controllers.token_requestor import kubeconfig, names
from pergola.resource_manager.controllers.token_requestor.inputs import Request
from pergola.resource_manager.controllers.token_requestor.observe import data_of

_AUTOMOUNT: Final = "automountServiceAccountToken"
_MOVED: Final = (names.KEY_TOKEN, names.KEY_CA, names.KEY_KUBECONFIG)


def new_account(request: Request) -> JsonObject:
    """Return the ServiceAccount to create."""
    metadata: JsonObject = {"namespace": request.account.namespace, "name": request.account.name}
    if request.labels:
        metadata["labels"] = dict(request.labels)
        metadata["annotations"] = {names.LABELS: _record(request.labels)}
    return {
        "apiVersion": SERVICE_ACCOUNT.api_version,
        "kind": SERVICE_ACCOUNT.kind,
        "metadata": metadata,
        _AUTOMOUNT: False,
    }


def corrected(live: JsonObject, request: Request) -> JsonObject | None:
    """Return the ServiceAccount with its corrections, or None if it needs none.

    Labels set by others are kept. A record on the ServiceAccount lists the labels that were set
    from a Secret; only those are removed (spec 11 §1.4 step 3).
    """
    labels, annotations = dict(labels_of(live)), dict(annotations_of(live))
    for name in _recorded(annotations.pop(names.LABELS, "")) - request.labels.keys():
        labels.pop(name, None)
    labels.update(request.labels)
    if request.labels:
        annotations[names.LABELS] = _record(request.labels)
    is_right = labels == labels_of(live) and annotations == annotations_of(live)
    if is_right and live.get(_AUTOMOUNT) is False:
        return None
    metadata = {**metadata_of(live), "labels": labels, "annotations": annotations}
    return {**live, "metadata": metadata, _AUTOMOUNT: False}


def data_for(token: str, ca: bytes | None, raw_kubeconfig: bytes | None) -> JsonObject:
    """Return the data of a Secret as a merge patch, in which None removes a key.

    Args:
        ca: PEM certificates; None if not requested.
        raw_kubeconfig: The kubeconfig that must contain both; None to use separate keys.

    Raises:
        KubeconfigError: The kubeconfig cannot contain them.
    """
    if raw_kubeconfig is not None:
        filled = kubeconfig.with_credentials(raw_kubeconfig, token, ca)
        return {names.KEY_KUBECONFIG: _encoded(filled)}
    return {
        names.KEY_TOKEN: _encoded(token.encode()),
        names.KEY_CA: None if ca is None else _encoded(ca),
    }


def source_patch(secret: JsonObject, renewal: str, data: JsonObject | None) -> JsonObject:
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
            "annotations": {names.RENEW: renewal},
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


def _record(labels: dict[str, str]) -> str:
    return orjson.dumps(labels, option=orjson.OPT_SORT_KEYS).decode()


def _recorded(text: str) -> set[str]:
    try:
        labels = orjson.loads(text)
    except orjson.JSONDecodeError:
        return set()
    return set(labels) if isinstance(labels, dict) else set()


def _encoded(content: bytes) -> str:
    return base64.b64encode(content).decode()
