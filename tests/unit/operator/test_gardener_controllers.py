"""gardener-controller-manager and gardener-scheduler (spec 20 §16.4, §16.5)."""

from pergola.api.objects import JsonObject, map_at
from pergola.garden.components import gardener_controller_manager, gardener_scheduler
from tests.support.garden import landscape


def settings(name: str, **fields: object) -> JsonObject:
    return {"spec": {"virtualCluster": {"gardener": {name: fields}}}}


def test_the_scheduler_follows_the_strategy_of_the_garden() -> None:
    of = landscape(settings("gardenerScheduler", strategy="MinimalDistance", logLevel="debug"))
    config = gardener_scheduler.configuration(of)
    assert map_at(config, "schedulers", "shoot") == {
        "candidateDeterminationStrategy": "MinimalDistance"
    }
    assert config["logLevel"] == "debug"


def test_seeds_of_the_same_region_are_the_default() -> None:
    config = gardener_scheduler.configuration(landscape())
    assert map_at(config, "schedulers", "shoot") == {"candidateDeterminationStrategy": "SameRegion"}


def test_quotas_of_new_projects_are_passed_to_the_controller_manager() -> None:
    quota: JsonObject = {
        "config": {"spec": {"hard": {"count/shoots.core.gardener.cloud": "5"}}},
        "projectSelector": {"matchLabels": {"size": "small"}},
    }
    of = landscape(settings("gardenerControllerManager", defaultProjectQuotas=[quota]))
    project = map_at(gardener_controller_manager.configuration(of), "controllers", "project")
    assert project == {"concurrentSyncs": 20, "quotas": [quota]}


def test_projects_have_no_quota_by_default() -> None:
    config = gardener_controller_manager.configuration(landscape())
    assert map_at(config, "controllers", "project") == {"concurrentSyncs": 20}


def test_both_elect_their_leader_in_the_virtual_cluster() -> None:
    for module in (gardener_controller_manager, gardener_scheduler):
        election = map_at(module.configuration(landscape()), "leaderElection")
        assert election["resourceNamespace"] == "kube-system"
        assert election["resourceName"] == f"{module.NAME}-leader-election"


def test_feature_gates_are_written_only_if_the_garden_sets_them() -> None:
    of = landscape(
        settings("gardenerControllerManager", featureGates={"A": True}),
        settings("gardenerScheduler", featureGates={"A": False}),
    )
    assert gardener_controller_manager.configuration(of)["featureGates"] == {"A": True}
    assert gardener_scheduler.configuration(of)["featureGates"] == {"A": False}
    assert "featureGates" not in gardener_scheduler.configuration(landscape())
