"""What is kept of a Secret: what it asks for and what it holds, but no token, key or kubeconfig."""

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
        keys: which of the data keys `token` and `kubeconfig` are there.
        token: the token that counts: of the kubeconfig's current user if there is a kubeconfig.
        ca: digest of the CA that counts; None if there is none.
        problem: why no token can be put into the kubeconfig; None if one can.
        cluster_problem: why no CA can be put into it.
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
        annotations: those that say something to this controller.
    """

    key: Key
    uid: str
    version: str
    resource_class: str
    annotations: dict[str, str]
    holding: Holding


def observe(secret: JsonObject) -> SeenSecret:
    """What is kept of a Secret; it keeps nothing of the Secret alive."""
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
    """The credentials in a Secret, of whichever cluster."""
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
    """What a Secret holds under a data key; empty if there is no such key."""
    text = map_at(secret, "data").get(key)
    try:
        return base64.b64decode(text) if isinstance(text, str) else b""
    except (binascii.Error, ValueError):
        return b""


def token_of(secret: JsonObject) -> bytes:
    """The token in a Secret, for those who cannot do without it; empty if there is none."""
    if names.KEY_KUBECONFIG not in map_at(secret, "data"):
        return data_of(secret, names.KEY_TOKEN)
    try:
        return kubeconfig.credentials_in(data_of(secret, names.KEY_KUBECONFIG)).token
    except kubeconfig.KubeconfigError:
        return b""
