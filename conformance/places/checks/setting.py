"""Objects that other parts of a landscape create, and that checks of a place need."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import replace
from typing import Final

from conformance.places.place import PATIENCE, SYSTEM, Side, Site
from pergola.api import marks
from pergola.api.kinds import NODE, SERVICE_ACCOUNT
from pergola.api.objects import JsonObject, Key, name_of
from pergola.kube.client import Client
from pergola.kube.credentials import Combined, Constant
from pergola.kube.errors import KubeError
from pergola.kube.kubeconfig import ClusterConfig
from pergola.manifests import manifest
from pergola.testing.crds import install_garden_crds
from pergola.testing.waiting import until

ACCOUNT: Final = "quiet"
"""A ServiceAccount without automounting, in the namespaces of a site."""
HOST: Final = "api.e2e.internal.example.com"
"""The API server's host that the oracle configures, and to which gateways lead."""
SYSTEM_POOL: Final = {"worker.gardener.cloud/system-components": "true"}
"""The label of the nodes for system components."""
TEAM: Final = {"team": "platform"}
"""The label of namespaces that the oracle adds to those of NetworkPolicies."""

_MANAGER: Final = "pergola-places"
_RBAC: Final = "rbac.authorization.k8s.io"
_PAUSE: Final = 0.2
_CONSIDER: Final = {
    "high-availability-config.resources.gardener.cloud/consider": "true",
    "system-components-config.resources.gardener.cloud/consider": "true",
}


async def label_nodes(client: Client) -> None:
    """Let all nodes run system components, as the only pool of a Shoot does."""
    for node in await client.list(NODE, metadata_only=True):
        await client.patch(NODE, Key("", name_of(node)), {"metadata": {"labels": SYSTEM_POOL}})


async def furnish(site: Site) -> None:
    """Create what checks need: namespaces with their gateway to the API server, and permissions."""
    client, namespace = site.target.client, site.namespace
    if site.place.has_target:
        await install_garden_crds(client, "vpa")
    labels = _CONSIDER | ({marks.ROLE: "shoot"} if site.place.is_runtime else {})
    await client.apply(manifest("v1", "Namespace", namespace, labels=labels), manager=_MANAGER)
    spaces = {namespace, site.place.namespace} if site.place.is_runtime else {namespace}
    for each in spaces:
        for obj in _furniture(each):
            await client.apply(obj, manager=_MANAGER, force=True)
    await client.apply(_may_request_certificates(), manager=_MANAGER, force=True)
    for each in {*spaces, SYSTEM}:
        await until(client, SERVICE_ACCOUNT, Key(each, "default"), lambda _: True)


def _furniture(namespace: str) -> tuple[JsonObject, ...]:
    quiet: JsonObject = {"automountServiceAccountToken": False}
    route = {"hosts": HOST, "istio-namespace": namespace}
    ports = {"ports": [{"port": 443}]}
    return (
        manifest("v1", "ServiceAccount", ACCOUNT, namespace=namespace, **quiet),
        manifest(
            "v1", "ConfigMap", "istio-internal-load-balancing", namespace=namespace, data=route
        ),
        manifest("v1", "Service", "istio-ingressgateway-internal", namespace=namespace, spec=ports),
    )


def _may_request_certificates() -> JsonObject:
    subject = {"apiGroup": _RBAC, "kind": "Group", "name": "system:nodes"}
    role = {"apiGroup": _RBAC, "kind": "ClusterRole", "name": "system:node-bootstrapper"}
    return manifest(f"{_RBAC}/v1", "ClusterRoleBinding", _MANAGER, subjects=[subject], roleRef=role)


def as_user(side: Side, user: str, group: str) -> ClusterConfig:
    """Return the access of another user to a cluster."""
    headers = Constant({"Impersonate-User": user, "Impersonate-Group": group})
    return replace(side.config, credentials=Combined([headers, side.config.credentials]))


async def eventually(what: str, probe: Callable[[], Awaitable[bool]]) -> None:
    """Wait until a probe returns True: API servers learn of registrations by watching."""
    last = ""
    try:
        async with asyncio.timeout(PATIENCE):
            while True:
                try:
                    if await probe():
                        return
                    last = ""
                except KubeError as error:
                    last = f": {error}"
                await asyncio.sleep(_PAUSE)
    except TimeoutError:
        raise AssertionError(f"waited {PATIENCE:g} s for {what}{last}") from None
