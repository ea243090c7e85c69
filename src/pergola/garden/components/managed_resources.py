"""The ManagedResources of a Garden, determined without rendering them (spec 20 §13).

Rendering needs the credentials of a Garden. The necessary ManagedResources, and the condition of
the Garden that covers each, follow from the Garden and the operator's settings alone.
"""

from collections.abc import Callable, Iterable, Mapping
from typing import Final, NamedTuple

from pergola.api.objects import Key
from pergola.api.operator_v1alpha1.garden import (
    OBSERVABILITY_COMPONENTS_HEALTHY,
    RUNTIME_COMPONENTS_HEALTHY,
    VIRTUAL_COMPONENTS_HEALTHY,
)
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component, always
from pergola.garden.components.kube_apiserver_exposure.sni import passes_tls_on
from pergola.garden.components.service_mesh.permissions import NAMESPACE as ISTIO_SYSTEM
from pergola.garden.landscape import NAMESPACE, Landscape


class Expected(NamedTuple):
    """A ManagedResource that a Garden must have, and the condition that covers it."""

    key: Key
    condition: str


class _Row(NamedTuple):
    """The ManagedResources of a component.

    Attributes:
        absent: Returns why a Garden with the component lacks them, or None.
    """

    condition: str
    names: tuple[str, ...]
    namespace: str = NAMESPACE
    absent: Callable[[Landscape], str | None] = always


def expected(landscape: Landscape, components: Iterable[Component] = CATALOG) -> list[Expected]:
    """Return the ManagedResources that a Garden must have.

    The landscape needs neither credentials nor references.

    Args:
        components: The possible components of a Garden.
    """
    rows = [_ROWS[each.name] for each in components if _exists(each, landscape)]
    return [Expected(Key(row.namespace, name), row.condition) for row in rows for name in row.names]


def _exists(component: Component, landscape: Landscape) -> bool:
    """Return whether a Garden has the component, and therefore its ManagedResources."""
    row = _ROWS.get(component.name)
    return row is not None and component.absent(landscape) is None and not row.absent(landscape)


def _runtime(*names: str) -> _Row:
    return _Row(RUNTIME_COMPONENTS_HEALTHY, names)


def _virtual(*names: str) -> _Row:
    return _Row(VIRTUAL_COMPONENTS_HEALTHY, names)


def _observability(*names: str) -> _Row:
    return _Row(OBSERVABILITY_COMPONENTS_HEALTHY, names)


def _program(name: str) -> _Row:
    return _virtual(f"{name}-runtime", f"{name}-virtual")


_ROWS: Final[Mapping[str, _Row]] = {
    "garden-system": _runtime("garden-system"),
    "vpa": _runtime("vpa"),
    "etcd-druid": _runtime("etcd-druid"),
    "istio": _Row(
        RUNTIME_COMPONENTS_HEALTHY, ("istio-system", "virtual-garden-istio"), ISTIO_SYSTEM
    ),
    "nginx-ingress": _runtime("nginx-ingress"),
    "kube-apiserver-sni": _Row(
        RUNTIME_COMPONENTS_HEALTHY,
        ("istio-tls-secrets", "kube-apiserver-sni"),
        absent=passes_tls_on,
    ),
    "virtual-garden-istio-basic-auth-server": _runtime("virtual-garden-istio-basic-auth-server"),
    "pvc-autoscaler-garden": _runtime("pvc-autoscaler-garden"),
    "fluent-operator": _runtime("fluent-operator"),
    "opentelemetry-operator": _runtime("opentelemetry-operator"),
    "virtual-garden-kube-controller-manager": _virtual("shoot-core-kube-controller-manager"),
    "virtual-garden-gardener-resource-manager": _virtual("shoot-core-gardener-resource-manager"),
    "gardener-access": _virtual("shoot-core-gardeneraccess"),
    "garden-system-virtual": _virtual("garden-system-virtual"),
    "gardener-apiserver": _program("gardener-apiserver"),
    "gardener-admission-controller": _program("gardener-admission-controller"),
    "gardener-controller-manager": _program("gardener-controller-manager"),
    "gardener-scheduler": _program("gardener-scheduler"),
    "gardener-dashboard": _program("gardener-dashboard"),
    "terminal-controller-manager": _program("terminal"),
    "gardener-discovery-server": _program("gardener-discovery-server"),
    "fluent-operator-custom-resources-garden": _observability(
        "fluent-operator-custom-resources-garden"
    ),
    "fluent-bit": _observability("fluent-bit"),
    "vali": _observability("vali"),
    "victoria-logs": _observability("victoria-logs"),
    "prometheus-operator": _observability("prometheus-operator"),
    "perses-operator": _observability("perses-operator"),
    "victoria-operator": _observability("victoria-operator"),
    "alertmanager-garden": _observability("alertmanager-garden"),
    "prometheus-garden": _observability("prometheus-garden", "prometheus-garden-target"),
    "prometheus-longterm": _observability("prometheus-longterm"),
    "opentelemetry-collector": _observability("opentelemetry-collector"),
    "blackbox-exporter": _observability("blackbox-exporter"),
    "kube-state-metrics-runtime": _observability("kube-state-metrics-runtime"),
    "plutono": _observability("plutono"),
    "gardener-metrics-exporter": _observability(
        "gardener-metrics-exporter-runtime", "gardener-metrics-exporter-virtual"
    ),
}
"""By component; those without a row have only objects that the operator applies itself."""
