"""The stand-in for istiod and a gateway with the real Envoy, as pods of a real node."""

import fcntl
from collections.abc import AsyncGenerator
from contextlib import asynccontextmanager, suppress
from typing import Final

from pergola.api.kinds import (
    CLUSTER_ROLE,
    CLUSTER_ROLE_BINDING,
    CONFIG_MAP,
    NAMESPACE,
    POD,
    SERVICE,
)
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at, name_of
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.sandbox import Sandbox
from pergola.testing.waiting import until, until_gone
from tests.support.istio_crds import install_istio_crds

INGRESS: Final = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
"""The labels of the gateway's pod."""

_ROOT: Final = "istio-ca-root-cert"
_PILOT: Final = "gcr.io/istio-release/pilot:1.29.6-distroless"
_PROXY: Final = "gcr.io/istio-release/proxyv2:1.29.6-distroless"
_RULES: Final = [
    {
        "apiGroups": ["networking.istio.io"],
        "resources": ["gateways", "virtualservices", "destinationrules", "envoyfilters"],
        "verbs": ["list", "watch"],
    },
    {
        "apiGroups": [""],
        "resources": ["services", "namespaces", "pods"],
        "verbs": ["list", "watch"],
    },
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["create", "get", "list", "watch", "update"],
    },
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get", "list", "watch"]},
]


@asynccontextmanager
async def istio_in(sandbox: Sandbox, client: Client, namespace: str) -> AsyncGenerator[None]:
    """Prepare a namespace for istiod, and remove afterwards what it leaves in others.

    Only one test at a time: two istiods would overwrite each other's certificate everywhere.
    """
    with (sandbox.directory / "istio.turn").open("w") as turn:
        fcntl.flock(turn, fcntl.LOCK_EX)
        await install_istio_crds(client)
        for obj in _permissions(namespace):
            await client.create(obj)
        yield
        await client.delete(POD, Key(namespace, "istiod"))
        await until_gone(client, POD, Key(namespace, "istiod"))
        for kind in (CLUSTER_ROLE_BINDING, CLUSTER_ROLE):
            await client.delete(kind, Key("", namespace))
        for found in await client.list(NAMESPACE, metadata_only=True):
            with suppress(NotFound):
                await client.delete(CONFIG_MAP, Key(name_of(found), _ROOT))


async def create_gateway(client: Client, namespace: str) -> None:
    """Create istiod, and a gateway named `gateway` with a Service."""
    for obj in _control_plane(namespace):
        await client.create(obj)
    # The kubelet looks for a missing ConfigMap at growing intervals.
    await until(client, CONFIG_MAP, Key(namespace, _ROOT), lambda found: True, patience=100)
    for obj in _ingress(namespace):
        await client.create(obj)


def _permissions(namespace: str) -> list[JsonObject]:
    meta = {"name": namespace}
    subject = {"kind": "ServiceAccount", "name": "istiod", "namespace": namespace}
    role = {"apiGroup": CLUSTER_ROLE.group, "kind": CLUSTER_ROLE.kind, "name": namespace}
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "istiod", "namespace": namespace},
    }
    return [
        account,
        {
            "apiVersion": CLUSTER_ROLE.api_version,
            "kind": CLUSTER_ROLE.kind,
            "metadata": meta,
            "rules": _RULES,
        },
        {
            "apiVersion": CLUSTER_ROLE_BINDING.api_version,
            "kind": CLUSTER_ROLE_BINDING.kind,
            "metadata": meta,
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def _control_plane(namespace: str) -> list[JsonObject]:
    """Return istiod as in its Deployment, and its Service."""
    container: JsonObject = {
        "name": "discovery",
        "image": _PILOT,
        "args": ["discovery", "--monitoringAddr=:15014"],
        "env": [_from_field("POD_NAMESPACE", "metadata.namespace")],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1},
        "securityContext": restricted(),
    }
    spec = {"serviceAccountName": "istiod", "containers": [container], "securityContext": _user()}
    labels = {"app": "istiod"}
    return [
        pod(namespace, "istiod", labels, spec),
        service(namespace, "istiod", labels, port=15012, target=15012),
    ]


def _ingress(namespace: str) -> list[JsonObject]:
    """Return a gateway as in its Deployment, and its Service."""
    container: JsonObject = {
        "name": "istio-proxy",
        "image": _PROXY,
        "args": ["proxy", "router", f"--domain={namespace}.svc.cluster.local"],
        "env": [
            {"name": "CA_ADDR", "value": f"istiod.{namespace}.svc:15012"},
            _from_field("POD_NAME", "metadata.name"),
            _from_field("POD_NAMESPACE", "metadata.namespace"),
            _from_field("INSTANCE_IP", "status.podIP"),
        ],
        "readinessProbe": {
            "httpGet": {"path": "/healthz/ready", "port": 15021},
            "periodSeconds": 1,
            "failureThreshold": 30,
        },
        "securityContext": restricted(),
        "volumeMounts": [
            {"name": "istiod-ca-cert", "mountPath": "/var/run/secrets/istio"},
            {"name": "podinfo", "mountPath": "/etc/istio/pod"},
        ],
    }
    labels = {"path": "labels", "fieldRef": {"fieldPath": "metadata.labels"}}
    spec = {
        "containers": [container],
        "securityContext": _user(),
        "volumes": [
            {"name": "istiod-ca-cert", "configMap": {"name": _ROOT}},
            {"name": "podinfo", "downwardAPI": {"items": [labels]}},
        ],
    }
    return [
        pod(namespace, "gateway", INGRESS, spec),
        service(namespace, "gateway", INGRESS, port=443, target=9443),
    ]


def istio_object(kind: GroupVersionKind, namespace: str, name: str, spec: JsonObject) -> JsonObject:
    """Return an object of one of Istio's kinds."""
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}


def pod(namespace: str, name: str, labels: dict[str, str], spec: JsonObject) -> JsonObject:
    """Return a pod that ends quickly."""
    meta = {"name": name, "namespace": namespace, "labels": labels}
    spec = {"terminationGracePeriodSeconds": 1, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def service(
    namespace: str, name: str, selector: dict[str, str], *, port: int, target: int
) -> JsonObject:
    """Return a Service with one port."""
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector, "ports": [{"port": port, "targetPort": target}]},
    }


def _from_field(name: str, path: str) -> JsonObject:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def _user() -> JsonObject:
    return {"runAsUser": 1337, "runAsGroup": 1337, "runAsNonRoot": True, "fsGroup": 1337}


def restricted() -> JsonObject:
    """Return the securityContext of a container without privileges."""
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


async def port_of(sandbox: Sandbox, client: Client, key: Key) -> int:
    """Forward a port of this machine to a Service."""
    found = await client.get(SERVICE, key)
    return await sandbox.forward(map_at(found, "spec")["clusterIP"], 443)
