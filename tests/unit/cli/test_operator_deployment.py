"""The files that the operator's Deployment mounts, of our chart and of others."""

from pathlib import Path

import pytest

from pergola.api.objects import JsonObject
from pergola.cli.garden.operator_deployment import (
    Mounted,
    configuration_file,
    mounted,
    variable,
)
from tests.support.operator_chart import OperatorChart

CHART = Path(__file__).parents[3] / "charts" / "operator"
FILE = "/etc/operator/config.yaml"
ARGUMENT = f"--config={FILE}"


def deployment(mount: JsonObject, volume: JsonObject, *arguments: str) -> JsonObject:
    container = {
        "name": "gardener-operator",
        "args": list(arguments),
        "volumeMounts": [{"name": "tmp", "mountPath": "/var"}, {"name": "config", **mount}],
    }
    volumes = [{"name": "tmp", "emptyDir": {}}, {"name": "config", **volume}]
    pod = {"containers": [{"name": "sidecar"}, container], "volumes": volumes}
    return {"spec": {"template": {"spec": pod}}}


@pytest.mark.timeout(600)  # Helm may have to be built
def test_the_configuration_and_the_image_vector_of_the_chart_are_found() -> None:
    chart = OperatorChart.rendered(CHART, {"imageVectorOverwrite": "images: []"})
    found = chart.one("Deployment")

    config = mounted(found, configuration_file(found))
    vector = mounted(found, variable(found, "IMAGEVECTOR_OVERWRITE"))

    texts = {obj["metadata"]["name"]: obj["data"] for obj in chart.of("ConfigMap")}
    assert config is not None
    assert vector is not None
    assert "kind: OperatorConfiguration" in texts[config.name][config.key]
    assert texts[vector.name][vector.key] == "images: []"


@pytest.mark.parametrize(
    ("mount", "volume", "expected"),
    [
        (
            {"mountPath": "/etc/operator"},
            {"configMap": {"name": "a"}},
            Mounted("a", "config.yaml"),
        ),
        (
            {"mountPath": "/etc/operator"},
            {"configMap": {"name": "a", "items": [{"key": "b", "path": "config.yaml"}]}},
            Mounted("a", "b"),
        ),
        (
            {"mountPath": FILE, "subPath": "b.yaml"},
            {"configMap": {"name": "a"}},
            Mounted("a", "b.yaml"),
        ),
        ({"mountPath": "/etc/operator"}, {"secret": {"secretName": "a"}}, None),
        ({"mountPath": "/etc/other"}, {"configMap": {"name": "a"}}, None),
    ],
)
def test_a_mounted_file_is_a_key_of_its_config_map(
    mount: JsonObject, volume: JsonObject, expected: Mounted | None
) -> None:
    assert mounted(deployment(mount, volume, ARGUMENT), FILE) == expected


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [((ARGUMENT,), FILE), (("--config", FILE), FILE), (("--verbose",), ""), (("--config",), "")],
)
def test_the_configuration_file_is_found_by_its_argument(
    arguments: tuple[str, ...], expected: str
) -> None:
    found = deployment({"mountPath": "/etc"}, {"configMap": {"name": "a"}}, *arguments)
    assert configuration_file(found) == expected


def test_a_deployment_without_the_operator_has_no_configuration() -> None:
    assert configuration_file({}) == ""
    assert mounted({}, FILE) is None
