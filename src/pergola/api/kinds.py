"""Constants for kinds that several modules use.

Kinds whose API we define or validate are in the module of their API group; kinds that only one
module uses are in that module.
"""

from typing import Final

from pergola.api.objects import GroupVersionKind

CONFIG_MAP: Final = GroupVersionKind("", "v1", "ConfigMap")
NAMESPACE: Final = GroupVersionKind("", "v1", "Namespace")
NODE: Final = GroupVersionKind("", "v1", "Node")
PVC: Final = GroupVersionKind("", "v1", "PersistentVolumeClaim")
POD: Final = GroupVersionKind("", "v1", "Pod")
SECRET: Final = GroupVersionKind("", "v1", "Secret")
SERVICE: Final = GroupVersionKind("", "v1", "Service")
SERVICE_ACCOUNT: Final = GroupVersionKind("", "v1", "ServiceAccount")
CRD: Final = GroupVersionKind("apiextensions.k8s.io", "v1", "CustomResourceDefinition")
DAEMON_SET: Final = GroupVersionKind("apps", "v1", "DaemonSet")
DEPLOYMENT: Final = GroupVersionKind("apps", "v1", "Deployment")
STATEFUL_SET: Final = GroupVersionKind("apps", "v1", "StatefulSet")
HPA: Final = GroupVersionKind("autoscaling", "v2", "HorizontalPodAutoscaler")
HVPA: Final = GroupVersionKind("autoscaling.k8s.io", "v1alpha1", "Hvpa")
VERTICAL_POD_AUTOSCALER: Final = GroupVersionKind(
    "autoscaling.k8s.io", "v1", "VerticalPodAutoscaler"
)
CRON_JOB: Final = GroupVersionKind("batch", "v1", "CronJob")
JOB: Final = GroupVersionKind("batch", "v1", "Job")
CSR: Final = GroupVersionKind("certificates.k8s.io", "v1", "CertificateSigningRequest")
LEASE: Final = GroupVersionKind("coordination.k8s.io", "v1", "Lease")
GARDENER_CORE: Final = "core.gardener.cloud"
SEED: Final = GroupVersionKind(GARDENER_CORE, "v1beta1", "Seed")
SHOOT: Final = GroupVersionKind(GARDENER_CORE, "v1beta1", "Shoot")
ENDPOINT_SLICE: Final = GroupVersionKind("discovery.k8s.io", "v1", "EndpointSlice")
EVENT: Final = GroupVersionKind("events.k8s.io", "v1", "Event")
CORE_EVENT: Final = GroupVersionKind("", "v1", "Event")
"""The same objects, by the API whose permissions older roles grant."""
_MACHINES: Final = ("machine.sapcloud.io", "v1alpha1")
MACHINE: Final = GroupVersionKind(*_MACHINES, "Machine")
MACHINE_CLASS: Final = GroupVersionKind(*_MACHINES, "MachineClass")
MACHINE_DEPLOYMENT: Final = GroupVersionKind(*_MACHINES, "MachineDeployment")
MACHINE_SET: Final = GroupVersionKind(*_MACHINES, "MachineSet")
DESTINATION_RULE: Final = GroupVersionKind("networking.istio.io", "v1beta1", "DestinationRule")
ENVOY_FILTER: Final = GroupVersionKind("networking.istio.io", "v1alpha3", "EnvoyFilter")
GATEWAY: Final = GroupVersionKind("networking.istio.io", "v1beta1", "Gateway")
VIRTUAL_SERVICE: Final = GroupVersionKind("networking.istio.io", "v1beta1", "VirtualService")
INGRESS: Final = GroupVersionKind("networking.k8s.io", "v1", "Ingress")
NETWORK_POLICY: Final = GroupVersionKind("networking.k8s.io", "v1", "NetworkPolicy")
CLUSTER_ROLE: Final = GroupVersionKind("rbac.authorization.k8s.io", "v1", "ClusterRole")
CLUSTER_ROLE_BINDING: Final = GroupVersionKind(
    "rbac.authorization.k8s.io", "v1", "ClusterRoleBinding"
)
CSI_NODE: Final = GroupVersionKind("storage.k8s.io", "v1", "CSINode")
