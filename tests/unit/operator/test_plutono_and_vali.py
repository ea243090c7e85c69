"""Plutono and Vali (spec 20 §16.8)."""

import base64
from typing import Any

import orjson
import pytest

from pergola.api.objects import JsonObject, map_at, name_of
from pergola.garden.components.component import Component
from pergola.garden.components.observability.plutono.component import PLUTONO
from pergola.garden.components.observability.plutono.dashboards.catalog import dashboards
from pergola.garden.components.observability.plutono.dashboards.panels import dashboard, graph
from pergola.garden.components.observability.plutono.provisioning import data_sources
from pergola.garden.components.observability.vali import VALI
from pergola.kube.yaml import parse
from tests.support.garden import landscape

IPV6: JsonObject = {
    "spec": {"runtimeCluster": {"networking": {"pods": ["10.1.0.0/16", "2001:db8:1::/48"]}}}
}
LARGER: JsonObject = {"spec": {"runtimeCluster": {"volume": {"minimumSize": "40Gi"}}}}

every_dashboard = pytest.mark.parametrize(
    ("file", "content"), dashboards(has_logs=True).items(), ids=lambda each: each[:30]
)


def objects_of(component: Component, *patches: JsonObject, **attributes: Any) -> list[JsonObject]:
    (managed,) = component.objects(landscape(*patches, **attributes)).managed
    assert managed.condition == "ObservabilityComponentsHealthy"
    return list(managed.objects)


def only(objects: list[JsonObject], kind: str) -> JsonObject:
    (found,) = (obj for obj in objects if obj["kind"] == kind)
    return found


def containers() -> dict[str, JsonObject]:
    pod = map_at(only(objects_of(PLUTONO), "Deployment"), "spec", "template", "spec")
    return {each["name"]: each for each in pod["containers"]}


def environment(container: JsonObject) -> dict[str, str]:
    return {each["name"]: each["value"] for each in container["env"]}


def test_labelled_config_maps_are_loaded_as_dashboards() -> None:
    variables = environment(containers()["dashboard-refresher"])
    assert variables["LABEL"] == "dashboard.monitoring.gardener.cloud/garden"
    assert variables["LABEL_VALUE"] == "true"
    assert variables["NAMESPACE"] == "garden"


def test_the_first_dashboards_are_labelled_like_those_of_users() -> None:
    (shipped,) = PLUTONO.objects(landscape()).direct
    labels = map_at(shipped, "metadata", "labels")
    assert labels["dashboard.monitoring.gardener.cloud/garden"] == "true"
    assert name_of(shipped) == "plutono-dashboards-garden"


def test_users_can_view_everything_but_administer_nothing() -> None:
    variables = environment(containers()["plutono"])
    assert variables["PL_AUTH_ANONYMOUS_ENABLED"] == "true"
    assert variables["PL_AUTH_DISABLE_LOGIN_FORM"] == "true"
    refused, _ = map_at(only(objects_of(PLUTONO), "VirtualService"), "spec")["http"]
    assert refused["match"] == [{"uri": {"prefix": "/api/admin/"}}]
    assert refused["directResponse"] == {"status": 403}


def test_the_administrator_has_the_generated_password() -> None:
    secrets = [obj for obj in objects_of(PLUTONO) if obj["kind"] == "Secret"]
    (config,) = (obj for obj in secrets if name_of(obj).startswith("plutono-config-"))
    content = base64.b64decode(map_at(config, "data")["plutono.ini"])
    assert b"admin_password = password of plutono-admin\n" in content


def test_dashboards_show_logs_only_if_they_are_stored() -> None:
    def names(*, has_logs: bool) -> list[str]:
        return [each["name"] for each in data_sources(has_logs=has_logs)["datasources"]]

    assert names(has_logs=True) == ["prometheus-garden", "prometheus-longterm", "vali"]
    assert names(has_logs=False) == ["prometheus-garden", "prometheus-longterm"]
    more = set(dashboards(has_logs=True)) - set(dashboards(has_logs=False))
    assert more == {"garden-pod-logs-dashboard.json"}


@every_dashboard
def test_panels_of_a_dashboard_have_unique_ids(file: str, content: str) -> None:
    found = orjson.loads(content)
    ids = [panel["id"] for panel in found["panels"]]
    assert file == f"{found['uid']}-dashboard.json"
    assert ids == list(range(1, len(ids) + 1))


@every_dashboard
def test_panels_of_a_dashboard_do_not_overlap(file: str, content: str) -> None:
    del file
    places = [panel["gridPos"] for panel in orjson.loads(content)["panels"]]
    cells = [
        (x, y)
        for place in places
        for x in range(place["x"], place["x"] + place["w"])
        for y in range(place["y"], place["y"] + place["h"])
    ]
    assert max(x for x, _ in cells) < 24
    assert len(cells) == len(set(cells))


def test_a_panel_that_does_not_fit_starts_a_new_row() -> None:
    panels = (graph("one", {"": "up"}, width=16), graph("two", {"": "up"}, width=12, height=5))
    places = [panel["gridPos"] for panel in dashboard("uid", "Title", panels)["panels"]]
    assert places == [
        {"w": 16, "h": 8, "x": 0, "y": 0},
        {"w": 12, "h": 5, "x": 0, "y": 8},
    ]


def test_vali_is_not_deployed_if_pods_have_ipv6_addresses() -> None:
    assert VALI.absent(landscape()) is None
    reason = VALI.absent(landscape(IPV6))
    assert reason is not None
    assert "2001:db8:1::/48" in reason


def test_vali_is_removed_only_if_another_store_keeps_the_logs() -> None:
    gates = {"RemoveVali": True, "VictoriaLogsBackend": True}
    for gate in gates:
        assert VALI.absent(landscape(feature_gates={gate: True})) is None
    reason = VALI.absent(landscape(feature_gates=gates))
    assert reason == "the feature gates RemoveVali and VictoriaLogsBackend are on"


def test_the_volume_of_vali_has_the_minimum_size_of_the_garden() -> None:
    (claim,) = map_at(only(objects_of(VALI, LARGER), "StatefulSet"), "spec")["volumeClaimTemplates"]
    assert map_at(claim, "spec", "resources", "requests")["storage"] == "40Gi"


def test_logs_are_retained_for_as_long_as_they_can_be_searched() -> None:
    files = map_at(only(objects_of(VALI), "ConfigMap"), "data")
    settings = parse(files["vali.yaml"])
    assert isinstance(settings, dict)
    kept = map_at(settings, "table_manager")["retention_period"]
    assert map_at(settings, "chunk_store_config")["max_look_back_period"] == kept == "360h"
    curator = parse(files["curator.yaml"])
    assert isinstance(curator, dict)
    chunks = map_at(settings, "storage_config", "filesystem")["directory"]
    assert curator["DiskPath"] == chunks
