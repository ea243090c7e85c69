"""Namespaces for tests: fresh, named after their test, and cleared afterwards."""

import asyncio
import contextlib
import re
import secrets
from typing import Final

from pergola.api.bastion_v1alpha1 import BASTION
from pergola.api.extensions_v1alpha1 import GROUP, NETWORK, VERSION
from pergola.api.infrastructure_v1alpha1 import INFRASTRUCTURE
from pergola.api.kinds import (
    CONFIG_MAP,
    CRON_JOB,
    DAEMON_SET,
    DEPLOYMENT,
    HPA,
    JOB,
    NAMESPACE,
    POD,
    SECRET,
    SERVICE,
    SERVICE_ACCOUNT,
    STATEFUL_SET,
)
from pergola.api.objects import GroupVersionKind, Key, finalizers_of, labels_of, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.answers import decoded
from pergola.kube.client import Client
from pergola.kube.discovery import Resource
from pergola.kube.errors import NotFound

_DNS_RECORD: Final = GroupVersionKind(GROUP, VERSION, "DNSRecord")
_AWS_CLUSTER: Final = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "AWSCluster")
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_CLEARED: Final = (
    Resource(DEPLOYMENT, "deployments", namespaced=True),
    Resource(STATEFUL_SET, "statefulsets", namespaced=True),
    Resource(DAEMON_SET, "daemonsets", namespaced=True),
    Resource(JOB, "jobs", namespaced=True),
    Resource(CRON_JOB, "cronjobs", namespaced=True),
    Resource(HPA, "horizontalpodautoscalers", namespaced=True),
    Resource(POD, "pods", namespaced=True),
    Resource(SERVICE, "services", namespaced=True),
    Resource(SECRET, "secrets", namespaced=True),
    Resource(CONFIG_MAP, "configmaps", namespaced=True),
    Resource(MANAGED_RESOURCE, "managedresources", namespaced=True),
    Resource(NETWORK, "networks", namespaced=True),
    Resource(INFRASTRUCTURE, "infrastructures", namespaced=True),
    Resource(BASTION, "bastions", namespaced=True),
    Resource(_DNS_RECORD, "dnsrecords", namespaced=True),
    Resource(_AWS_CLUSTER, "awsclusters", namespaced=True),
)
"""The kinds that controllers of other tests would act on, in the order of deletion.

Their paths are known, because discovery would take half of the time.
"""
_CACHED: Final = "resourceVersion=0"
"""Lets the server answer from its cache, a moment late: a test has seen what it leaves behind."""
_ROOT_CA: Final = "kube-root-ca.crt"
_LONGEST: Final = 40  # characters of the test's name
_LIMIT: Final = 180.0
_INTERVAL: Final = 0.02


async def create_namespace(client: Client, test: str) -> str:
    """Create a namespace named after a test.

    Returns once its `default` ServiceAccount exists, which pods require.
    """
    words = re.sub(r"[^a-z0-9]+", "-", test.lower()).strip("-")[:_LONGEST].strip("-")
    name = f"{words or 'test'}-{secrets.token_hex(3)}"
    await client.create({"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}})
    async with asyncio.timeout(_LIMIT):
        while not await _has_service_account(client, name):  # noqa: ASYNC110 - it is elsewhere
            await asyncio.sleep(_INTERVAL)
    return name


async def clear_namespace(client: Client, name: str) -> None:
    """Delete what controllers would act on in a namespace, and its labels.

    The namespace remains. Its deletion would cost the server two requests for each kind that it
    serves, which took a quarter of the time of a whole run. Finalizers are removed, because their
    controllers ended with the test.
    """
    with contextlib.suppress(NotFound):  # the test may have deleted it
        found = await client.get(NAMESPACE, Key("", name))
        foreign = {label: None for label in labels_of(found) if label != _NAME_LABEL}
        if foreign:
            await client.patch(NAMESPACE, Key("", name), {"metadata": {"labels": foreign}})
        # One after another, and so on one connection: a handshake takes more than a request.
        for resource in _CLEARED:
            await _clear(client, resource, name)


async def _clear(client: Client, resource: Resource, namespace: str) -> None:
    path = resource.collection(namespace)
    try:
        answer = decoded(await client.get_raw(f"{path}?{_CACHED}"), path)
    except NotFound:
        return  # the kind is not served
    for obj in maps_at(answer, "items"):
        key = Key.of(obj)
        if key.name == _ROOT_CA:
            continue
        with contextlib.suppress(NotFound):  # it was the last finalizer, or is just gone
            if finalizers_of(obj):
                await client.patch(resource.gvk, key, {"metadata": {"finalizers": None}})
            await client.delete(resource.gvk, key)


async def _has_service_account(client: Client, namespace: str) -> bool:
    try:
        await client.get(SERVICE_ACCOUNT, Key(namespace, "default"))
    except NotFound:
        return False
    return True
