"""All components of a Garden, in the order in which a reader expects them (spec 20 §12, §13)."""

from typing import Final

from pergola.operator.components.component import Component
from pergola.operator.components.etcd_druid import ETCD_DRUID
from pergola.operator.components.priority_classes import PRIORITY_CLASSES
from pergola.operator.components.virtual_access import GENERIC_KUBECONFIG

CATALOG: Final[tuple[Component, ...]] = (
    PRIORITY_CLASSES,
    ETCD_DRUID,
    GENERIC_KUBECONFIG,
)


def component(name: str) -> Component:
    """Return a component by its name.

    Raises:
        KeyError: There is no such component.
    """
    return {each.name: each for each in CATALOG}[name]
