"""Nodes that wait for critical components, with DaemonSets and pods, and Nodes with agents."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.kubernetes import some
from pergola.api.objects import JsonObject
from pergola.resource_manager.controllers.node_agent_reconciliation_delay import (
    DELAY,
    SECRET_NAME,
    SERIAL,
)
from pergola.resource_manager.controllers.node_critical_components.seen import (
    CRITICAL,
    TAINT,
    WAIT_FOR_CSI_PREFIX,
)

NODE_NAME: Final = "node-a"
_MOSTLY: Final = 6
_EFFECTS: Final = ("NoSchedule", "NoExecute", "PreferNoSchedule")
_TAINT_KEYS: Final = (
    *("a", "node.kubernetes.io/not-ready", "node.kubernetes.io/unschedulable"),
    *("node.kubernetes.io/network-unavailable", "node.kubernetes.io/memory-pressure"),
)
_FLAGS: Final = st.sampled_from(["true"] * _MOSTLY + ["false", ""])
_NAMESPACES: Final = st.sampled_from(["kube-system"] * _MOSTLY + ["default"])
_NUMBERS: Final = ("5", "05", "+5", "-1", "x", "", str(2**63))

_TAINTS: Final = st.lists(
    some(
        {"value": st.sampled_from(["", "b"])},
        {
            "key": st.sampled_from([TAINT] * _MOSTLY + [*_TAINT_KEYS]),
            "effect": st.sampled_from(_EFFECTS),
        },
    ),
    min_size=1,
    max_size=3,
    unique_by=lambda taint: (taint["key"], taint["effect"]),
)
_LABELS: Final = some(
    {"pool": st.sampled_from(["a", "b", ""]), "size": st.sampled_from(_NUMBERS[:5])}
)


def _toleration(parts: JsonObject) -> JsonObject:
    """Return a toleration that an API server accepts."""
    found = dict(parts)
    if found.get("operator") == "Exists":
        found.pop("value", None)
    elif not found.get("key"):
        found["key"] = "a"
    if found.get("effect") != "NoExecute":
        found.pop("tolerationSeconds", None)
    return found


_TOLERATIONS: Final = st.lists(
    some(
        {
            "key": st.sampled_from([TAINT] * _MOSTLY + ["", *_TAINT_KEYS]),
            "operator": st.sampled_from(["Exists", "Exists", "Equal", ""]),
            "value": st.sampled_from(["", "b"]),
            "effect": st.sampled_from(["", *_EFFECTS]),
            "tolerationSeconds": st.just(60),
        }
    ).map(_toleration),
    max_size=3,
)
_KEYS: Final = st.sampled_from(["pool", "size", "missing"])
_VALUES: Final = st.lists(st.sampled_from(["a", "b", "", "5"]), min_size=1, max_size=2)
_EXPRESSIONS: Final = st.one_of(
    st.fixed_dictionaries(
        {"key": _KEYS, "operator": st.sampled_from(["In", "NotIn"]), "values": _VALUES}
    ),
    st.fixed_dictionaries({"key": _KEYS, "operator": st.sampled_from(["Exists", "DoesNotExist"])}),
    st.fixed_dictionaries(
        {
            "key": _KEYS,
            "operator": st.sampled_from(["Gt", "Lt"]),
            "values": st.sampled_from(_NUMBERS).map(lambda number: [number]),
        }
    ),
)
_FIELDS: Final = st.fixed_dictionaries(
    {
        "key": st.just("metadata.name"),
        "operator": st.sampled_from(["In", "NotIn"]),
        "values": st.sampled_from([[NODE_NAME], ["node-b"]]),
    }
)
_TERMS: Final = st.lists(
    some(
        {
            "matchExpressions": st.lists(_EXPRESSIONS, max_size=2),
            "matchFields": st.lists(_FIELDS, max_size=1),
        }
    ),
    min_size=1,
    max_size=2,
)
_POD_SPEC: Final = some(
    {
        "nodeName": st.sampled_from([NODE_NAME, "node-b"]),
        "nodeSelector": _LABELS,
        "hostNetwork": st.booleans(),
        "tolerations": _TOLERATIONS,
        "affinity": _TERMS.map(
            lambda terms: {
                "nodeAffinity": {
                    "requiredDuringSchedulingIgnoredDuringExecution": {"nodeSelectorTerms": terms}
                }
            }
        ),
    }
)
_TOLERANT: Final = st.builds(
    lambda spec: {**spec, "tolerations": [{"operator": "Exists"}, *spec.get("tolerations", [])]},
    _POD_SPEC,
)


def _leaving(metadata: JsonObject) -> JsonObject:
    return {
        **metadata,
        "deletionTimestamp": "2026-01-01T00:00:00Z",
        "finalizers": ["example.com/f"],
    }


def _daemon_set(number: int, parts: JsonObject) -> JsonObject:
    metadata = {
        "name": f"daemon-{number}",
        "namespace": parts["namespace"],
        "uid": f"uid-{number}",
        "labels": {CRITICAL: parts["critical"]},
    }
    template = {"metadata": {"labels": {CRITICAL: parts["pods"]}}, "spec": parts["spec"]}
    return {
        "apiVersion": "apps/v1",
        "kind": "DaemonSet",
        "metadata": _leaving(metadata) if parts["leaving"] else metadata,
        "spec": {"template": template},
    }


_RARELY: Final = st.sampled_from([False] * 12 + [True])
_DAEMON_SETS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "namespace": _NAMESPACES,
            "critical": _FLAGS,
            "pods": _FLAGS,
            "spec": _POD_SPEC | _TOLERANT,
            "leaving": _RARELY,
        }
    ),
    max_size=3,
).map(lambda found: [_daemon_set(number, parts) for number, parts in enumerate(found)])


def _owner(kind: tuple[str, str], uid: str, is_controller: bool | None) -> JsonObject:
    found: JsonObject = {"apiVersion": kind[0], "kind": kind[1], "name": "owner", "uid": uid}
    return found if is_controller is None else {**found, "controller": is_controller}


_OWNERS: Final = st.builds(
    _owner,
    st.sampled_from(
        [("apps/v1", "DaemonSet")] * _MOSTLY
        + [("apps/v1beta2", "DaemonSet"), ("apps/v1", "ReplicaSet"), ("DaemonSet", "apps/v1")]
    ),
    st.sampled_from(["uid-0", "uid-0", "uid-1", "uid-2", "uid-9"]),
    st.sampled_from([True] * _MOSTLY + [False, None]),
)


def _pod(number: int, parts: JsonObject) -> JsonObject:
    drivers = {f"{WAIT_FOR_CSI_PREFIX}{key}": driver for key, driver in parts["drivers"].items()}
    metadata = {
        "name": f"pod-{number}",
        "namespace": parts["namespace"],
        "labels": {CRITICAL: parts["critical"]},
        "annotations": drivers,
        "ownerReferences": parts["owners"],
    }
    ready = [] if parts["ready"] is None else [{"type": "Ready", "status": parts["ready"]}]
    return {
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": _leaving(metadata) if parts["leaving"] else metadata,
        "spec": {"nodeName": parts["node"]},
        "status": {"phase": parts["phase"], "conditions": ready},
    }


_DRIVERS: Final = ("ebs.csi.aws.com", "efs.csi.aws.com", "")
_PODS: Final = st.lists(
    st.fixed_dictionaries(
        {
            "namespace": _NAMESPACES,
            "critical": _FLAGS,
            "drivers": st.dictionaries(
                st.sampled_from(["ebs", "efs", ""]), st.sampled_from(_DRIVERS), max_size=2
            ),
            "owners": st.lists(_OWNERS, max_size=2).filter(
                lambda owners: sum(bool(owner.get("controller")) for owner in owners) < 2
            ),
            "node": st.sampled_from([NODE_NAME] * _MOSTLY + ["node-b", ""]),
            "ready": st.sampled_from(["True"] * _MOSTLY + ["False", "Unknown", None]),
            "phase": st.sampled_from(["Running"] * 2 * _MOSTLY + ["Pending", "Failed"]),
            "leaving": _RARELY,
        }
    ),
    max_size=4,
).map(lambda found: [_pod(number, parts) for number, parts in enumerate(found)])


def _csi_node(name: str, drivers: list[str]) -> JsonObject:
    spec = {
        "drivers": [{"name": driver, "nodeID": "n", "topologyKeys": None} for driver in drivers]
    }
    return {
        "apiVersion": "storage.k8s.io/v1",
        "kind": "CSINode",
        "metadata": {"name": name},
        "spec": spec,
    }


_CSI_NODES: Final = st.lists(
    st.builds(
        _csi_node,
        st.sampled_from([NODE_NAME] * _MOSTLY + ["node-b"]),
        st.lists(st.sampled_from(_DRIVERS[:2]), max_size=2, unique=True),
    ),
    max_size=1,
)


def _node(labels: JsonObject, taints: list[JsonObject]) -> JsonObject:
    metadata = {"name": NODE_NAME, "labels": labels}
    return {"apiVersion": "v1", "kind": "Node", "metadata": metadata, "spec": {"taints": taints}}


def waiting_nodes() -> SearchStrategy[JsonObject]:
    """Return a Node with taints, and what it may wait for."""
    return st.builds(
        lambda node, *others: {
            "node": NODE_NAME,
            "objects": [node, *(each for found in others for each in found)],
        },
        st.builds(_node, _LABELS, _TAINTS),
        _DAEMON_SETS,
        _PODS,
        _CSI_NODES,
    )


_OF_AGENTS: Final[dict[str, SearchStrategy[Any]]] = {
    "labels": some({SECRET_NAME: st.sampled_from(["osc-a", "osc-b", "", "missing"])}),
    "annotations": some(
        {DELAY: st.sampled_from(["0s", "1m0s", "10s", "x", ""]), "other": st.just("x")}
    ),
}
_NAMES: Final = st.lists(
    st.sampled_from(
        ["a", "a-1", "a.b", "a0", "b", "node-1", "node-10", "node-2", "z", "z-z", "zz"]
    ),
    max_size=11,
    unique=True,
)


@st.composite
def _nodes(draw: st.DrawFn) -> list[JsonObject]:
    return [
        {
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": name, **draw(some(_OF_AGENTS))},
        }
        for name in draw(_NAMES)
    ]


def _secret(name: str, namespace: str, role: str, serial: str) -> JsonObject:
    metadata = {
        "name": name,
        "namespace": namespace,
        "labels": {"gardener.cloud/role": role},
        "annotations": {SERIAL: serial},
    }
    return {"apiVersion": "v1", "kind": "Secret", "metadata": metadata}


_SECRETS: Final = st.lists(
    st.builds(
        _secret,
        st.sampled_from(["osc-a", "osc-b", "osc-c"]),
        _NAMESPACES,
        st.sampled_from(["operating-system-config"] * _MOSTLY + ["other"]),
        st.sampled_from(["true"] * _MOSTLY + ["True", "1", ""]),
    ),
    max_size=3,
    unique_by=lambda secret: (secret["metadata"]["namespace"], secret["metadata"]["name"]),
)
_SHORTEST: Final = st.sampled_from(["0s", "0s", "5s", "1ms", "1.5s"])
_LONGEST: Final = st.sampled_from(["5m", "5m", "10m", "7s", "1h0m1s", "123456789us", "5s"])


def nodes_with_agents() -> SearchStrategy[JsonObject]:
    """Return Nodes, and the Secrets with the configurations of their operating systems."""
    return st.builds(
        lambda nodes, secrets, shortest, longest: {
            "objects": [*nodes, *secrets],
            "min": shortest,
            "max": longest,
        },
        _nodes(),
        _SECRETS,
        _SHORTEST,
        _LONGEST,
    )
