"""Defaults of workloads, autoscalers and disruption budgets."""

from collections.abc import Mapping
from typing import Final

from pergola.api.objects import JsonValue, labels_of, map_at
from pergola.kube.equality.defaults_pods import (
    CLAIM_TEMPLATE,
    POD_TEMPLATE,
    SELECTOR,
)
from pergola.kube.equality.shapes import (
    QUANTITY,
    SERVER,
    TEXTS,
    Beside,
    Default,
    Derived,
    Shape,
)

DEPLOYMENT: Final[Mapping[str, Shape]] = {
    "spec": {
        "replicas": 1,
        "minReadySeconds": 0,
        "revisionHistoryLimit": 10,
        "progressDeadlineSeconds": 600,
        "paused": False,
        "strategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": "25%", "maxUnavailable": "25%"},
        },
        "template": POD_TEMPLATE,
    }
}
STATEFUL_SET: Final[Mapping[str, Shape]] = {
    "spec": {
        "replicas": 1,
        "minReadySeconds": 0,
        "serviceName": "",
        "revisionHistoryLimit": 10,
        "podManagementPolicy": "OrderedReady",
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"partition": 0, "maxUnavailable": 1},
        },
        "persistentVolumeClaimRetentionPolicy": {"whenDeleted": "Retain", "whenScaled": "Retain"},
        "template": POD_TEMPLATE,
        "volumeClaimTemplates": CLAIM_TEMPLATE,
    }
}
DAEMON_SET: Final[Mapping[str, Shape]] = {
    "spec": {
        "minReadySeconds": 0,
        "revisionHistoryLimit": 10,
        "updateStrategy": {
            "type": "RollingUpdate",
            "rollingUpdate": {"maxSurge": 0, "maxUnavailable": 1},
        },
        "template": POD_TEMPLATE,
    }
}
REPLICA_SET: Final[Mapping[str, Shape]] = {
    "spec": {"replicas": 1, "minReadySeconds": 0, "template": POD_TEMPLATE}
}


def _selector_of_template(beside: Beside) -> JsonValue:
    return {**labels_of(map_at(beside, "template"))} or None


REPLICATION_CONTROLLER: Final[Mapping[str, Shape]] = {
    "spec": {
        "replicas": 1,
        "minReadySeconds": 0,
        "selector": Derived(_selector_of_template),
        "template": POD_TEMPLATE,
    }
}


def _completions(beside: Beside) -> JsonValue:
    return None if beside.get("parallelism") is not None else 1


def _pod_replacement(beside: Beside) -> JsonValue:
    return "Failed" if beside.get("podFailurePolicy") else "TerminatingOrFailed"


def _backoff_limit(beside: Beside) -> JsonValue:
    return 6 if beside.get("backoffLimitPerIndex") is None else 2**31 - 1


_JOB_SPEC: Final[Mapping[str, Shape]] = {
    "backoffLimit": Derived(_backoff_limit),
    "completions": Derived(_completions),
    "parallelism": 1,
    "completionMode": "NonIndexed",
    "suspend": False,
    "manualSelector": False,
    "podReplacementPolicy": Derived(_pod_replacement),
    "podFailurePolicy": {"rules": {"onPodConditions": {"status": "True"}}},
    "template": POD_TEMPLATE,
}
JOB: Final[Mapping[str, Shape]] = {"spec": {**_JOB_SPEC, "selector": SERVER}}
CRON_JOB: Final[Mapping[str, Shape]] = {
    "spec": {
        "concurrencyPolicy": "Allow",
        "suspend": False,
        "successfulJobsHistoryLimit": 3,
        "failedJobsHistoryLimit": 1,
        "jobTemplate": {
            "metadata": {"creationTimestamp": SERVER, "labels": TEXTS, "annotations": TEXTS},
            "spec": _JOB_SPEC,
        },
    }
}

_TARGET: Final[Mapping[str, Shape]] = {"value": QUANTITY, "averageValue": QUANTITY}
_METRIC: Final[Mapping[str, Shape]] = {
    "metric": {"selector": SELECTOR},
    "target": _TARGET,
}
_METRICS: Final[Mapping[str, Shape]] = {
    "resource": _METRIC,
    "containerResource": _METRIC,
    "pods": _METRIC,
    "object": _METRIC,
    "external": _METRIC,
}
_CPU_OF_80_PERCENT: Final[JsonValue] = [
    {
        "type": "Resource",
        "resource": {"name": "cpu", "target": {"type": "Utilization", "averageUtilization": 80}},
    }
]
_DOUBLE: Final[JsonValue] = {"type": "Percent", "value": 100, "periodSeconds": 15}
_FOUR_MORE: Final[JsonValue] = {"type": "Pods", "value": 4, "periodSeconds": 15}
HORIZONTAL_POD_AUTOSCALER: Final[Mapping[str, Shape]] = {
    "spec": {
        "minReplicas": 1,
        "targetCPUUtilizationPercentage": 80,
        "metrics": Default(_CPU_OF_80_PERCENT, _METRICS),
        "behavior": {
            "scaleUp": {
                "stabilizationWindowSeconds": 0,
                "selectPolicy": "Max",
                "policies": [_FOUR_MORE, _DOUBLE],
                "tolerance": QUANTITY,
            },
            "scaleDown": {"selectPolicy": "Max", "policies": [_DOUBLE], "tolerance": QUANTITY},
        },
    }
}
POD_DISRUPTION_BUDGET: Final[Mapping[str, Shape]] = {"spec": {"selector": SELECTOR}}
