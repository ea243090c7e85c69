"""Logs on their way from nodes to their store: fluent-bit and the collector (spec 20 §16.8)."""

import re
from typing import Any

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.garden.components.component import Component
from pergola.garden.components.observability.fluent_bit.component import FLUENT_BIT
from pergola.garden.components.observability.fluent_bit.custom_resources import (
    FLUENT_OPERATOR_CUSTOM_RESOURCES,
)
from pergola.garden.components.observability.fluent_bit.pipeline import scripts
from pergola.garden.components.observability.opentelemetry_collector import (
    OPENTELEMETRY_COLLECTOR,
    configuration,
)
from pergola.garden.components.observability.opentelemetry_operator import (
    OPENTELEMETRY_OPERATOR,
)
from pergola.garden.components.observability.victoria_logs import VICTORIA_LOGS
from tests.support.garden import landscape

IPV6: JsonObject = {"spec": {"runtimeCluster": {"networking": {"pods": ["2001:db8:1::/48"]}}}}
WITHOUT_COLLECTOR = {"OpenTelemetryCollector": False}
BOTH_STORES = {"OpenTelemetryCollector": True, "VictoriaLogsBackend": True}
FLUENT = (FLUENT_BIT, FLUENT_OPERATOR_CUSTOM_RESOURCES)


def objects_of(component: Component, **attributes: Any) -> list[JsonObject]:
    (managed,) = component.objects(landscape(**attributes)).managed
    assert managed.condition == "ObservabilityComponentsHealthy"
    return list(managed.objects)


def of_kind(objects: list[JsonObject], kind: str) -> dict[str, JsonObject]:
    return {name_of(obj): obj for obj in objects if obj["kind"] == kind}


def pipelines(*patches: JsonObject, **attributes: Any) -> dict[str, JsonObject]:
    config = configuration(landscape(*patches, **attributes))
    return map_at(config, "service", "pipelines")


def steps_of(component: Component, kind: str) -> list[JsonObject]:
    found = of_kind(objects_of(component), "ClusterFilter").values()
    filters = (step for each in found for step in map_at(each, "spec")["filters"])
    return [step[kind] for step in filters if kind in step]


def test_the_configuration_has_all_resources_with_the_common_label() -> None:
    spec = of_kind(objects_of(FLUENT_BIT), "ClusterFluentBitConfig")["fluent-bit-config"]
    labels = map_at(spec, "spec", "filterSelector")["matchLabels"]
    kinds = {"ClusterFilter", "ClusterInput", "ClusterOutput", "ClusterParser"}
    resources = [obj for each in FLUENT for obj in objects_of(each) if obj["kind"] in kinds]
    assert all(map_at(obj, "metadata", "labels") == labels for obj in resources)


def test_every_filter_uses_a_parser_that_exists() -> None:
    parsers = of_kind(objects_of(FLUENT_OPERATOR_CUSTOM_RESOURCES), "ClusterParser")
    used = steps_of(FLUENT_OPERATOR_CUSTOM_RESOURCES, "parser")
    assert {step["parser"] for step in used} <= set(parsers)


def test_every_script_of_a_filter_exists() -> None:
    for step in steps_of(FLUENT_BIT, "lua"):
        assert f"function {step['call']}(" in scripts()[map_at(step, "script")["key"]]


def test_a_line_of_a_kubernetes_component_is_split_into_its_fields() -> None:
    parsers = of_kind(objects_of(FLUENT_OPERATOR_CUSTOM_RESOURCES), "ClusterParser")
    ruby = map_at(parsers["kube-apiserver-parser"], "spec", "regex")["regex"]
    line = "I0102 03:04:05.678901       1 controller.go:123] synced"
    match = re.match(ruby.replace("(?<", "(?P<"), line)
    assert match is not None
    assert match.groupdict() == {
        "severity": "I",
        "time": "0102 03:04:05.678901",
        "pid": "1",
        "source": "controller.go:123",
        "log": "synced",
    }


def test_fluent_bit_does_not_read_its_own_logs() -> None:
    tail = map_at(
        of_kind(objects_of(FLUENT_BIT), "ClusterInput")["tail-kubernetes"], "spec", "tail"
    )
    assert tail["excludePath"] == "*_garden_fluent-bit-*.log,*_garden_vali-*.log"


def test_logs_go_to_the_collector_of_the_garden() -> None:
    outputs = {
        name: map_at(output, "spec", "customPlugin")["config"]
        for each in FLUENT
        for name, output in of_kind(objects_of(each), "ClusterOutput").items()
    }
    endpoint = "opentelemetry-collector-collector.garden.svc.cluster.local:4317"
    assert set(outputs) == {"systemd", "opentelemetry"}
    assert all(f"\nEndpoint {endpoint}\n" in config for config in outputs.values())
    assert "\nDynamicHostRegex ^shoot-\n" in outputs["opentelemetry"]


def test_logs_reach_the_collector_whatever_its_feature_gate_says() -> None:
    assert OPENTELEMETRY_COLLECTOR.absent(landscape(feature_gates=WITHOUT_COLLECTOR)) is None
    for component in FLUENT:
        objects = objects_of(component, feature_gates=WITHOUT_COLLECTOR)
        assert of_kind(objects, "ClusterOutput") != {}


def test_the_collector_has_a_pipeline_for_each_store() -> None:
    assert set(pipelines()) == {"logs/vali"}
    assert set(pipelines(feature_gates=BOTH_STORES)) == {"logs/vali", "logs/victorialogs"}


def test_a_collector_without_a_store_still_has_a_valid_configuration() -> None:
    assert set(pipelines(IPV6)) == {"logs/none"}


def test_pipelines_use_only_configured_components() -> None:
    config = configuration(landscape(feature_gates=BOTH_STORES))
    for each in map_at(config, "service", "pipelines").values():
        for part in ("receivers", "processors", "exporters"):
            assert set(each[part]) <= set(map_at(config, part))


def test_the_collector_comes_after_its_operator() -> None:
    assert OPENTELEMETRY_COLLECTOR.after == (OPENTELEMETRY_OPERATOR.deploy,)


def test_victoria_logs_needs_its_feature_gate() -> None:
    assert VICTORIA_LOGS.absent(landscape()) == "the feature gate VictoriaLogsBackend is off"
    assert VICTORIA_LOGS.absent(landscape(feature_gates=BOTH_STORES)) is None


def test_the_collector_connects_to_the_service_of_victoria_logs() -> None:
    store = objects_of(VICTORIA_LOGS, feature_gates=BOTH_STORES)[0]
    spec = map_at(store, "spec")
    service = map_at(spec, "serviceSpec", "metadata")["name"]
    exporter = map_at(configuration(landscape()), "exporters", "otlphttp/victorialogs")
    assert exporter["logs_endpoint"].startswith(f"http://{service}:{spec['port']}/")


def test_the_volume_of_victoria_logs_has_the_minimum_size_of_the_garden() -> None:
    larger: JsonObject = {"spec": {"runtimeCluster": {"volume": {"minimumSize": "50Gi"}}}}
    (managed,) = VICTORIA_LOGS.objects(landscape(larger, feature_gates=BOTH_STORES)).managed
    storage = map_at(managed.objects[0], "spec", "storage", "resources", "requests")
    assert storage["storage"] == "50Gi"
