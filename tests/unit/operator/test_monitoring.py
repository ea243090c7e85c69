"""Scrapes and rules of Prometheus (spec 20 §16.8)."""

from pergola.api.objects import map_at
from pergola.garden.components.monitoring import (
    ACCESS,
    GARDEN,
    alert,
    authenticated,
    endpoint,
    job,
    kept_metrics,
    prometheus_rule,
    replace,
    rules,
    service_monitor,
)


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


def test_an_alert_without_a_duration_fires_at_once() -> None:
    fires = alert("Down", "up == 0", summary="Down", description="It is down.", severity="critical")
    assert "for" not in fires
    assert map_at(prometheus_rule(GARDEN, "down", rules("down", fires)), "spec")["groups"] == [
        {"name": "down", "rules": [fires]}
    ]
