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
from pergola.api.objects import GroupVersionKind, Key, finalizers_of, labels_of
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.kube.client import Client
from pergola.kube.errors import NotFound, UnknownKind
from pergola.runtime.task_group import gathered

_DNS_RECORD: Final = GroupVersionKind(GROUP, VERSION, "DNSRecord")
_AWS_CLUSTER: Final = GroupVersionKind("infrastructure.cluster.x-k8s.io", "v1beta2", "AWSCluster")
_NAME_LABEL: Final = "kubernetes.io/metadata.name"
_CLEARED: Final = (
    *(DEPLOYMENT, STATEFUL_SET, DAEMON_SET, JOB, CRON_JOB, HPA, POD, SERVICE, SECRET, CONFIG_MAP),
    *(MANAGED_RESOURCE, NETWORK, INFRASTRUCTURE, BASTION, _DNS_RECORD, _AWS_CLUSTER),
)
"""The kinds that controllers of other tests would act on, in the order of deletion."""
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
        await gathered(_clear(client, gvk, name) for gvk in _CLEARED)


async def _clear(client: Client, gvk: GroupVersionKind, namespace: str) -> None:
    with contextlib.suppress(UnknownKind):
        for obj in await client.list(gvk, namespace, metadata_only=True):
            key = Key.of(obj)
            if key.name == _ROOT_CA:
                continue
            with contextlib.suppress(NotFound):  # it was the last finalizer, or is just gone
                if finalizers_of(obj):
                    await client.patch(gvk, key, {"metadata": {"finalizers": None}})
                await client.delete(gvk, key)


async def _has_service_account(client: Client, namespace: str) -> bool:
    try:
        await client.get(SERVICE_ACCOUNT, Key(namespace, "default"))
    except NotFound:
        return False
    return True
