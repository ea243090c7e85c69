"""The objects of the operator's chart (spec 20 §2)."""

from pathlib import Path
from typing import Final

import pytest

from pergola import __version__
from pergola.api.known.kubernetes_versions import SUPPORTED
from pergola.api.objects import JsonObject, Key, labels_of, map_at, name_of
from pergola.api.operator_v1alpha1 import extension_crd, garden_crd
from pergola.bundle import annotate
from pergola.bundle.image_vector import OWN
from pergola.cli.crds.groups import rendered
from pergola.garden.components.conventions import GARDEN_SCRAPES, open_ports
from pergola.garden.components.gardener_operator import OPERATOR_AUTOSCALER
from pergola.garden.components.priority_classes import CRITICAL
from pergola.kube.patches import apply_merge_patch
from pergola.kube.yaml import parse
from pergola.operator.serving import SERVICE
from pergola.sandbox.helm import template
from tests.support.charts import with_image
from tests.support.garden import landscape
from tests.support.operator_chart import OperatorChart

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

CHART: Final = Path(__file__).parents[3] / "charts" / "operator"
CRDS: Final = {
    "operator.gardener.cloud_extensions.yaml": extension_crd(),
    "operator.gardener.cloud_gardens.yaml": garden_crd(),
}
ROLE: Final = "gardener.cloud:system:gardener-operator"
KUBECONFIG: Final = "apiVersion: v1\nkind: Config\n"


def chart(values: JsonObject | None = None) -> OperatorChart:
    return OperatorChart.rendered(CHART, values)


@pytest.fixture(scope="module")
def default() -> OperatorChart:
    return chart()


def test_the_chart_has_these_objects(default: OperatorChart) -> None:
    found = {f"{obj['kind']} {Key.of(obj)}" for obj in default.objects}
    config = name_of(default.named("gardener-operator-configmap-"))

    assert len(found) == len(default.objects)
    assert found == {
        f"ClusterRole {ROLE}",
        f"ClusterRoleBinding {ROLE}",
        f"ConfigMap garden/{config}",
        "CustomResourceDefinition extensions.operator.gardener.cloud",
        "CustomResourceDefinition gardens.operator.gardener.cloud",
        "Deployment garden/gardener-operator",
        "NetworkPolicy garden/allow-everything-for-gardener-operator",
        "PodDisruptionBudget garden/gardener-operator",
        f"PriorityClass {CRITICAL}",
        f"Role garden/{ROLE}",
        f"RoleBinding garden/{ROLE}",
        "Service garden/gardener-operator",
        "ServiceAccount garden/gardener-operator",
    }


def test_rendering_twice_gives_the_same_bytes() -> None:
    assert template(CHART, with_image()) == template(CHART, with_image())


def test_the_chart_has_the_version_of_the_package() -> None:
    found = parse((CHART / "Chart.yaml").read_text())
    assert isinstance(found, dict)

    assert found["version"] == found["appVersion"] == __version__
    assert found["kubeVersion"] == f">= {SUPPORTED[0]}.0-0"


def test_the_definitions_match_the_types() -> None:
    folder = CHART / "files" / "crds"

    written = {path.name: path.read_text() for path in folder.iterdir()}

    assert written == {name: rendered([crd]) for name, crd in CRDS.items()}, (
        "copy them from charts/crds"
    )


def test_helm_keeps_the_definitions_unchanged_on_deletion(
    default: OperatorChart,
) -> None:
    keep: JsonObject = {"metadata": {"annotations": {"helm.sh/resource-policy": "keep"}}}

    found = default.of("CustomResourceDefinition")

    assert found == [apply_merge_patch(crd, keep) for crd in CRDS.values()]
    assert {labels_of(crd)["gardener.cloud/deletion-protected"] for crd in found} == {"true"}


def test_the_deployment_runs_the_operator_with_its_configuration(default: OperatorChart) -> None:
    container = default.container

    assert container["image"] == f"registry.example/pergola:{__version__}"
    assert container["imagePullPolicy"] == "IfNotPresent"
    assert container["command"] == ["pergola", "operator"]
    assert container["args"] == ["--config=/etc/gardener-operator/config/config.yaml"]
    assert container["env"] == [{"name": OWN, "value": container["image"]}]
    (mounted,) = (m for m in container["volumeMounts"] if m["name"] == "config")
    (volume,) = (v for v in default.spec["volumes"] if v["name"] == "config")
    assert mounted["mountPath"] == "/etc/gardener-operator/config"
    assert volume["configMap"]["name"] == name_of(default.named("gardener-operator-configmap-"))


def test_the_deployment_has_the_settings_of_the_original(default: OperatorChart) -> None:
    deployment = default.one("Deployment")
    spec = map_at(deployment, "spec")

    assert (
        labels_of(deployment).items()
        >= {
            "app": "gardener",
            "role": "operator",
            "high-availability-config.resources.gardener.cloud/skip": "true",
        }.items()
    )
    assert (spec["replicas"], spec["revisionHistoryLimit"]) == (1, 2)
    assert spec["selector"] == {"matchLabels": {"app": "gardener", "role": "operator"}}
    assert default.spec["priorityClassName"] == CRITICAL
    assert default.container["resources"]["requests"] == {"cpu": "100m", "memory": "256Mi"}
    assert "memory" in default.container["resources"]["limits"]
    assert default.one("PriorityClass")["value"] == 999999550


def test_the_container_has_no_privileges(default: OperatorChart) -> None:
    assert default.spec["securityContext"]["runAsNonRoot"] is True
    assert default.spec["securityContext"]["seccompProfile"] == {"type": "RuntimeDefault"}
    assert default.container["securityContext"] == {
        "allowPrivilegeEscalation": False,
        "capabilities": {"drop": ["ALL"]},
        "readOnlyRootFilesystem": True,
    }


def test_the_pods_may_connect_to_the_apis_that_the_operator_calls(default: OperatorChart) -> None:
    labels = default.pod["metadata"]["labels"]
    allowed = {name for name, value in labels.items() if value == "allowed"}

    assert allowed == {
        "networking.gardener.cloud/to-dns",
        "networking.gardener.cloud/to-private-networks",
        "networking.gardener.cloud/to-public-networks",
        "networking.gardener.cloud/to-runtime-apiserver",
        "networking.resources.gardener.cloud/to-gardener-apiserver-tcp-8443",
        "networking.resources.gardener.cloud/to-prometheus-garden-tcp-9090",
        "networking.resources.gardener.cloud/to-prometheus-longterm-tcp-9090",
        "networking.resources.gardener.cloud/to-virtual-garden-etcd-main-client-tcp-8080",
        "networking.resources.gardener.cloud/to-virtual-garden-kube-apiserver-tcp-443",
    }
    policy = map_at(default.one("NetworkPolicy"), "spec")
    assert (policy["ingress"], policy["egress"]) == ([{}], [{}])
    assert policy["podSelector"]["matchLabels"].items() <= labels.items()


def test_all_endpoints_have_the_ports_of_the_configuration(default: OperatorChart) -> None:
    server = default.config.server
    ports = {port["name"]: port["containerPort"] for port in default.container["ports"]}
    service = default.one("Service")

    assert ports == {"webhooks": 2750, "health": 2751, "metrics": 2752}
    assert ports["webhooks"] == server.webhooks.port
    assert ports["health"] == server.health_probes.port
    assert ports["metrics"] == server.metrics.port
    assert Key.of(service) == SERVICE
    assert {
        port["name"]: (port["port"], port["targetPort"]) for port in service["spec"]["ports"]
    } == {"metrics": (2752, 2752), "server": (443, 2750)}
    assert map_at(service, "metadata")["annotations"] == open_ports(GARDEN_SCRAPES, 2752)
    for probe, path in {
        "startupProbe": "/healthz",
        "livenessProbe": "/healthz",
        "readinessProbe": "/readyz",
    }.items():
        assert default.container[probe]["httpGet"] == {
            "path": path,
            "port": "health",
            "scheme": "HTTP",
        }


def test_all_selectors_find_the_pods(default: OperatorChart) -> None:
    labels = default.pod["metadata"]["labels"].items()
    service = map_at(default.one("Service"), "spec", "selector")
    budget = map_at(default.one("PodDisruptionBudget"), "spec")

    assert service.items() <= labels
    assert budget["selector"]["matchLabels"].items() <= labels
    assert budget["maxUnavailable"] == 1
    assert budget["unhealthyPodEvictionPolicy"] == "AlwaysAllow"


def test_the_roles_are_bound_to_the_service_account_of_the_pods(default: OperatorChart) -> None:
    account = default.spec["serviceAccountName"]
    subject = {"kind": "ServiceAccount", "name": account, "namespace": "garden"}

    assert name_of(default.one("ServiceAccount")) == account == "gardener-operator"
    for binding, kind in (("ClusterRoleBinding", "ClusterRole"), ("RoleBinding", "Role")):
        found = default.one(binding)
        assert found["subjects"] == [subject]
        assert found["roleRef"] == {
            "apiGroup": "rbac.authorization.k8s.io",
            "kind": kind,
            "name": ROLE,
        }


def test_the_token_is_mounted_only_for_the_container(default: OperatorChart) -> None:
    assert default.one("ServiceAccount")["automountServiceAccountToken"] is False
    assert default.spec["automountServiceAccountToken"] is False
    (volume,) = (v for v in default.spec["volumes"] if "projected" in v)
    (mounted,) = (m for m in default.container["volumeMounts"] if m["name"] == volume["name"])
    assert mounted["mountPath"] == "/var/run/secrets/kubernetes.io/serviceaccount"
    assert volume["projected"]["sources"][0]["serviceAccountToken"]["path"] == "token"


def test_the_deployment_is_annotated_with_its_references() -> None:
    found = chart(
        {
            "imageVectorOverwrite": "images: []",
            "config": {"runtimeClientConnection": {"kubeconfig": KUBECONFIG}},
        }
    )

    deployment = found.one("Deployment")

    assert annotate(deployment) == deployment
    assert len(found.pod["metadata"]["annotations"]) == 3
    for obj in (*found.of("ConfigMap"), *found.of("Secret")):
        assert obj["immutable"] is True
        assert labels_of(obj)["resources.gardener.cloud/garbage-collectable-reference"] == "true"


def test_the_autoscaler_of_the_garden_targets_the_deployment(default: OperatorChart) -> None:
    (autoscaler,) = OPERATOR_AUTOSCALER.objects(landscape()).direct

    target = map_at(autoscaler, "spec", "targetRef")
    assert (target["kind"], target["name"]) == ("Deployment", name_of(default.one("Deployment")))
    policies = map_at(autoscaler, "spec", "resourcePolicy")["containerPolicies"]
    assert default.container["name"] in [policy["containerName"] for policy in policies]
