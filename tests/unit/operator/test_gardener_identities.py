"""The objects of Gardener's control plane, as an existing landscape has them (spec 20 §16).

The takeover of another operator's objects depends on their names. Hashes are `*`.
"""

import pytest

from pergola.garden.components.catalog import component
from tests.support.garden import COMPLETE, identities, landscape

_ISTIO = "virtual-garden-istio-ingress"
_SYSTEM = "gardener.cloud:system"


def program(name: str, *others: str) -> set[str]:
    """Return the identities of a program in the runtime cluster."""
    return {
        f"Deployment garden/{name}",
        f"PodDisruptionBudget garden/{name}",
        f"Service garden/{name}",
        f"ServiceMonitor garden/garden-{name}",
        f"VerticalPodAutoscaler garden/{name}-vpa",
        *others,
    }


def bound(kind: str, *names: str) -> set[str]:
    """Return the identities of roles and their bindings."""
    return {f"{each} {name}" for each in (kind, f"{kind}Binding") for name in names}


def exposed(name: str) -> set[str]:
    """Return the identities of the objects that expose a host."""
    return {f"{kind} garden/{name}" for kind in ("DestinationRule", "Gateway", "VirtualService")}


APISERVER = {
    "direct": {
        "ConfigMap garden/gardener-apiserver-admission-config-*",
        "ConfigMap garden/gardener-apiserver-audit-policy-config-*",
        "Secret garden/gardener-apiserver-admission-kubeconfigs-*",
        "Secret garden/gardener-apiserver-etcd-encryption-configuration-*",
        "Secret garden/shoot-access-gardener-apiserver",
    },
    "gardener-apiserver-runtime": program("gardener-apiserver"),
    "gardener-apiserver-virtual": {
        "APIService v1.core.gardener.cloud",
        "APIService v1alpha1.operations.gardener.cloud",
        "APIService v1alpha1.security.gardener.cloud",
        "APIService v1alpha1.seedmanagement.gardener.cloud",
        "APIService v1beta1.core.gardener.cloud",
        *bound("ClusterRole", f"{_SYSTEM}:apiserver"),
        "ClusterRoleBinding gardener.cloud:apiserver:auth-delegator",
        "Endpoints kube-system/gardener-apiserver",
        "RoleBinding kube-system/gardener.cloud:apiserver:auth-reader",
        "Service kube-system/gardener-apiserver",
    },
}
ADMISSION_CONTROLLER = {
    "direct": {"Secret garden/shoot-access-gardener-admission-controller"},
    "gardener-admission-controller-runtime": program(
        "gardener-admission-controller", "ConfigMap garden/gardener-admission-controller-*"
    ),
    "gardener-admission-controller-virtual": {
        f"ClusterRole {_SYSTEM}:admission-controller",
        "ClusterRoleBinding gardener.cloud:admission-controller",
        "MutatingWebhookConfiguration gardener-admission-controller",
        "ValidatingWebhookConfiguration gardener-admission-controller",
    },
}
CONTROLLER_MANAGER = {
    "direct": {"Secret garden/shoot-access-gardener-controller-manager"},
    "gardener-controller-manager-runtime": program(
        "gardener-controller-manager", "ConfigMap garden/gardener-controller-manager-config-*"
    ),
    "gardener-controller-manager-virtual": bound("ClusterRole", f"{_SYSTEM}:controller-manager"),
}
SCHEDULER = {
    "direct": {"Secret garden/shoot-access-gardener-scheduler"},
    "gardener-scheduler-runtime": program(
        "gardener-scheduler", "ConfigMap garden/gardener-scheduler-config-*"
    ),
    "gardener-scheduler-virtual": bound("ClusterRole", f"{_SYSTEM}:scheduler"),
}
ACCESS = {
    "direct": {"Secret garden/gardener", "Secret garden/gardener-internal"},
    "shoot-core-gardeneraccess": {f"ClusterRoleBinding {_SYSTEM}:gardener"},
}
_PROJECT_ROLES = ("project-member", "project-serviceaccountmanager", "project-viewer")
VIRTUAL_SYSTEM = {
    "garden-system-virtual": {
        "Namespace garden",
        "Namespace gardener-system-public",
        *bound("ClusterRole", "gardener.cloud:admin"),
        *bound(
            "ClusterRole",
            *(
                f"{_SYSTEM}:{role}"
                for role in ("read-global-resources", "seed-bootstrapper", "user-auth")
            ),
        ),
        "ClusterRole gardener.cloud:viewer",
        f"ClusterRole {_SYSTEM}:administrators",
        f"ClusterRole {_SYSTEM}:project-creation",
        f"ClusterRole {_SYSTEM}:viewers",
        *(f"ClusterRole {_SYSTEM}:{role}" for role in _PROJECT_ROLES),
        *(f"ClusterRole {_SYSTEM}:{role}-aggregation" for role in _PROJECT_ROLES),
        *bound("Role", f"gardener-system-public/{_SYSTEM}:read-gardener-system-public"),
        *bound("Role", f"kube-system/{_SYSTEM}:read-cluster-identity-configmap"),
    }
}
DASHBOARD = {
    "direct": {"Secret garden/shoot-access-gardener-dashboard"},
    "gardener-dashboard-runtime": program(
        "gardener-dashboard",
        "ConfigMap garden/gardener-dashboard-config-*",
        f"Secret {_ISTIO}/garden-gardener-dashboard-wildcard",
        f"Secret {_ISTIO}/garden-gardener-dashboard-tls-ca",
        *exposed("gardener-dashboard"),
    ),
    "gardener-dashboard-virtual": {
        "ClusterRole dashboard.gardener.cloud:system:project-member",
        *bound("ClusterRole", f"{_SYSTEM}:dashboard"),
        "ClusterRoleBinding gardener.cloud:dashboard-terminal:admin",
        "ServiceAccount kube-system/dashboard-terminal-admin",
    },
}
TERMINAL = {
    "direct": {"Secret garden/shoot-access-terminal-controller-manager"},
    "terminal-runtime": program(
        "terminal-controller-manager", "ConfigMap garden/terminal-controller-manager-*"
    ),
    "terminal-virtual": {
        *bound("ClusterRole", f"{_SYSTEM}:terminal-controller-manager"),
        "CustomResourceDefinition terminals.dashboard.gardener.cloud",
        "MutatingWebhookConfiguration terminal-mutating-webhook-configuration",
        *bound("Role", f"kube-system/{_SYSTEM}:terminal-controller-manager"),
        "ValidatingWebhookConfiguration terminal-validating-webhook-configuration",
    },
}
DISCOVERY_SERVER = {
    "direct": {"Secret garden/shoot-access-gardener-discovery-server"},
    "gardener-discovery-server-runtime": program(
        "gardener-discovery-server",
        "Secret garden/gardener-discovery-server-garden-workload-identity-*",
        *exposed("gardener-discovery-server"),
    ),
    "gardener-discovery-server-virtual": {
        *bound("ClusterRole", f"{_SYSTEM}:discovery-server"),
        *bound("Role", f"gardener-system-shoot-issuer/{_SYSTEM}:discovery-server"),
        "Secret garden/shoot-service-account-issuer",
    },
}
METRICS_EXPORTER = {
    "direct": {"Secret garden/shoot-access-gardener-metrics-exporter"},
    "gardener-metrics-exporter-runtime": program("gardener-metrics-exporter"),
    "gardener-metrics-exporter-virtual": bound("ClusterRole", "gardener.cloud:metrics-exporter"),
}


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("gardener-apiserver", APISERVER),
        ("gardener-admission-controller", ADMISSION_CONTROLLER),
        ("gardener-controller-manager", CONTROLLER_MANAGER),
        ("gardener-scheduler", SCHEDULER),
        ("gardener-access", ACCESS),
        ("garden-system-virtual", VIRTUAL_SYSTEM),
        ("gardener-dashboard", DASHBOARD),
        ("terminal-controller-manager", TERMINAL),
        ("gardener-discovery-server", DISCOVERY_SERVER),
        ("gardener-metrics-exporter", METRICS_EXPORTER),
    ],
    ids=lambda value: value if isinstance(value, str) else "",
)
def test_a_component_has_the_objects_of_an_existing_landscape(
    name: str, expected: dict[str, set[str]]
) -> None:
    assert identities(component(name).objects(landscape(COMPLETE))) == expected


@pytest.mark.parametrize(
    "name",
    [
        "gardener-apiserver",
        "gardener-admission-controller",
        "gardener-controller-manager",
        "gardener-scheduler",
        "gardener-access",
        "garden-system-virtual",
        "gardener-metrics-exporter",
    ],
)
def test_the_deletion_of_a_garden_covers_all_managed_resources(name: str) -> None:
    found = component(name)
    managed = {each.name for each in found.objects(landscape(COMPLETE)).managed}
    assert {key.name for key in found.leftovers.managed} == managed
