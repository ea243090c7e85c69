"""The values that the operator's chart accepts (spec 20 §2), and their documentation."""

import json
import os
from pathlib import Path
from typing import Any, Final

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_config import FEATURE_GATES, OperatorConfiguration, configuration_from
from pergola.api.schema.structural import schema_of
from pergola.kube.yaml import parse
from pergola.sandbox.helm import HelmError, helm, render
from tests.support.chart_schema import strict
from tests.support.charts import with_image
from tools.charts import table

pytestmark = pytest.mark.timeout(600)  # Helm may have to be built

CHART: Final = Path(__file__).parents[3] / "charts" / "operator"
SCHEMA: Final = CHART / "values.schema.json"
PAGE: Final = Path(__file__).parents[3] / "docs" / "reference" / "operator-chart.md"
BEGIN: Final = "<!-- generated: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/operator -->\n"
END: Final = "<!-- end -->\n"
CONFIG: Final = "The operator's configuration file: [fields](operator-configuration.md)."
VALUES: Final = {
    "additionalVolumeMounts",
    "affinity",
    "additionalVolumes",
    "chartsImageVectorOverwrite",
    "componentImageVectorOverwrites",
    "config",
    "crds",
    "dashboard",
    "env",
    "envFrom",
    "extraArgs",
    "hostAliases",
    "image",
    "imagePullSecrets",
    "imageRegistry",
    "imageVectorOverwrite",
    "networkPolicy",
    "nodeSelector",
    "nodeToleration",
    "podAnnotations",
    "podDisruptionBudget",
    "podLabels",
    "priorityClassName",
    "prometheusRule",
    "replicaCount",
    "resources",
    "revisionHistoryLimit",
    "serviceAccount",
    "serviceAccountName",
    "serviceMonitor",
    "tolerations",
    "topologySpreadConstraints",
}
"""The values that spec 20 §2 lists, and those of every chart of ours."""


def schema_of_config() -> JsonObject:
    """Return the schema of the value `config`."""
    schema: dict[str, Any] = strict(schema_of(OperatorConfiguration))
    properties = schema["properties"]
    properties["kind"]["enum"] = ["OperatorConfiguration"]
    properties["apiVersion"]["enum"] = ["operator.config.gardener.cloud/v1alpha1"]
    # A pod needs to know its ports.
    for endpoint in properties["server"]["properties"].values():
        endpoint["properties"]["port"] |= {
            "minimum": 1,
            "description": "The port to listen on.",
        }
    # The role that the chart grants is in this namespace.
    properties["leaderElection"]["properties"]["resourceNamespace"]["enum"] = ["garden"]
    properties["featureGates"] = {
        "type": "object",
        "description": properties["featureGates"]["description"],
        "additionalProperties": False,
        "properties": {name: {"type": "boolean"} for name in FEATURE_GATES},
    }
    properties["runtimeClientConnection"]["properties"]["kubeconfig"] |= {
        "description": "The content of a kubeconfig; empty for the pod's ServiceAccount.",
        "pattern": "^$|apiVersion",
    }
    return schema


def test_the_schema_of_the_configuration_is_that_of_the_type() -> None:
    written = json.loads(SCHEMA.read_text())
    desired = {
        **written,
        "properties": {**written["properties"], "config": schema_of_config()},
    }
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        SCHEMA.write_text(json.dumps(desired, indent=2, ensure_ascii=False) + "\n")
        return
    assert written == desired, "update it: PERGOLA_WRITE_DOCS=1 make test ARGS=tests/unit/operator"


def test_the_chart_has_exactly_these_values_and_a_default_for_each() -> None:
    values = parse((CHART / "values.yaml").read_text())
    assert isinstance(values, dict)

    assert set(values) == VALUES
    assert set(json.loads(SCHEMA.read_text())["properties"]) - {"global"} == VALUES


def test_the_page_of_the_chart_has_every_value() -> None:
    text = PAGE.read_text()
    before, _, rest = text.partition(BEGIN)
    written, _, after = rest.partition(END)
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        PAGE.write_text(f"{before}{BEGIN}{table('operator', CONFIG)}{END}{after}")
        return
    assert written == table("operator", CONFIG)


def test_helm_lint_has_no_findings_about_the_operator_chart() -> None:
    assert "WARNING" not in helm(
        "lint", str(CHART), "--namespace", "garden", "--strict", values=with_image()
    )


@pytest.mark.parametrize(
    ("values", "finding"),
    [
        ({"replicas": 2}, "additional properties 'replicas' not allowed"),
        ({"image": {"registry": "a"}}, "additional properties 'registry' not allowed"),
        ({"image": {"tag": 1.3}}, "at '/image/tag': got number, want string"),
        ({"image": {"pullPolicy": "Often"}}, "at '/image/pullPolicy'"),
        ({"image": {"repository": ""}}, "image.repository is not set"),
        ({"replicaCount": -1}, "at '/replicaCount': minimum"),
        ({"replicaCount": "2"}, "at '/replicaCount': got string, want integer"),
        ({"revisionHistoryLimit": 1.5}, "at '/revisionHistoryLimit'"),
        ({"serviceAccountName": ""}, "at '/serviceAccountName'"),
        ({"resources": {"limit": {}}}, "additional properties 'limit' not allowed"),
        ({"podLabels": {"a": 1}}, "at '/podLabels/a': got number, want string"),
        ({"podAnnotations": {"a": True}}, "at '/podAnnotations/a'"),
        ({"hostAliases": [{"ip": "10.0.0.1"}]}, "missing property 'hostnames'"),
        ({"env": [{"value": "a"}]}, "missing property 'name'"),
        ({"env": {"A": "b"}}, "at '/env': got object, want array"),
        ({"additionalVolumes": [{"emptyDir": {}}]}, "missing property 'name'"),
        ({"additionalVolumeMounts": [{"name": "a"}]}, "missing property 'mountPath'"),
        ({"imageVectorOverwrite": {"images": []}}, "at '/imageVectorOverwrite'"),
        ({"nodeToleration": {"seconds": 1}}, "additional properties 'seconds' not allowed"),
        ({"config": {"logLevels": "info"}}, "additional properties 'logLevels' not allowed"),
        ({"config": {"logLevel": "trace"}}, "at '/config/logLevel'"),
        ({"config": {"kind": "Other"}}, "at '/config/kind'"),
        ({"config": {"server": {"metrics": {"port": 0}}}}, "at '/config/server/metrics/port'"),
        ({"config": {"featureGates": {"Unknown": True}}}, "properties 'Unknown' not allowed"),
        (
            {"config": {"leaderElection": {"leaseDuration": "PT15S"}}},
            "at '/config/leaderElection/leaseDuration'",
        ),
        (
            {"config": {"leaderElection": {"resourceNamespace": "default"}}},
            "at '/config/leaderElection/resourceNamespace'",
        ),
        (
            {"config": {"runtimeClientConnection": {"kubeconfig": "/etc/kubeconfig"}}},
            "at '/config/runtimeClientConnection/kubeconfig'",
        ),
        (
            {"replicaCount": 2, "config": {"leaderElection": {"leaderElect": False}}},
            "replicaCount above 1 requires config.leaderElection.leaderElect",
        ),
    ],
    ids=str,
)
def test_invalid_values_are_refused_with_their_path(values: JsonObject, finding: str) -> None:
    with pytest.raises(HelmError) as refused:
        render(CHART, with_image(values))

    assert finding in str(refused.value)


def test_another_namespace_is_refused() -> None:
    with pytest.raises(HelmError, match="runs in namespace garden, not in default"):
        render(CHART, with_image(), namespace="default")


def test_a_configuration_that_the_process_accepts_passes_the_schema() -> None:
    config: JsonObject = {
        "apiVersion": "operator.config.gardener.cloud/v1alpha1",
        "kind": "OperatorConfiguration",
        "featureGates": dict.fromkeys(FEATURE_GATES, True),
        "nodeToleration": {"defaultNotReadyTolerationSeconds": 5},
        "controllers": {
            "garden": {
                "syncPeriod": "1h30m",
                "etcdConfig": {
                    "backupLeaderElection": {"reelectionPeriod": "500ms"},
                    "deltaSnapshotRetentionPeriod": "360h",
                    "featureGates": {"Any": True},
                },
            },
            "networkPolicy": {"additionalNamespaceSelectors": [{"matchLabels": {"a": "b"}}]},
        },
    }
    assert configuration_from(config).config.feature_gates

    assert render(CHART, with_image({"config": config}))
