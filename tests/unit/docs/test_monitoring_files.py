"""Alerts and dashboards use metrics that exist, with labels that they have."""

import os
import re
from collections.abc import Iterator
from typing import Final

import pytest
from prometheus_client import CollectorRegistry
from prometheus_client.metrics import MetricWrapperBase

from pergola.api.objects import JsonObject, labels_of, map_at, maps_at, name_of
from pergola.cloud.aws.metrics import AwsMetrics
from pergola.controllers.condition_metrics import ConditionMetrics
from pergola.flow.metrics import FlowMetrics
from pergola.kube.yaml import parse
from pergola.operator.care.metrics import CareMetrics
from pergola.operator.rotation.metrics import CredentialAges, RotationPhases
from pergola.resource_manager.controllers.managed_resource.own_writes import Refusals
from pergola.resource_manager.controllers.token_requestor.memory import TokenMetrics
from pergola.resource_manager.target import UnwatchedKinds
from pergola.runtime.metrics import Metrics
from tests.support.charts import ALL_CHARTS, ChartCase
from tools.monitoring import ALERTS, FAMILIES, dashboard, files, main
from tools.panels import PANELS

OBSERVED: Final = [chart for chart in ALL_CHARTS if chart.name in FAMILIES]
_SELECTION: Final = re.compile(r"\b([a-z]\w+)\{(.*?)\}")
_BY: Final = re.compile(r"\bby \((.*?)\)")
_OF_PROMETHEUS: Final = {"job", "le"}


def metrics() -> dict[str, set[str]]:
    """Return the labels of every metric that some process exports."""
    of = Metrics()
    of.registry.register(UnwatchedKinds(lambda: None))
    for kind in (AwsMetrics, FlowMetrics, CareMetrics, CredentialAges, RotationPhases, Refusals):
        kind(of.registry)
    TokenMetrics(of.registry)
    ConditionMetrics(of.registry)
    return {"up": {"instance"}, **dict(_labelled(of.registry))}


def _labelled(registry: CollectorRegistry) -> Iterator[tuple[str, set[str]]]:
    for collector, names in registry._collector_to_names.items():
        if isinstance(collector, MetricWrapperBase):
            yield from ((name, set(collector._labelnames)) for name in names)
            continue
        for family in collector.collect():  # it declares its labels when it is read
            labels = set(getattr(family, "_labelnames", ()))
            name = f"{family.name}_total" if family.type == "counter" else family.name
            yield name, labels


def expressions() -> Iterator[tuple[str, str]]:
    """Yield the expressions of all alerts and panels with their names."""
    for path in sorted(ALERTS.iterdir()):
        rules = parse(path.read_text())
        assert isinstance(rules, dict)
        for group in maps_at(rules, "groups"):
            yield from ((rule["alert"], rule["expr"]) for rule in maps_at(group, "rules"))
    for panels in PANELS.values():
        yield from ((panel.title, panel.expr) for panel in panels)


def test_all_expressions_use_existing_metrics_and_labels(subtests: pytest.Subtests) -> None:
    known = metrics()
    for name, expression in expressions():
        with subtests.test(name):
            selections = _SELECTION.findall(expression)
            assert selections
            for metric, matchers in selections:
                assert metric in known, metric
                assert 'job="JOB"' in matchers, "it would watch other processes, too"
                used = set(re.findall(r"(\w+)[=!]", matchers))
                used |= {label for group in _BY.findall(expression) for label in group.split(", ")}
                assert used - _OF_PROMETHEUS <= known[metric], metric


def test_every_family_is_installed_by_a_chart() -> None:
    installed = {family for families in FAMILIES.values() for family in families}

    assert installed == {path.stem for path in ALERTS.iterdir()} == set(PANELS)
    assert set(FAMILIES) <= {chart.name for chart in ALL_CHARTS if chart.has_pods}


@pytest.mark.parametrize("chart", sorted(FAMILIES))
def test_a_chart_has_the_alerts_and_the_dashboard_of_its_metrics(chart: str) -> None:
    if os.environ.get("PERGOLA_WRITE_DOCS"):
        main()
    desired = files(chart)

    written = {path: path.read_text() for path in desired if path.is_file()}
    assert written == desired, "update them: python -m tools.monitoring"
    [folder] = {path.parent for path in desired if path.suffix == ".yaml"}
    assert set(folder.iterdir()) == {path for path in desired if path.suffix == ".yaml"}


def test_panels_do_not_overlap() -> None:
    panels = maps_at(dashboard(FAMILIES["operator"]), "panels")
    places = {(panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels}

    assert len(places) == len(panels) == len({panel["id"] for panel in panels})


@pytest.mark.timeout(600)  # Helm may have to be built
@pytest.mark.parametrize("chart", OBSERVED, ids=lambda chart: chart.name)
def test_rules_and_dashboard_select_what_the_service_monitor_scrapes(chart: ChartCase) -> None:
    switches = ("serviceMonitor", "prometheusRule", "dashboard")
    values: JsonObject = {name: {"enabled": True} for name in switches}
    values["prometheusRule"] = {"enabled": True, "labels": {"prometheus": "main"}}
    found = chart.rendered(values)

    [monitor] = [obj for obj in found if obj["kind"] == "ServiceMonitor"]
    desired = map_at(monitor, "spec", "selector", "matchLabels").items()
    [service] = [
        obj
        for obj in found
        if obj["kind"] == "Service" and desired <= map_at(obj, "metadata", "labels").items()
    ]
    [rule] = [obj for obj in found if obj["kind"] == "PrometheusRule"]
    [board] = boards(found)
    assert rule["metadata"]["labels"]["prometheus"] == "main"
    [text] = board["data"].values()
    alerts = [each for group in maps_at(rule, "spec", "groups") for each in maps_at(group, "rules")]
    panels = maps_at(map_at({"board": parse(text)}, "board"), "panels")
    queries = [target["expr"] for panel in panels for target in panel["targets"]]
    for expression in (*(alert["expr"] for alert in alerts), *queries):
        assert f'job="{name_of(service)}"' in expression
    assert "JOB" not in str(rule) + text


@pytest.mark.timeout(600)  # Helm may have to be built
@pytest.mark.parametrize("chart", OBSERVED, ids=lambda chart: chart.name)
def test_monitoring_is_disabled_by_default(chart: ChartCase) -> None:
    found = chart.rendered()

    assert not {"ServiceMonitor", "PrometheusRule"} & {obj["kind"] for obj in found}
    assert boards(found) == []


def boards(objects: list[JsonObject]) -> list[JsonObject]:
    """Return the ConfigMaps that Grafana loads."""
    return [obj for obj in objects if "grafana_dashboard" in labels_of(obj)]
