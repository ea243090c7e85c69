"""The names of the tasks that others come after (spec 20 §12); users see them."""

from typing import Final

CONNECTION: Final = "Initializing connection to virtual garden cluster"
"""Waits until the virtual cluster answers."""
REPLICATION: Final = "Generating and replicating global observability ingress password"
"""Provides the password of the Seeds' observability in both clusters."""
BACKUP_ENTRY: Final = "Reconciling main ETCD backup entry"
"""Waits until the main etcd can be backed up."""
EXTENSIONS_BEFORE: Final = (
    "Waiting until extension resources handled before kube-apiserver are ready"
)
"""Waits for the Extensions that the API server needs."""

RESOURCE_MANAGER: Final = "Deploying gardener-resource-manager"
RUNTIME_SYSTEM: Final = "Deploying runtime system resources"
GENERIC_KUBECONFIG: Final = "Generating generic token kubeconfig"
INGRESS_PASSWORD: Final = "Generating observability ingress password"  # noqa: S105 - a name
VERTICAL_POD_AUTOSCALER: Final = "Reconciling Kubernetes vertical pod autoscaler"
ETCD_DRUID: Final = "Deploying ETCD Druid"
ISTIO: Final = "Deploying Istio"
NGINX_INGRESS: Final = "Deploying nginx-ingress controller"
INTERNAL_LOAD_BALANCING: Final = "Reconcile Istio internal load balancing ConfigMap"
ETCDS_READY: Final = "Waiting until main and event ETCDs report readiness"
API_SERVER_READY: Final = "Waiting until Kubernetes API server rolled out"
VIRTUAL_RESOURCE_MANAGER: Final = "Deploying gardener-resource-manager for virtual garden"
VIRTUAL_RESOURCE_MANAGER_READY: Final = (
    "Waiting until gardener-resource-manager for virtual garden rolled out"
)
GARDENER_API_SERVER_READY: Final = "Waiting until Gardener API server rolled out"
OPENTELEMETRY_OPERATOR: Final = "Deploying OpenTelemetry Operator"
GARDEN_PROMETHEUS: Final = "Deploying Garden Prometheus"
GARDEN_PROMETHEUS_READY: Final = "Waiting until Garden Prometheus is ready"

SYNC_POINT: Final = (
    GENERIC_KUBECONFIG,
    INGRESS_PASSWORD,
    VERTICAL_POD_AUTOSCALER,
    ETCD_DRUID,
    ISTIO,
    NGINX_INGRESS,
    INTERNAL_LOAD_BALANCING,
)
"""The tasks after which components that face outwards can be deployed."""
