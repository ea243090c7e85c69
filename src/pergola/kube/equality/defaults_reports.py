"""Defaults of objects that mostly controllers write: endpoints, Events, Leases, devices."""

from collections.abc import Mapping
from typing import Final

from pergola.kube.equality.defaults_pods import SELECTOR
from pergola.kube.equality.shapes import (
    EXACT,
    QUANTITY,
    SERVER,
    TEXTS,
    Each,
    Shape,
)

_PORTS: Final[Mapping[str, Shape]] = {"name": "", "protocol": "TCP"}
ENDPOINTS: Final[Mapping[str, Shape]] = {"subsets": {"ports": _PORTS}}
ENDPOINT_SLICE: Final[Mapping[str, Shape]] = {
    "endpoints": {"conditions": {}},
    "ports": _PORTS,
}
_SOURCE: Final[Mapping[str, Shape]] = {"component": "", "host": ""}
_REPORTED: Final[Mapping[str, Shape]] = dict.fromkeys(
    ("action", "message", "note", "reason", "type", "reportingComponent", "reportingInstance"), ""
)
CORE_EVENT: Final[Mapping[str, Shape]] = {
    **_REPORTED,
    "source": _SOURCE,
    "involvedObject": {},
    "count": 0,
}
EVENT: Final[Mapping[str, Shape]] = {
    **_REPORTED,
    "reportingController": "",
    "deprecatedSource": _SOURCE,
    "deprecatedCount": 0,
    "regarding": {},
}
LEASE: Final[Mapping[str, Shape]] = {
    "spec": dict.fromkeys(
        (
            "acquireTime",
            "holderIdentity",
            "leaseDurationSeconds",
            "leaseTransitions",
            "preferredHolder",
            "renewTime",
            "strategy",
        ),
        SERVER,
    )
}
"""A Lease belongs to its holder."""
SIGNING_REQUEST: Final[Mapping[str, Shape]] = {
    "spec": {**dict.fromkeys(("username", "uid", "groups", "extra"), SERVER), "request": EXACT}
}
STORAGE_CAPACITY: Final[Mapping[str, Shape]] = {
    "nodeTopology": SELECTOR,
    "capacity": QUANTITY,
    "maximumVolumeSize": QUANTITY,
}

_TOLERATIONS: Final[Mapping[str, Shape]] = {"key": "", "operator": "Equal", "value": ""}
_REQUEST: Final[Mapping[str, Shape]] = {
    "allocationMode": "ExactCount",
    "count": 1,
    "adminAccess": False,
    "tolerations": _TOLERATIONS,
}
_CLAIM_SPEC: Final[Mapping[str, Shape]] = {
    "devices": {"requests": {"exactly": _REQUEST, "firstAvailable": _REQUEST}}
}
CLAIM: Final[Mapping[str, Shape]] = {"spec": _CLAIM_SPEC}
CLAIM_TEMPLATE: Final[Mapping[str, Shape]] = {
    "spec": {
        "metadata": {"creationTimestamp": SERVER, "labels": TEXTS, "annotations": TEXTS},
        "spec": _CLAIM_SPEC,
    }
}
DEVICE_CLASS: Final[Mapping[str, Shape]] = {"spec": {}}
RESOURCE_SLICE: Final[Mapping[str, Shape]] = {
    "spec": {
        "allNodes": False,
        "nodeName": "",
        "devices": {"capacity": Each({"value": QUANTITY})},
    }
}
