"""The priority classes of the garden's components (spec 20 §13)."""

from typing import Final

from pergola.api.objects import JsonObject
from pergola.garden.components import task_names
from pergola.garden.components.component import Component, Managed, Rendered
from pergola.garden.landscape import Landscape
from pergola.manifests import manifest

CRITICAL: Final = "gardener-garden-system-critical"
"""The class of components that all others depend on; the operator's chart creates it."""
P500: Final = "gardener-garden-system-500"
P400: Final = "gardener-garden-system-400"
P300: Final = "gardener-garden-system-300"
P200: Final = "gardener-garden-system-200"
P100: Final = "gardener-garden-system-100"

_VALUES: Final = {
    P500: 999999500,
    P400: 999999400,
    P300: 999999300,
    P200: 999999200,
    P100: 999999100,
}


def render(landscape: Landscape) -> Rendered:
    """Return the priority classes, without `CRITICAL`."""
    del landscape
    classes = tuple(_priority_class(name, value) for name, value in _VALUES.items())
    return Rendered(managed=(Managed(name="garden-system", objects=classes),))


def _priority_class(name: str, value: int) -> JsonObject:
    return manifest(
        "scheduling.k8s.io/v1",
        "PriorityClass",
        name,
        description="PriorityClass for Garden system components",
        value=value,
    )


PRIORITY_CLASSES: Final = Component(
    name="garden-system",
    deploy=task_names.RUNTIME_SYSTEM,
    after=(task_names.RESOURCE_MANAGER,),
    render=render,
    is_setup=True,
    limit=120.0,
)
