"""Facts about a Secret: its request and its credentials, but no token, key or kubeconfig."""

import base64
import binascii
from dataclasses import dataclass
from typing import Final

from pergola.api.objects import (
    JsonObject,
    Key,
    annotations_of,
    labels_of,
    map_at,
    resource_version_of,
    uid_of,
)
from pergola.resource_manager.controllers.token_requestor import kubeconfig, names
from pergola.resource_manager.controllers.token_requestor.token import (
    TokenFacts,
    digest_of,
    facts_of,
)

_READ_ANNOTATIONS: Final = (
    *(names.NAME, names.NAMESPACE, names.LABELS, names.EXPIRATION, names.INJECT_CA),
    *(names.RENEW, names.TARGET_NAME, names.TARGET_NAMESPACE),
)
_CREDENTIALS: Final = frozenset({names.KEY_TOKEN, names.KEY_KUBECONFIG})


@dataclass(frozen=True, slots=True)
class Holding:
    """The credentials in the data of a Secret.

    Attributes:
        keys: The existing data keys among `token` and `kubeconfig`.
        token: The effective token: that of the kubeconfig's current user if there is a kubeconfig.
        ca: Digest of the effective CA, or None.
        problem: Why the kubeconfig cannot contain a token; None if it can.
        cluster_problem: Why it cannot contain a CA.
    """

    keys: frozenset[str] = frozenset()
    token: TokenFacts | None = None
    ca: bytes | None = None
    problem: str | None = None
    cluster_problem: str | None = None


@dataclass(frozen=True, slots=True)
class SeenSecret:
    """A Secret of the source cluster.

    Attributes:
        annotations: The annotations that this controller reads.
    """

    key: Key
    uid: str
    version: str
    resource_class: str
    annotations: dict[str, str]
    holding: Holding


def observe(secret: JsonObject) -> SeenSecret:
    """Return the facts about a Secret, without a reference to the object."""
    annotations = annotations_of(secret)
    return SeenSecret(
        key=Key.of(secret),
        uid=uid_of(secret),
        version=resource_version_of(secret),
        resource_class=labels_of(secret).get(names.CLASS, ""),
        annotations={key: str(annotations[key]) for key in _READ_ANNOTATIONS if key in annotations},
        holding=holding_of(secret),
    )


def holding_of(secret: JsonObject) -> Holding:
    """Return the credentials in a Secret of either cluster."""
    keys = _CREDENTIALS & map_at(secret, "data").keys()
    if names.KEY_KUBECONFIG not in keys:
        bundle = data_of(secret, names.KEY_CA)
        token = facts_of(data_of(secret, names.KEY_TOKEN))
        return Holding(keys, token, digest_of(bundle) if bundle else None)
    try:
        found = kubeconfig.credentials_in(data_of(secret, names.KEY_KUBECONFIG))
    except kubeconfig.KubeconfigError as error:
        return Holding(keys, problem=str(error))
    ca = digest_of(found.ca) if found.ca else None
    return Holding(keys, facts_of(found.token), ca, cluster_problem=found.cluster_problem)


def data_of(secret: JsonObject, key: str) -> bytes:
    """Return the value of a data key, or empty bytes."""
    text = map_at(secret, "data").get(key)
    try:
        return base64.b64decode(text) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


def token_of(secret: JsonObject) -> bytes:
    """Return the token in a Secret, or empty bytes."""
    if names.KEY_KUBECONFIG not in map_at(secret, "data"):
        return data_of(secret, names.KEY_TOKEN)
    try:
        return kubeconfig.credentials_in(data_of(secret, names.KEY_KUBECONFIG)).token
    except kubeconfig.KubeconfigError:
        return b""
