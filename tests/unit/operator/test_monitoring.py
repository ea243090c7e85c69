"""Scrapes and rules of Prometheus (spec 20 §16.8)."""

from importlib.resources import files

from pergola.api.objects import map_at, name_of
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.monitoring import (
    ACCESS,
    GARDEN,
    authenticated,
    endpoint,
    job,
    kept_metrics,
    replace,
    rule_file,
    service_monitor,
)
from tests.support.garden import COMPLETE, landscape

RULES = files("pergola.garden.components") / "prometheus_rules"


def test_a_prometheus_finds_its_objects_by_their_label() -> None:
    found = service_monitor(GARDEN, "web", {"app": "web"}, endpoint("metrics"))
    assert found["metadata"] == {
        "name": "garden-web",
        "namespace": "garden",
        "labels": {"prometheus": "garden"},
    }
    assert found["spec"] == {
        "selector": {"matchLabels": {"app": "web"}},
        "endpoints": [{"port": "metrics"}],
    }


def test_port_names_refer_to_the_service_and_numbers_to_the_pods() -> None:
    assert endpoint("metrics") == {"port": "metrics"}
    assert endpoint(8443) == {"targetPort": 8443}


def test_metrics_are_matched_by_their_full_names() -> None:
    (step,) = kept_metrics("go_.+", "up")
    assert step == {"action": "keep", "regex": "^(go_.+|up)$", "sourceLabels": ["__name__"]}


def test_relabelings_omit_prometheus_defaults() -> None:
    assert job("web") == {"action": "replace", "targetLabel": "job", "replacement": "web"}
    assert replace("role", "", "part_of") == {
        "action": "replace",
        "targetLabel": "role",
        "sourceLabels": ["part_of"],
    }


def test_servers_of_the_virtual_cluster_get_the_token_of_the_garden_prometheus() -> None:
    found = authenticated(endpoint("metrics"))
    assert map_at(found, "authorization", "credentials") == {"name": ACCESS, "key": "token"}
    assert found["scheme"] == "HTTPS"


def test_an_alert_that_a_garden_does_not_need_is_omitted() -> None:
    def alerts(without: tuple[str, ...] = ()) -> list[str]:
        (group,) = map_at(rule_file(GARDEN, "shoot", without=without), "spec")["groups"]
        return [rule["alert"] for rule in group["rules"]]

    first, *others = alerts()
    assert alerts(without=(first,)) == others
    assert alerts() == [first, *others]


def test_each_file_with_rules_belongs_to_a_component() -> None:
    gates = {**landscape().feature_gates, "VictoriaLogsBackend": True}
    names = set()
    for some in (landscape(COMPLETE), landscape(COMPLETE, feature_gates=gates)):
        for rendered in (each.objects(some) for each in CATALOG if each.absent(some) is None):
            managed = (obj for each in rendered.managed for obj in each.objects)
            objects = (*rendered.direct, *managed)
            names |= {name_of(obj) for obj in objects if obj["kind"] == "PrometheusRule"}
    assert {file.name.removesuffix(".yaml") for file in RULES.iterdir()} - names == set()
