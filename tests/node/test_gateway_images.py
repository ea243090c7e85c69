"""The stand-in for istiod and the real Envoy at work: connections are routed by server name."""

import asyncio
import ssl
from collections.abc import AsyncIterator

import pytest

from pergola.api.kinds import (
    CONFIG_MAP,
    DESTINATION_RULE,
    GATEWAY,
    NAMESPACE,
    POD,
    SERVICE,
    VIRTUAL_SERVICE,
)
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.kube.client import Client
from pergola.kube.errors import NotFound
from pergola.sandbox import Sandbox
from pergola.testing.istio_crds import install_istio_crds
from pergola.testing.node_workloads import is_ready
from pergola.testing.shared import require_images
from pergola.testing.waiting import until

pytestmark = pytest.mark.node

PILOT = "gcr.io/istio-release/pilot:1.29.6-distroless"
PROXY = "gcr.io/istio-release/proxyv2:1.29.6-distroless"
# A stand-in: it has a certificate of its own, by which the test recognizes it.
TLS_SERVER = "europe-docker.pkg.dev/gardener-project/releases/3rd/credativ/plutono:v7.5.50"
SERVER_PORT = 3000
ROOT = "istio-ca-root-cert"
INGRESS = {"app": "istio-ingressgateway", "istio": "ingressgateway"}
ROLE = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
BINDING = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRoleBinding")
RULES = [
    {
        "apiGroups": ["networking.istio.io"],
        "resources": ["gateways", "virtualservices", "destinationrules"],
        "verbs": ["list", "watch"],
    },
    {"apiGroups": [""], "resources": ["services", "namespaces"], "verbs": ["list", "watch"]},
    {
        "apiGroups": [""],
        "resources": ["configmaps"],
        "verbs": ["create", "get", "list", "watch", "update"],
    },
    {"apiGroups": [""], "resources": ["secrets"], "verbs": ["create", "get"]},
]


async def test_tls_connections_reach_the_server_that_their_name_selects(
    node_sandbox: Sandbox, node_client: Client, istio: str
) -> None:
    await node_client.create(gateway(istio))
    for name in ("one", "two"):
        for obj in (server(istio, name), *route(istio, name)):
            await node_client.create(obj)
    for obj in control_plane(istio):
        await node_client.create(obj)
    # The kubelet looks for a missing ConfigMap more and more rarely.
    await until(node_client, CONFIG_MAP, Key(istio, ROOT), lambda found: True, patience=60)
    for obj in ingress(istio):
        await node_client.create(obj)
    for name in ("one", "two", "gateway"):
        await until(node_client, POD, Key(istio, name), is_ready, patience=60)

    entrance = await port_of(node_sandbox, node_client, Key(istio, "gateway"))
    for name in ("one", "two"):
        direct = await port_of(node_sandbox, node_client, Key(istio, name))
        assert await certificate(entrance, f"{name}.example.com") == await certificate(direct, "")
    with pytest.raises(ConnectionError):
        await certificate(entrance, "three.example.com")


@pytest.fixture
async def istio(node_client: Client, node_namespace: str) -> AsyncIterator[str]:
    """A namespace in a cluster with Istio's kinds, and with permissions for istiod."""
    require_images("istiod", "istio-proxy", "plutono")
    await install_istio_crds(node_client)
    for obj in permissions(node_namespace):
        await node_client.create(obj)
    yield node_namespace
    await node_client.delete(POD, Key(node_namespace, "istiod"))
    for kind in (BINDING, ROLE):
        await node_client.delete(kind, Key("", node_namespace))
    for namespace in await node_client.list(NAMESPACE, metadata_only=True):
        try:
            key = Key(namespace["metadata"]["name"], ROOT)
            await node_client.delete(CONFIG_MAP, key)
        except NotFound:
            continue


def permissions(namespace: str) -> list[JsonObject]:
    meta = {"name": namespace}
    subject = {"kind": "ServiceAccount", "name": "istiod", "namespace": namespace}
    role = {"apiGroup": ROLE.group, "kind": ROLE.kind, "name": namespace}
    account: JsonObject = {
        "apiVersion": "v1",
        "kind": "ServiceAccount",
        "metadata": {"name": "istiod", "namespace": namespace},
    }
    return [
        account,
        {"apiVersion": ROLE.api_version, "kind": ROLE.kind, "metadata": meta, "rules": RULES},
        {
            "apiVersion": BINDING.api_version,
            "kind": BINDING.kind,
            "metadata": meta,
            "roleRef": role,
            "subjects": [subject],
        },
    ]


def control_plane(namespace: str) -> list[JsonObject]:
    """Return istiod as in its Deployment, and its Service."""
    container: JsonObject = {
        "name": "discovery",
        "image": PILOT,
        "args": ["discovery", "--monitoringAddr=:15014"],
        "env": [from_field("POD_NAMESPACE", "metadata.namespace")],
        "readinessProbe": {"httpGet": {"path": "/ready", "port": 8080}, "periodSeconds": 1},
        "securityContext": restricted(),
    }
    spec = {"serviceAccountName": "istiod", "containers": [container], "securityContext": user()}
    labels = {"app": "istiod"}
    return [
        pod(namespace, "istiod", labels, spec),
        service(namespace, "istiod", labels, port=15012, target=15012),
    ]


def ingress(namespace: str) -> list[JsonObject]:
    """Return a gateway as in its Deployment, and its Service."""
    container: JsonObject = {
        "name": "istio-proxy",
        "image": PROXY,
        "args": ["proxy", "router", f"--domain={namespace}.svc.cluster.local"],
        "env": [
            {"name": "CA_ADDR", "value": f"istiod.{namespace}.svc:15012"},
            from_field("POD_NAME", "metadata.name"),
            from_field("POD_NAMESPACE", "metadata.namespace"),
            from_field("INSTANCE_IP", "status.podIP"),
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
        "securityContext": user(),
        "volumes": [
            {"name": "istiod-ca-cert", "configMap": {"name": ROOT}},
            {"name": "podinfo", "downwardAPI": {"items": [labels]}},
        ],
    }
    return [
        pod(namespace, "gateway", INGRESS, spec),
        service(namespace, "gateway", INGRESS, port=443, target=9443),
    ]


def gateway(namespace: str) -> JsonObject:
    server = {
        "hosts": ["*.example.com"],
        "port": {"name": "tls", "number": 443, "protocol": "TLS"},
        "tls": {"mode": "PASSTHROUGH"},
    }
    spec = {"selector": INGRESS, "servers": [server]}
    return istio_object(GATEWAY, namespace, "ingress", spec)


def route(namespace: str, name: str) -> list[JsonObject]:
    """Return a Service with what routes a server name to it."""
    host = f"{name}.{namespace}.svc.cluster.local"
    rule = {
        "match": [{"port": 443, "sniHosts": [f"{name}.example.com"]}],
        "route": [{"destination": {"host": host, "port": {"number": 443}}}],
    }
    policy = {"connectionPool": {"tcp": {"tcpKeepalive": {"time": "7200s", "interval": "75s"}}}}
    virtual_service = {
        "hosts": [f"{name}.example.com"],
        "gateways": ["ingress"],
        "exportTo": ["*"],
        "tls": [rule],
    }
    return [
        service(namespace, name, {"app": name}, port=443, target=SERVER_PORT),
        istio_object(VIRTUAL_SERVICE, namespace, name, virtual_service),
        istio_object(DESTINATION_RULE, namespace, name, {"host": host, "trafficPolicy": policy}),
    ]


def server(namespace: str, name: str) -> JsonObject:
    container: JsonObject = {
        "name": "server",
        "image": TLS_SERVER,
        "readinessProbe": {"tcpSocket": {"port": SERVER_PORT}, "periodSeconds": 1},
        "securityContext": restricted(),
    }
    return pod(namespace, name, {"app": name}, {"containers": [container]})


def istio_object(kind: GroupVersionKind, namespace: str, name: str, spec: JsonObject) -> JsonObject:
    meta = {"name": name, "namespace": namespace}
    return {"apiVersion": kind.api_version, "kind": kind.kind, "metadata": meta, "spec": spec}


def pod(namespace: str, name: str, labels: dict[str, str], spec: JsonObject) -> JsonObject:
    meta = {"name": name, "namespace": namespace, "labels": labels}
    spec = {"terminationGracePeriodSeconds": 1, **spec}
    return {"apiVersion": "v1", "kind": "Pod", "metadata": meta, "spec": spec}


def service(
    namespace: str, name: str, selector: dict[str, str], *, port: int, target: int
) -> JsonObject:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": name, "namespace": namespace},
        "spec": {"selector": selector, "ports": [{"port": port, "targetPort": target}]},
    }


def from_field(name: str, path: str) -> JsonObject:
    return {"name": name, "valueFrom": {"fieldRef": {"fieldPath": path}}}


def user() -> JsonObject:
    return {"runAsUser": 1337, "runAsGroup": 1337, "runAsNonRoot": True, "fsGroup": 1337}


def restricted() -> JsonObject:
    return {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


async def port_of(sandbox: Sandbox, client: Client, key: Key) -> int:
    """Forward a port of this machine to a Service."""
    found = await client.get(SERVICE, key)
    return await sandbox.forward(map_at(found, "spec")["clusterIP"], 443)


async def certificate(port: int, name: str) -> bytes:
    """Return the certificate of the server that a TLS connection with a server name reaches."""
    context = ssl.create_default_context()
    context.check_hostname, context.verify_mode = False, ssl.CERT_NONE
    _, writer = await asyncio.open_connection("127.0.0.1", port, ssl=context, server_hostname=name)
    found: bytes = writer.get_extra_info("ssl_object").getpeercert(binary_form=True)
    writer.close()
    return found
