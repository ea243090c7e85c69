"""Gardens for tests: a minimal one, variants of it, and the findings of validation."""

import copy
from typing import Any, Final

import orjson

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import garden_from
from pergola.garden.rules.validation import Facts, check_garden

MINIMAL: Final[JsonObject] = {
    "apiVersion": "operator.gardener.cloud/v1alpha1",
    "kind": "Garden",
    "metadata": {"name": "minimal"},
    "spec": {
        "runtimeCluster": {
            "ingress": {
                "domains": [{"name": "ingress.example.org"}],
                "controller": {"kind": "nginx"},
            },
            "networking": {"pods": ["10.1.0.0/16"], "services": ["10.2.0.0/16"]},
            "provider": {},
        },
        "virtualCluster": {
            "dns": {"domains": [{"name": "garden.example.org"}]},
            "gardener": {"clusterIdentity": "minimal"},
            "kubernetes": {"version": "1.34.2"},
            "maintenance": {"timeWindow": {"begin": "220000+0100", "end": "230000+0100"}},
            "networking": {"services": ["100.64.0.0/13"]},
        },
    },
}

RUNTIME: Final = "spec.runtimeCluster"
VIRTUAL: Final = "spec.virtualCluster"
SERVER: Final = f"{VIRTUAL}.kubernetes.kubeAPIServer"
MANAGER: Final = f"{VIRTUAL}.kubernetes.kubeControllerManager"
GARDENER: Final = f"{VIRTUAL}.gardener"


def with_values(garden: JsonObject, values: dict[str, Any]) -> JsonObject:
    """Return a Garden with other values at dotted paths; `...` in place of a value removes it."""
    changed: JsonObject = orjson.loads(orjson.dumps(garden))  # without parts that are shared
    for path, value in values.items():
        *parents, last = path.replace("[", ".[").split(".")
        here: JsonObject = changed
        for step in parents:
            here = here.setdefault(step, {})
        if value is Ellipsis:
            here.pop(last, None)
        else:
            here[last] = value
    return changed


def operations(annotation: str, **rotations: str) -> JsonObject:
    """Return a Garden with requested operations, and rotations in some phases."""
    garden = copy.deepcopy(MINIMAL)
    garden["metadata"]["annotations"] = {"gardener.cloud/operation": annotation}
    phases: JsonObject = {name: {"phase": phase} for name, phase in rotations.items()}
    garden["status"] = {"credentials": {"rotation": phases}}
    return garden


FACTS: Final = Facts(extension_types=frozenset({"certificates"}))


def findings(garden: JsonObject, facts: Facts = FACTS) -> list[tuple[str, str]]:
    """Return the reason, without its prefix, and the field of each finding."""
    return [
        (cause.reason.removeprefix("FieldValue"), cause.field)
        for cause in check_garden(garden_from(garden), facts)
    ]
