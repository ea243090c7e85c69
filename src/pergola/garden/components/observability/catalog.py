"""The components of observability, in the order that a reader expects (spec 20 §12.3)."""

from typing import Final

from pergola.garden.components.component import Component
from pergola.garden.components.observability.alertmanager import ALERTMANAGER
from pergola.garden.components.observability.blackbox_exporter import BLACKBOX_EXPORTER
from pergola.garden.components.observability.fluent_bit.component import FLUENT_BIT
from pergola.garden.components.observability.fluent_bit.custom_resources import (
    FLUENT_OPERATOR_CUSTOM_RESOURCES,
)
from pergola.garden.components.observability.fluent_operator import FLUENT_OPERATOR
from pergola.garden.components.observability.ingress_password import INGRESS_PASSWORD
from pergola.garden.components.observability.kube_state_metrics import (
    KUBE_STATE_METRICS,
)
from pergola.garden.components.observability.opentelemetry_collector import (
    OPENTELEMETRY_COLLECTOR,
)
from pergola.garden.components.observability.opentelemetry_operator import OPENTELEMETRY_OPERATOR
from pergola.garden.components.observability.perses_operator import PERSES_OPERATOR
from pergola.garden.components.observability.plutono.component import PLUTONO
from pergola.garden.components.observability.prometheus_garden.component import PROMETHEUS_GARDEN
from pergola.garden.components.observability.prometheus_longterm import (
    PROMETHEUS_LONGTERM,
)
from pergola.garden.components.observability.prometheus_operator import PROMETHEUS_OPERATOR
from pergola.garden.components.observability.vali import VALI
from pergola.garden.components.observability.victoria_logs import VICTORIA_LOGS
from pergola.garden.components.observability.victoria_operator import VICTORIA_OPERATOR

OBSERVABILITY: Final[tuple[Component, ...]] = (
    INGRESS_PASSWORD,
    FLUENT_OPERATOR,
    FLUENT_OPERATOR_CUSTOM_RESOURCES,
    FLUENT_BIT,
    VALI,
    VICTORIA_LOGS,
    PROMETHEUS_OPERATOR,
    OPENTELEMETRY_OPERATOR,
    PERSES_OPERATOR,
    VICTORIA_OPERATOR,
    ALERTMANAGER,
    PROMETHEUS_GARDEN,
    PROMETHEUS_LONGTERM,
    OPENTELEMETRY_COLLECTOR,
    BLACKBOX_EXPORTER,
    KUBE_STATE_METRICS,
    PLUTONO,
)
