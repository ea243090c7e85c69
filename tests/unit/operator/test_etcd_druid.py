"""etcd-druid (spec 20 §13)."""

from pergola.api.objects import map_at
from pergola.garden.components.etcd_druid import configuration
from tests.support.garden import landscape


def test_etcd_druid_gets_the_settings_of_the_operator() -> None:
    controllers = map_at(configuration(landscape().etcd_config), "controllers")
    assert map_at(controllers, "etcd")["concurrentSyncs"] == 50
    assert map_at(controllers, "compaction") == {
        "enabled": False,
        "concurrentSyncs": 3,
        "eventsThreshold": 1000000,
        "activeDeadlineDuration": "3h",
        "metricsScrapeWaitDuration": "60s",
    }


def test_settings_absent_in_the_operator_are_left_to_druid() -> None:
    config = configuration({"featureGates": {"UpgradeEtcdVersion": True}})
    assert config["featureGates"] == {"UpgradeEtcdVersion": True}
    assert map_at(config, "controllers", "compaction") == {}
    assert "featureGates" not in configuration({})


def test_only_the_garbage_collector_may_change_objects_of_druid() -> None:
    protection = map_at(configuration({}), "webhooks", "etcdComponentProtection")
    assert protection["exemptServiceAccounts"] == [
        "system:serviceaccount:kube-system:generic-garbage-collector"
    ]
