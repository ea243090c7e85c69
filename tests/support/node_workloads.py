"""Workloads for tests with a real node, and requests to them from this machine."""

import asyncio
import json
import struct
import urllib.request
from typing import Final

from pergola.api.objects import JsonObject

ETCD: Final = "registry.k8s.io/etcd:v3.6.8"
_LABELS: Final = {"app": "etcd"}


def etcd_container(image: str = ETCD) -> JsonObject:
    """Return etcd as a container that takes no privileges, with its data on volume `data`."""
    anywhere = "http://0.0.0.0:2379"
    return {
        "name": "etcd",
        "image": image,
        "args": [
            "--data-dir=/data/etcd",
            f"--listen-client-urls={anywhere}",
            f"--advertise-client-urls={anywhere}",
        ],
        "readinessProbe": {"httpGet": {"path": "/readyz", "port": 2379}, "periodSeconds": 1},
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
        "volumeMounts": [{"name": "data", "mountPath": "/data"}],
    }


def etcd_pod(namespace: str, name: str = "etcd", image: str = ETCD) -> JsonObject:
    """Return a pod of etcd whose data goes with it."""
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": _LABELS},
        "spec": {
            "containers": [etcd_container(image)],
            "terminationGracePeriodSeconds": 1,
            "volumes": [{"name": "data", "emptyDir": {}}],
        },
    }


def etcd_with_a_claim(namespace: str) -> list[JsonObject]:
    """Return a Service and a StatefulSet of etcd whose data stays."""
    claim = {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": "100Mi"}}}
    template = {
        "metadata": {"labels": _LABELS},
        "spec": {"containers": [etcd_container()], "terminationGracePeriodSeconds": 1},
    }
    return [
        {
            "apiVersion": "v1",
            "kind": "Service",
            "metadata": {"name": "etcd", "namespace": namespace},
            "spec": {"selector": _LABELS, "ports": [{"name": "client", "port": 2379}]},
        },
        {
            "apiVersion": "apps/v1",
            "kind": "StatefulSet",
            "metadata": {"name": "etcd", "namespace": namespace},
            "spec": {
                "serviceName": "etcd",
                "replicas": 1,
                "selector": {"matchLabels": _LABELS},
                "template": template,
                "volumeClaimTemplates": [{"metadata": {"name": "data"}, "spec": claim}],
            },
        },
    ]


def is_ready(obj: JsonObject) -> bool:
    """Return whether a pod, or all replicas of a StatefulSet, can be used."""
    status = obj.get("status", {})
    if obj["kind"] == "Pod":
        conditions = {c["type"]: c["status"] for c in status.get("conditions", [])}
        return conditions.get("Ready") == "True" and "deletionTimestamp" not in obj["metadata"]
    return bool(status.get("readyReplicas") == obj["spec"]["replicas"])


async def etcd_call(
    port: int, method: str, body: dict[str, str], *, host: str = "127.0.0.1"
) -> JsonObject:
    """Call the JSON gateway of an etcd on a loopback port of this machine."""
    url = f"http://{host}:{port}/v3/kv/{method}"
    request = urllib.request.Request(url, json.dumps(body).encode())

    def call() -> JsonObject:
        with urllib.request.urlopen(request, timeout=60) as answer:  # noqa: S310 - http
            content: JsonObject = json.load(answer)
            return content

    return await asyncio.to_thread(call)


async def resolve(port: int, name: str) -> str:
    """Ask a DNS server on a loopback port, by TCP, for the first address of a name."""
    labels = b"".join(bytes([len(label)]) + label.encode() for label in name.split("."))
    query = struct.pack(">6H", 7, 0x0100, 1, 0, 0, 0) + labels + b"\0" + struct.pack(">2H", 1, 1)
    reader, writer = await asyncio.open_connection("127.0.0.1", port)
    writer.write(struct.pack(">H", len(query)) + query)
    (size,) = struct.unpack(">H", await reader.readexactly(2))
    answer = await reader.readexactly(size)
    writer.close()
    (count,) = struct.unpack(">H", answer[6:8])
    assert count, f"{name} has no address"
    return ".".join(str(byte) for byte in answer[-4:])
