"""Clients that authenticate as a ServiceAccount instead of the administrator."""

import asyncio
import secrets
from collections.abc import Iterator
from dataclasses import replace
from typing import Final

import orjson

from pergola.api.kinds import CLUSTER_ROLE_BINDING
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.credentials import StaticToken
from pergola.kube.errors import Forbidden, Unauthorized
from pergola.kube.kubeconfig import ClusterConfig
from pergola.kube.transport import Transport

_INTERVAL: Final = 0.2
_LIMIT: Final = 180.0
_RBAC: Final = "rbac.authorization.k8s.io"


async def service_account_config(
    admin: ClusterConfig, namespace: str, name: str = "default"
) -> ClusterConfig:
    """Return a config for the same cluster as a ServiceAccount, with a requested token."""
    token = await request_token(admin, namespace, name)
    return replace(admin, credentials=StaticToken(token), context=f"{namespace}/{name}")


def cluster_admin(name: str, account: Key) -> JsonObject:
    """Return the ClusterRoleBinding that allows everything to a ServiceAccount."""
    return {
        "apiVersion": CLUSTER_ROLE_BINDING.api_version,
        "kind": CLUSTER_ROLE_BINDING.kind,
        "metadata": {"name": name},
        "roleRef": {
            "apiGroup": CLUSTER_ROLE_BINDING.group,
            "kind": "ClusterRole",
            "name": "cluster-admin",
        },
        "subjects": [
            {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
        ],
    }


async def request_token(admin: ClusterConfig, namespace: str, name: str) -> str:
    """Return a new token of a ServiceAccount."""
    transport = Transport(admin)
    request = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": {}}
    try:
        answer = await transport.request(
            "POST",
            f"/api/v1/namespaces/{namespace}/serviceaccounts/{name}/token",
            body=orjson.dumps(request),
        )
    finally:
        await transport.close()
    return str(orjson.loads(answer)["status"]["token"])


async def until_allowed(
    client: Client, gvk: GroupVersionKind, namespace: str | None = None
) -> None:
    """Wait until the client may list a kind: the authorizer learns of new Roles by watching."""
    async with asyncio.timeout(_LIMIT):
        while True:
            try:
                await client.list(gvk, namespace, metadata_only=True)
            except Forbidden:
                await asyncio.sleep(_INTERVAL)
            else:
                return


async def until_granted(admin: Client, account: Key) -> None:
    """Wait until the authorizer of a cluster knows all roles and bindings that exist by now.

    It learns of each of their four kinds by a watch of its own. So this grants the account one more
    permission of each scope, and waits for both.
    """
    name = f"granted-{secrets.token_hex(4)}"
    grants = [
        *granting(name, account, _nothing_real(f"{name}-cluster")),
        *granting(name, account, _nothing_real(f"{name}-namespace"), account.namespace),
    ]
    for obj in grants:
        await admin.create(obj)
    async with asyncio.timeout(_LIMIT):
        for scope, namespace in (("cluster", ""), ("namespace", account.namespace)):
            while not await _is_allowed(admin, account, f"{name}-{scope}", namespace):
                await admin.get_raw("/version")
    for obj in grants:
        await admin.delete(GroupVersionKind.of(obj), Key.of(obj))


def _nothing_real(resource: str) -> JsonObject:
    return {"apiGroups": ["example.org"], "resources": [resource], "verbs": ["get"]}


def granting(
    name: str, account: Key, rule: JsonObject, namespace: str = ""
) -> Iterator[JsonObject]:
    """Yield a role with one rule and its binding, for all namespaces or one."""
    prefix = "" if namespace else "Cluster"
    metadata = {"name": name, **({"namespace": namespace} if namespace else {})}
    base: JsonObject = {"apiVersion": f"{_RBAC}/v1", "metadata": metadata}
    yield {**base, "kind": f"{prefix}Role", "rules": [rule]}
    subject = {"kind": "ServiceAccount", "name": account.name, "namespace": account.namespace}
    role = {"apiGroup": _RBAC, "kind": f"{prefix}Role", "name": name}
    yield {**base, "kind": f"{prefix}RoleBinding", "roleRef": role, "subjects": [subject]}


async def _is_allowed(admin: Client, account: Key, resource: str, namespace: str) -> bool:
    attributes = {
        "group": "example.org",
        "resource": resource,
        "verb": "get",
        "namespace": namespace,
    }
    user = f"system:serviceaccount:{account.namespace}:{account.name}"
    review: JsonObject = {
        "apiVersion": "authorization.k8s.io/v1",
        "kind": "SubjectAccessReview",
        "spec": {"user": user, "resourceAttributes": attributes},
    }
    answer = await admin.create(review)
    return bool(answer["status"]["allowed"])


async def until_rejected(config: ClusterConfig) -> None:
    """Wait until the API server rejects these credentials.

    It caches for ten seconds that a token was good, even after its ServiceAccount was deleted.
    """
    async with asyncio.timeout(_LIMIT), Client.connect(config) as client:
        while True:
            try:
                await client.get_raw("/version")
            except Unauthorized:
                return
            await asyncio.sleep(_INTERVAL)
