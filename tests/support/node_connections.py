"""Connections between pods on a real node, tried by pods that run once and report the outcome."""

import secrets
from typing import Final

from pergola.api.kinds import POD
from pergola.api.objects import JsonObject, Key, map_at, maps_at
from pergola.kube.client import Client
from pergola.testing.waiting import until

CONNECTED: Final = "connected"
REFUSED: Final = "refused"
UNKNOWN_NAME: Final = "unknown name"

_IMAGE: Final = "registry.example/pergola:v1"
_PYTHON: Final = "/usr/local/bin/python3"
_PATIENCE: Final = 200.0  # seconds; the first pod waits for the build of its image
_PROGRAM: Final = f"""\
import socket, sys
outcome = "{CONNECTED}"
try:
    address = socket.gethostbyname(sys.argv[1])
    socket.create_connection((address, int(sys.argv[2]))).close()
except socket.gaierror:
    outcome = "{UNKNOWN_NAME}"
except ConnectionRefusedError:
    outcome = "{REFUSED}"
with open("/dev/termination-log", "w") as log:
    log.write(outcome)
"""


async def connect(
    client: Client, namespace: str, host: str, port: int, labels: dict[str, str] | None = None
) -> str:
    """Run a pod that connects once, and return the outcome.

    The network has the rules of a pod before its containers start, so that there is one outcome.

    Args:
        labels: the labels of the pod, by which policies select it.
    """
    key = Key(namespace, f"caller-{secrets.token_hex(4)}")
    await client.create(_caller(key, host, port, labels or {}))
    pod = await until(client, POD, key, _has_ended, patience=_PATIENCE)
    (container,) = maps_at(pod, "status", "containerStatuses")
    return str(map_at(container, "state", "terminated").get("message", "no outcome"))


def _caller(key: Key, host: str, port: int, labels: dict[str, str]) -> JsonObject:
    container: JsonObject = {
        "name": "caller",
        "image": _IMAGE,
        "command": [_PYTHON, "-c", _PROGRAM, host, str(port)],
        "securityContext": {
            "allowPrivilegeEscalation": False,
            "capabilities": {"drop": ["ALL"]},
            "readOnlyRootFilesystem": True,
            "runAsNonRoot": True,
            "seccompProfile": {"type": "RuntimeDefault"},
        },
    }
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": key.name, "namespace": key.namespace, "labels": labels},
        "spec": {
            "automountServiceAccountToken": False,
            "containers": [container],
            "restartPolicy": "Never",
            "terminationGracePeriodSeconds": 1,
        },
    }


def _has_ended(pod: JsonObject) -> bool:
    return map_at(pod, "status").get("phase") in ("Succeeded", "Failed")
