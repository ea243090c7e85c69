"""Istio's kinds that route connections, without their schemas."""

import contextlib

from pergola.api.kinds import CRD, DESTINATION_RULE, GATEWAY, VIRTUAL_SERVICE
from pergola.api.objects import GroupVersionKind, JsonObject, Key
from pergola.kube.client import Client
from pergola.kube.errors import AlreadyExists
from pergola.testing.crds import is_established, served
from pergola.testing.waiting import until


async def install_istio_crds(client: Client) -> None:
    """Return when Gateways, VirtualServices and DestinationRules are served."""
    for kind in (GATEWAY, VIRTUAL_SERVICE, DESTINATION_RULE):
        definition = _definition(kind)
        with contextlib.suppress(AlreadyExists):  # of another test, which shares the cluster
            await client.create(definition)
        await until(client, CRD, Key.of(definition), is_established)
        await served(client, kind)


def _definition(kind: GroupVersionKind) -> JsonObject:
    plural = f"{kind.kind.lower()}s"
    schema = {"type": "object", "x-kubernetes-preserve-unknown-fields": True}
    version = {
        "name": kind.version,
        "served": True,
        "storage": True,
        "schema": {"openAPIV3Schema": schema},
    }
    return {
        "apiVersion": "apiextensions.k8s.io/v1",
        "kind": "CustomResourceDefinition",
        "metadata": {"name": f"{plural}.{kind.group}"},
        "spec": {
            "group": kind.group,
            "scope": "Namespaced",
            "names": {"kind": kind.kind, "plural": plural},
            "versions": [version],
        },
    }
