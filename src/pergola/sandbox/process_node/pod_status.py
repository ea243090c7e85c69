"""The statuses that a process node reports for its pods."""

from typing import Final

from pergola.api.objects import JsonObject, maps_at, uid_of
from pergola.sandbox.process_node.place import pod_address
from pergola.sandbox.process_node.process import Exit

# Far in the past, so that a Deployment does not wait until its `minReadySeconds` have passed.
_SINCE: Final = "2000-01-01T00:00:00Z"
_NODE: Final = "127.0.0.1"
_CONDITIONS: Final = ("PodReadyToStartContainers", "Initialized", "ContainersReady", "Ready")
_OF_CONTAINERS: Final = ("ContainersReady", "Ready")

CREATING: Final = "ContainerCreating"
CANNOT_START: Final = "CreateContainerError"


def running(
    pod: JsonObject, *, ready: bool, restarts: int, last_exit: Exit | None = None
) -> JsonObject:
    """Return the status of a pod whose process runs."""
    address = pod_address(uid_of(pod))
    return {
        "phase": "Running",
        "conditions": [
            _condition(kind, ready or kind not in _OF_CONTAINERS) for kind in _CONDITIONS
        ],
        "hostIP": _NODE,
        "hostIPs": [{"ip": _NODE}],
        "podIP": address,
        "podIPs": [{"ip": address}],
        "startTime": pod["metadata"]["creationTimestamp"],
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": ready,
                "started": True,
                "restartCount": restarts,
                "state": {"running": {"startedAt": pod["metadata"]["creationTimestamp"]}},
                "lastState": _ended(last_exit) if last_exit else {},
            }
            for container in maps_at(pod, "spec", "containers")
        ],
    }


def _ended(last: Exit) -> JsonObject:
    reason = "Error" if last.code else "Completed"
    return {"terminated": {"exitCode": last.code, "reason": reason, "message": last.log}}


def waiting(pod: JsonObject, reason: str, problem: str) -> JsonObject:
    """Return the status of a pod that cannot start yet, with the reason in its containers."""
    return {
        "phase": "Pending",
        "containerStatuses": [
            {
                "name": container["name"],
                "image": container["image"],
                "imageID": "",
                "ready": False,
                "started": False,
                "restartCount": 0,
                "state": {"waiting": {"reason": reason, "message": problem}},
            }
            for container in maps_at(pod, "spec", "containers")
        ],
    }


def differs(pod: JsonObject, status: JsonObject) -> bool:
    """Return whether a pod's status lacks any part of `status`."""
    current = pod.get("status", {})
    return any(not _includes(current.get(name), value) for name, value in status.items())


def _includes(current: object, desired: object) -> bool:
    if isinstance(desired, dict):
        return isinstance(current, dict) and all(
            _includes(current.get(name), value) for name, value in desired.items()
        )
    if isinstance(desired, list):
        pairs = list(zip(current, desired, strict=False)) if isinstance(current, list) else []
        return len(pairs) == len(desired) and all(_includes(*pair) for pair in pairs)
    return bool(current == desired)


def _condition(kind: str, value: bool) -> JsonObject:
    return {"type": kind, "status": str(value), "lastTransitionTime": _SINCE}
