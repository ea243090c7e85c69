"""The Garden and the operator's Extension as kinds: spec 20 §4, §5 and spec 21 §1.1, §13.1."""

from datetime import timedelta
from pathlib import Path

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_v1alpha1 import (
    Extension,
    Garden,
    default_garden,
    extension_crd,
    garden_crd,
    garden_from,
)
from pergola.api.operator_v1alpha1.operations import annotation_of, operations_in
from pergola.api.schema import Malformed, schema_of, validate
from pergola.kube.patches import apply_merge_patch
from pergola.kube.yaml import parse
from tests.support.gardens import MINIMAL

EXAMPLES = Path(__file__).parents[3] / "examples" / "garden"


def example(name: str) -> JsonObject:
    garden = parse((EXAMPLES / name).read_text())
    assert isinstance(garden, dict)
    return garden


@pytest.mark.parametrize("name", ["garden.yaml", "every-field.yaml"])
def test_the_examples_follow_the_schema(name: str) -> None:
    assert validate(schema_of(Garden), example(name)) == []


def test_a_minimal_garden_follows_the_schema() -> None:
    assert validate(schema_of(Garden), MINIMAL) == []


def test_a_minimal_garden_gets_all_defaults() -> None:
    spec = garden_from(MINIMAL).spec
    kubernetes, gardener = spec.virtual_cluster.kubernetes, spec.virtual_cluster.gardener
    server = kubernetes.kube_api_server

    assert spec.runtime_cluster.settings.vertical_pod_autoscaler.enabled
    assert spec.runtime_cluster.networking.ip_families == ["IPv4"]
    assert server.requests.max_non_mutating_inflight == 400
    assert server.requests.max_mutating_inflight == 200
    assert server.event_ttl == timedelta(hours=1)
    assert server.logging.verbosity == 2
    assert server.encryption_config.provider.type == "aescbc"
    assert gardener.api_server.encryption_config.provider.type == "aescbc"
    assert kubernetes.kube_controller_manager.certificate_signing_duration == timedelta(hours=48)
    assert gardener.dashboard is None
    assert gardener.discovery_server is None


def test_every_invalid_field_of_a_garden_is_reported() -> None:
    broken = {**MINIMAL, "spec": {"runtimeCluster": {}, "virtualCluster": 1}}

    with pytest.raises(Malformed) as raised:
        garden_from(broken)

    assert str(raised.value) == (
        "Garden minimal: spec.runtimeCluster.ingress: is required; "
        "spec.runtimeCluster.networking: is required; "
        "spec.runtimeCluster.provider: is required; "
        "spec.virtualCluster: must be a map, not an integer"
    )


def test_defaulting_again_changes_nothing() -> None:
    once = default_garden(MINIMAL)

    assert default_garden(once) == once


def test_the_columns_of_a_garden_have_the_original_order() -> None:
    [version] = garden_crd()["spec"]["versions"]

    assert [column["name"] for column in version["additionalPrinterColumns"]] == [
        "K8S Version",
        "Gardener Version",
        "Last Operation",
        "Runtime",
        "Virtual",
        "API Server",
        "Observability",
        "Age",
    ]


def test_both_kinds_are_cluster_scoped_and_protected_and_have_a_status() -> None:
    for definition, short in ((garden_crd(), "grdn"), (extension_crd(), "extop")):
        spec = definition["spec"]
        [version] = spec["versions"]

        assert spec["scope"] == "Cluster"
        assert spec["names"]["shortNames"] == [short]
        assert version["subresources"] == {"status": {}}
        assert definition["metadata"]["labels"] == {"gardener.cloud/deletion-protected": "true"}


def test_the_columns_of_an_extension_have_the_original_order() -> None:
    [version] = extension_crd()["spec"]["versions"]

    assert [column["name"] for column in version["additionalPrinterColumns"]] == [
        "Installed",
        "Required Runtime",
        "Required Virtual",
        "Age",
    ]


def test_a_full_extension_follows_the_schema() -> None:
    chart: JsonObject = {"helm": {"ociRepository": {"ref": "registry.example.org/chart:v1"}}}
    extension: JsonObject = {
        "apiVersion": "operator.gardener.cloud/v1alpha1",
        "kind": "Extension",
        "metadata": {"name": "provider-local"},
        "spec": {
            "resources": [
                {
                    "kind": "Extension",
                    "type": "certificates",
                    "primary": True,
                    "autoEnable": ["garden"],
                    "clusterCompatibility": ["garden", "seed"],
                    "continuousEndpointUpdate": False,
                    "lifecycle": {
                        "reconcile": "AfterKubeAPIServer",
                        "delete": "BeforeKubeAPIServer",
                        "migrate": "BeforeKubeAPIServer",
                    },
                    "reconcileTimeout": "5m",
                    "workerlessSupported": True,
                }
            ],
            "deployment": {
                "extension": {
                    **chart,
                    "values": {"replicas": 2},
                    "runtimeClusterValues": {"replicas": 1},
                    "policy": "Always",
                    "seedSelector": {"matchLabels": {"example.org/tier": "a"}},
                    "injectGardenKubeconfig": True,
                },
                "admission": {
                    "runtimeCluster": chart,
                    "virtualCluster": chart,
                    "values": {"replicas": 2},
                },
                "resources": [
                    {
                        "name": "account",
                        "resourceRef": {"apiVersion": "v1", "kind": "Secret", "name": "account"},
                    }
                ],
            },
        },
        "status": {"observedGeneration": 1, "conditions": [], "providerStatus": {"any": 1}},
    }

    assert validate(schema_of(Extension), extension) == []


@pytest.mark.parametrize(
    ("annotation", "operations"),
    [
        ("", []),
        ("reconcile", ["reconcile"]),
        ("rotate-ca-start; reconcile", ["rotate-ca-start", "reconcile"]),
        ("reconcile;", ["reconcile"]),
        ("reconcile;reconcile", ["reconcile"]),
    ],
)
def test_an_annotation_can_contain_several_operations(
    annotation: str, operations: list[str]
) -> None:
    assert operations_in(annotation) == operations
    assert operations_in(annotation_of(operations)) == operations


@pytest.mark.parametrize(
    ("zone", "is_valid"),
    [("+0000", True), ("+1400", True), ("-1200", True), ("-1300", False), ("+1500", False)],
)
def test_maintenance_windows_need_valid_time_zones(zone: str, is_valid: bool) -> None:
    window = {"begin": f"220000{zone}", "end": "230000+0000"}
    patch = {"spec": {"virtualCluster": {"maintenance": {"timeWindow": window}}}}

    found = list(validate(schema_of(Garden), apply_merge_patch(MINIMAL, patch), ""))

    assert [each.path for each in found] == (
        [] if is_valid else ["spec.virtualCluster.maintenance.timeWindow.begin"]
    )


def test_defaulting_adds_the_required_encryption_provider() -> None:
    server = {"kubeAPIServer": {"encryptionConfig": {"resources": ["configmaps"]}}}
    garden = apply_merge_patch(MINIMAL, {"spec": {"virtualCluster": {"kubernetes": server}}})

    assert [each.path for each in validate(schema_of(Garden), garden, "")] == [
        "spec.virtualCluster.kubernetes.kubeAPIServer.encryptionConfig.provider"
    ]
    assert list(validate(schema_of(Garden), default_garden(garden), "")) == []


def test_a_garden_may_have_constraints() -> None:
    condition: JsonObject = {
        "type": "CACertificateValiditiesAcceptable",
        "status": "False",
        "reason": "ExpiringCACertificates",
        "message": "ca expires in 10 days",
        "lastTransitionTime": "2026-01-01T00:00:00Z",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }

    found = validate(schema_of(Garden), {**MINIMAL, "status": {"constraints": [condition]}}, "")

    assert list(found) == []
