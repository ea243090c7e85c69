"""terminal-controller-manager (spec 20 §16.6)."""

import pytest

from pergola.api.dashboard_v1alpha1 import terminal_crd
from pergola.api.objects import JsonObject, map_at, maps_at
from pergola.garden.components.terminal_controller_manager import (
    TERMINAL_CONTROLLER_MANAGER,
    configuration,
)
from tests.support.garden import landscape


@pytest.mark.parametrize(
    "dashboard", [None, {"terminal": None}], ids=["no dashboard", "no terminal"]
)
def test_it_is_not_deployed_without_terminals(dashboard: JsonObject | None) -> None:
    of = landscape({"spec": {"virtualCluster": {"gardener": {"gardenerDashboard": dashboard}}}})
    reason = TERMINAL_CONTROLLER_MANAGER.absent(of)
    assert reason == "spec.virtualCluster.gardener.gardenerDashboard.terminal is not set"


def test_terminals_may_only_use_the_api_server_of_the_dashboard() -> None:
    config = configuration(landscape())
    assert config["allowedAPIServerURLs"] == ["https://api.garden.local-test.gardener.cloud"]


def test_only_the_dashboard_account_is_cleaned_up() -> None:
    accounts = map_at(configuration(landscape()), "controllers", "serviceAccount")
    assert accounts["allowedServiceAccountNames"] == ["dashboard-webterminal"]


def test_webhooks_are_reached_through_the_runtime_cluster_with_its_authority() -> None:
    urls = {
        map_at(webhook, "clientConfig")["url"]
        for managed in TERMINAL_CONTROLLER_MANAGER.objects(landscape()).managed
        for obj in managed.objects
        for webhook in maps_at(obj, "webhooks")
    }
    assert urls == {
        "https://terminal-controller-manager.garden.svc/mutate-terminal",
        "https://terminal-controller-manager.garden.svc/validate-terminal",
    }


def test_the_definition_of_terminals_requires_host_target_and_identifier() -> None:
    (version,) = maps_at(terminal_crd(), "spec", "versions")
    spec = map_at(version, "schema", "openAPIV3Schema", "properties", "spec")
    assert sorted(spec["required"]) == ["host", "identifier", "target"]
