"""All components of a Garden, in the order that a reader expects (spec 20 §11 to §13)."""

from typing import Final

from pergola.garden.components.basic_auth_server import BASIC_AUTH_SERVER
from pergola.garden.components.component import Component
from pergola.garden.components.crds import CRDS
from pergola.garden.components.etcd_druid import ETCD_DRUID
from pergola.garden.components.etcds.etcds import ETCDS
from pergola.garden.components.gardener_access import GARDENER_ACCESS
from pergola.garden.components.gardener_admission_controller import (
    GARDENER_ADMISSION_CONTROLLER,
)
from pergola.garden.components.gardener_apiserver import GARDENER_APISERVER
from pergola.garden.components.gardener_controller_manager import GARDENER_CONTROLLER_MANAGER
from pergola.garden.components.gardener_dashboard.component import GARDENER_DASHBOARD
from pergola.garden.components.gardener_discovery_server import GARDENER_DISCOVERY_SERVER
from pergola.garden.components.gardener_metrics_exporter import GARDENER_METRICS_EXPORTER
from pergola.garden.components.gardener_operator import (
    OPERATOR_AUTOSCALER,
    OPERATOR_SERVICE_MONITOR,
)
from pergola.garden.components.gardener_scheduler import GARDENER_SCHEDULER
from pergola.garden.components.internal_load_balancing import INTERNAL_LOAD_BALANCING
from pergola.garden.components.kube_apiserver.component import KUBE_APISERVER
from pergola.garden.components.kube_apiserver_exposure.services import API_SERVER_SERVICE
from pergola.garden.components.kube_apiserver_exposure.sni import (
    API_SERVER_SNI,
    TLS_SERVICES_CLEANUP,
)
from pergola.garden.components.kube_controller_manager import KUBE_CONTROLLER_MANAGER
from pergola.garden.components.nginx_ingress import NGINX_INGRESS
from pergola.garden.components.observability.catalog import OBSERVABILITY
from pergola.garden.components.priority_classes import PRIORITY_CLASSES
from pergola.garden.components.pvc_autoscaler import PVC_AUTOSCALER
from pergola.garden.components.resource_manager.runtime import RESOURCE_MANAGER
from pergola.garden.components.resource_manager.virtual import VIRTUAL_RESOURCE_MANAGER
from pergola.garden.components.service_mesh.objects import ISTIO
from pergola.garden.components.terminal_controller_manager import (
    TERMINAL_CONTROLLER_MANAGER,
)
from pergola.garden.components.vertical_pod_autoscaler.objects import VERTICAL_POD_AUTOSCALER
from pergola.garden.components.virtual_access import GENERIC_KUBECONFIG
from pergola.garden.components.virtual_system import VIRTUAL_SYSTEM

CATALOG: Final[tuple[Component, ...]] = (
    *CRDS.values(),
    RESOURCE_MANAGER,
    PRIORITY_CLASSES,
    VERTICAL_POD_AUTOSCALER,
    ETCD_DRUID,
    ISTIO,
    INTERNAL_LOAD_BALANCING,
    NGINX_INGRESS,
    OPERATOR_AUTOSCALER,
    OPERATOR_SERVICE_MONITOR,
    ETCDS,
    GENERIC_KUBECONFIG,
    API_SERVER_SERVICE,
    KUBE_APISERVER,
    API_SERVER_SNI,
    TLS_SERVICES_CLEANUP,
    KUBE_CONTROLLER_MANAGER,
    VIRTUAL_RESOURCE_MANAGER,
    *OBSERVABILITY,
    GARDENER_APISERVER,
    GARDENER_ADMISSION_CONTROLLER,
    GARDENER_CONTROLLER_MANAGER,
    GARDENER_SCHEDULER,
    GARDENER_ACCESS,
    VIRTUAL_SYSTEM,
    BASIC_AUTH_SERVER,
    PVC_AUTOSCALER,
    GARDENER_DASHBOARD,
    TERMINAL_CONTROLLER_MANAGER,
    GARDENER_DISCOVERY_SERVER,
    GARDENER_METRICS_EXPORTER,
)


def component(name: str) -> Component:
    """Return the component of a name.

    Raises:
        KeyError: The component does not exist.
    """
    return {each.name: each for each in CATALOG}[name]
