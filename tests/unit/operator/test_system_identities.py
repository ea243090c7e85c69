"""The objects of the system components, as an existing landscape has them (spec 20 §13, §14).

The takeover of another operator's objects depends on their names. Hashes are `*`.
"""

import pytest

from pergola.garden.components.catalog import component
from tests.support.garden import identities, landscape

RESOURCE_MANAGER = {
    "ClusterRole gardener-resource-manager-seed",
    "ClusterRoleBinding gardener-resource-manager-seed",
    "ConfigMap garden/gardener-resource-manager-*",
    "CustomResourceDefinition managedresources.resources.gardener.cloud",
    "Deployment garden/gardener-resource-manager",
    "MutatingWebhookConfiguration gardener-resource-manager",
    "PodDisruptionBudget garden/gardener-resource-manager",
    "Service garden/gardener-resource-manager",
    "ServiceAccount garden/gardener-resource-manager",
    "ServiceMonitor garden/seed-gardener-resource-manager",
    "ValidatingWebhookConfiguration gardener-resource-manager",
    "VerticalPodAutoscaler garden/gardener-resource-manager-vpa",
}
_VIRTUAL = "virtual-garden-gardener-resource-manager"
VIRTUAL_RESOURCE_MANAGER = {
    f"ConfigMap garden/{_VIRTUAL}-*",
    f"Deployment garden/{_VIRTUAL}",
    f"PodDisruptionBudget garden/{_VIRTUAL}",
    f"Role garden/{_VIRTUAL}",
    f"RoleBinding garden/{_VIRTUAL}",
    "Secret garden/shoot-access-gardener-resource-manager",
    f"Service garden/{_VIRTUAL}",
    f"ServiceAccount garden/{_VIRTUAL}",
    f"ServiceMonitor garden/shoot-{_VIRTUAL}",
    f"VerticalPodAutoscaler garden/{_VIRTUAL}-vpa",
}
_VPA_ROLES = {
    "actor",
    "admission-controller",
    "checkpoint-actor",
    "evictioner",
    "metrics-reader",
    "status-actor",
    "target-reader",
}
_VPA = ("vpa-admission-controller", "vpa-recommender", "vpa-updater")
VPA = {
    *(f"ClusterRole gardener.cloud:vpa:source:{role}" for role in _VPA_ROLES),
    *(f"ClusterRoleBinding gardener.cloud:vpa:source:{role}" for role in _VPA_ROLES),
    "ClusterRole gardener.cloud:vpa:source:vpa-updater-in-place",
    "ClusterRoleBinding gardener.cloud:vpa:source:vpa-updater-in-place-binding",
    *(
        f"{kind} garden/gardener.cloud:vpa:source:leader-locking-{name}"
        for kind in ("Role", "RoleBinding")
        for name in ("vpa-recommender", "vpa-updater")
    ),
    *(
        f"{kind} garden/{name}"
        for kind in ("Deployment", "PodDisruptionBudget", "ServiceAccount")
        for name in _VPA
    ),
    *(f"ServiceMonitor garden/garden-{name}" for name in _VPA),
    "MutatingWebhookConfiguration zzz-vpa-webhook-config-source",
    "Service garden/vpa-recommender",
    "Service garden/vpa-updater",
    "Service garden/vpa-webhook",
    "VerticalPodAutoscaler garden/vpa-admission-controller",
    "VerticalPodAutoscaler garden/vpa-updater",
}
_ISTIOD_ROLES = ("istio-reader-clusterrole", "istiod-clusterrole", "istiod-gateway-controller")
ISTIOD = {
    *(f"ClusterRole {name}-istio-system" for name in _ISTIOD_ROLES),
    *(f"ClusterRoleBinding {name}-istio-system" for name in _ISTIOD_ROLES),
    "ConfigMap istio-system/istio",
    "Deployment istio-system/istiod",
    "PodDisruptionBudget istio-system/istiod",
    "Role istio-system/istiod",
    "RoleBinding istio-system/istiod",
    "Service istio-system/istiod",
    "ServiceAccount istio-system/istiod",
    "ServiceMonitor istio-system/garden-istiod",
    "ValidatingWebhookConfiguration istiod",
    "VerticalPodAutoscaler istio-system/istiod",
}
_INGRESS = "virtual-garden-istio-ingress"
INGRESS = {
    f"Namespace {_INGRESS}",
    f"Deployment {_INGRESS}/istio-ingressgateway",
    f"EnvoyFilter {_INGRESS}/apiserver-tls-termination",
    f"EnvoyFilter {_INGRESS}/hsts",
    f"EnvoyFilter {_INGRESS}/istio-ingressgateway",
    f"EnvoyFilter {_INGRESS}/misdirected-requests",
    f"EnvoyFilter {_INGRESS}/strip-trailing-dot",
    f"HorizontalPodAutoscaler {_INGRESS}/istio-ingressgateway",
    f"PodDisruptionBudget {_INGRESS}/istio-ingressgateway",
    f"Role {_INGRESS}/istio-ingressgateway-sds",
    f"RoleBinding {_INGRESS}/istio-ingressgateway-sds",
    f"Service {_INGRESS}/istio-ingressgateway",
    f"Service {_INGRESS}/istio-ingressgateway-internal",
    f"ServiceAccount {_INGRESS}/istio-ingressgateway-service-account",
    f"ServiceMonitor {_INGRESS}/garden-istio-ingressgateway",
    f"Telemetry {_INGRESS}/garden-enable-upstream-address",
    f"VerticalPodAutoscaler {_INGRESS}/istio-ingressgateway",
}
_BASIC_AUTH = "virtual-garden-istio-basic-auth-server"
BASIC_AUTH = {
    f"Deployment garden/{_BASIC_AUTH}",
    f"DestinationRule garden/{_BASIC_AUTH}",
    f"EnvoyFilter {_INGRESS}/garden-{_BASIC_AUTH}",
    f"Secret {_INGRESS}/garden-ca-{_BASIC_AUTH}-bundle-*",
    f"Service garden/{_BASIC_AUTH}",
    f"VerticalPodAutoscaler garden/{_BASIC_AUTH}",
}
_SERVER = "virtual-garden-kube-apiserver"

EXPECTED = {
    "gardener-resource-manager": {"direct": RESOURCE_MANAGER},
    _VIRTUAL: {
        "direct": VIRTUAL_RESOURCE_MANAGER,
        "shoot-core-gardener-resource-manager": {
            "ClusterRoleBinding gardener.cloud:target:resource-manager"
        },
    },
    "vpa": {"vpa": VPA},
    "istio": {
        "direct": {"Namespace istio-system"},
        "istio-system": ISTIOD,
        "virtual-garden-istio": INGRESS,
    },
    "istio-internal-load-balancing": {"direct": {"ConfigMap garden/istio-internal-load-balancing"}},
    "gardener-operator-vpa": {"direct": {"VerticalPodAutoscaler garden/gardener-operator-vpa"}},
    "gardener-operator-service-monitor": {
        "direct": {"ServiceMonitor garden/garden-gardener-operator"}
    },
    "kube-apiserver-service": {
        "direct": {
            f"Service garden/{_SERVER}",
            f"Service garden/{_SERVER}-mtls",
            f"Service garden/{_SERVER}-connection-upgrade",
        }
    },
    "kube-apiserver-sni": {
        "direct": {
            f"DestinationRule garden/{_SERVER}",
            f"DestinationRule garden/{_SERVER}-mtls",
            f"DestinationRule garden/{_SERVER}-connection-upgrade",
            f"Gateway garden/{_SERVER}",
            f"VirtualService garden/{_SERVER}",
        },
        "istio-tls-secrets": {
            f"Secret {_INGRESS}/garden-kube-apiserver-istio-mtls",
            f"Secret {_INGRESS}/garden-kube-apiserver-tls",
        },
        "kube-apiserver-sni": {f"EnvoyFilter {_INGRESS}/garden-istio-tls-termination"},
    },
    "kube-apiserver-tls-services": {},
    _BASIC_AUTH: {_BASIC_AUTH: BASIC_AUTH},
}


@pytest.mark.parametrize("name", EXPECTED)
def test_a_component_has_the_objects_that_it_has_in_an_existing_landscape(name: str) -> None:
    assert identities(component(name).objects(landscape())) == EXPECTED[name]
