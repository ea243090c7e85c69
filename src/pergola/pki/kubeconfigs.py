"""Kubeconfigs for one user of one cluster."""

import base64
from dataclasses import dataclass

from pergola.api.objects import JsonObject
from pergola.pki.keys import Pair


@dataclass(frozen=True, slots=True)
class Token:
    """A bearer token."""

    token: str


@dataclass(frozen=True, slots=True)
class TokenFile:
    """The path of a file with a bearer token, which the client re-reads."""

    path: str


@dataclass(frozen=True, slots=True)
class ClientCertificate:
    """A client certificate and its key."""

    pair: Pair


def kubeconfig(
    name: str,
    server: str,
    ca_bundle: bytes,
    user: Token | TokenFile | ClientCertificate | None,
    *,
    namespace: str = "",
) -> JsonObject:
    """Build a kubeconfig with one context.

    Args:
        name: The name of the context, the cluster and the user.
        server: URL of the API server.
        ca_bundle: PEM; empty to trust the system's authorities.
        user: None for requests without a user.
        namespace: The default namespace of the context.
    """
    cluster: JsonObject = {"server": server}
    if ca_bundle:
        cluster["certificate-authority-data"] = base64.b64encode(ca_bundle).decode()
    context: JsonObject = {"cluster": name, "user": name}
    if namespace:
        context["namespace"] = namespace
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": name,
        "clusters": [{"name": name, "cluster": cluster}],
        "contexts": [{"name": name, "context": context}],
        "users": [{"name": name, "user": _user(user)}],
    }


def _user(user: Token | TokenFile | ClientCertificate | None) -> JsonObject:
    match user:
        case None:
            return {}
        case Token(token):
            return {"token": token}
        case TokenFile(path):
            return {"tokenFile": path}
        case ClientCertificate(pair):
            return {
                "client-certificate-data": base64.b64encode(pair.public).decode(),
                "client-key-data": base64.b64encode(pair.private).decode(),
            }
