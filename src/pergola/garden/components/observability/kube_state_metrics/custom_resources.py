"""Metrics of custom resources: Gardens, extensions and vertical pod autoscalers."""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.objects import JsonObject

_GARDENER: Final = "operator.gardener.cloud"
_PREFIX: Final = "garden"
_CONDITION_STATES: Final = ("Progressing", "True", "False", "Unknown")
_OPERATION_STATES: Final = ("Processing", "Succeeded", "Error", "Failed", "Pending", "Aborted")
_UPDATE_MODES: Final = ("Off", "Initial", "Recreate", "InPlaceOrRecreate", "Auto")
_UNITS: Final = {"cpu": "core", "memory": "byte"}
_RECOMMENDED: Final = ("status", "recommendation", "containerRecommendations")
_BOUNDED: Final = ("spec", "resourcePolicy", "containerPolicies")
_AMOUNTS: Final = {
    "target": (_RECOMMENDED, "The {0} that is recommended for a container."),
    "upperBound": (_RECOMMENDED, "The {0} above which a container is resized."),
    "lowerBound": (_RECOMMENDED, "The {0} below which a container is resized."),
    "uncappedTarget": (_RECOMMENDED, "The {0} that would be recommended without bounds."),
    "minAllowed": (_BOUNDED, "The least {0} that may be recommended for a container."),
    "maxAllowed": (_BOUNDED, "The most {0} that may be recommended for a container."),
}
_UPDATE_MODE: Final = ("spec", "updatePolicy", "updateMode")
_AUTOSCALER_LABELS: Final = {
    "verticalpodautoscaler": ("metadata", "name"),
    "namespace": ("metadata", "namespace"),
    "target_api_version": ("spec", "targetRef", "apiVersion"),
    "target_kind": ("spec", "targetRef", "kind"),
    "target_name": ("spec", "targetRef", "name"),
}


def custom_resource_metrics() -> JsonObject:
    """Return the configuration file of kube-state-metrics for custom resources."""
    named = {"name": ("metadata", "name")}
    operation = _garden_operation()
    resources = [
        _resource(_GARDENER, "v1alpha1", "Garden", named, _condition("garden"), operation),
        _resource(_GARDENER, "v1alpha1", "Extension", named, _condition("extension")),
        _resource(
            "autoscaling.k8s.io",
            "v1",
            "VerticalPodAutoscaler",
            _AUTOSCALER_LABELS,
            *_amounts(),
            _update_mode(),
        ),
    ]
    return {"kind": "CustomResourceStateMetrics", "spec": {"resources": resources}}


def metric_names() -> list[str]:
    """Return the names of these metrics as the exporter serves them, with prefix."""
    return [
        f"{_PREFIX}_garden_condition",
        f"{_PREFIX}_garden_last_operation",
        f"{_PREFIX}_extension_condition",
        *(f"kube_customresource_{metric['name']}" for metric in (*_amounts(), _update_mode())),
    ]


def _resource(
    group: str, version: str, kind: str, labels: Mapping[str, tuple[str, ...]], *metrics: JsonObject
) -> JsonObject:
    prefix = {"metricNamePrefix": _PREFIX} if group == _GARDENER else {}
    return {
        "groupVersionKind": {"group": group, "version": version, "kind": kind},
        **prefix,
        "labelsFromPath": {label: list(path) for label, path in labels.items()},
        "metrics": list(metrics),
    }


def _condition(kind: str) -> JsonObject:
    states = _states(("status", "conditions"), "status", _CONDITION_STATES, {"condition": "type"})
    return {
        "name": f"{kind}_condition",
        "help": f"The status of each condition of a {kind.capitalize()}.",
        "each": states,
    }


def _garden_operation() -> JsonObject:
    states = _states(("status", "lastOperation"), "state", _OPERATION_STATES, {"type": "type"})
    return {
        "name": "garden_last_operation",
        "help": "The state of the last operation of a Garden.",
        "each": states,
    }


def _states(
    path: tuple[str, ...], field: str, states: tuple[str, ...], labels: Mapping[str, str]
) -> JsonObject:
    """Return a metric with one series per state: 1 for the current state, 0 for the others."""
    state_set: JsonObject = {
        "path": list(path),
        "labelName": field,
        "valueFrom": [field],
        "list": list(states),
        "labelsFromPath": {label: [name] for label, name in labels.items()},
    }
    return {"type": "StateSet", "stateSet": state_set}


def _amounts() -> Iterator[JsonObject]:
    for resource, unit in _UNITS.items():
        for field, (path, text) in _AMOUNTS.items():
            gauge: JsonObject = {
                "path": list(path),
                "labelsFromPath": {"container": ["containerName"]},
                "valueFrom": [field, resource],
                "nilIsZero": True,
            }
            yield {
                "name": _name(*path, field, resource),
                "help": text.format(resource),
                "commonLabels": {"unit": unit},
                "each": {"type": "Gauge", "gauge": gauge},
            }


def _update_mode() -> JsonObject:
    state_set = {
        "path": list(_UPDATE_MODE),
        "labelName": "update_mode",
        "list": list(_UPDATE_MODES),
    }
    return {
        "name": _name(*_UPDATE_MODE),
        "help": "How recommendations are applied.",
        "each": {"type": "StateSet", "stateSet": state_set},
    }


def _name(*path: str) -> str:
    return "_".join(("verticalpodautoscaler", *path)).lower()
