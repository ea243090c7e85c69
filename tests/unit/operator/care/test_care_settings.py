"""The care reconciler's settings come from the configuration file (spec 21 §1.2)."""

from datetime import timedelta

import pytest

from pergola.api.objects import JsonObject
from pergola.api.operator_config import API_VERSION, KIND, configuration_from
from pergola.operator.care.observe import Settings


def settings(care: JsonObject | None = None, **fields: JsonObject) -> Settings:
    config: JsonObject = {"apiVersion": API_VERSION, "kind": KIND, **fields}
    if care is not None:
        config["controllers"] = {"gardenCare": care}
    return Settings.of(configuration_from(config).config)


def test_by_default_there_are_no_thresholds_and_no_queries() -> None:
    assert settings() == Settings(sync_period=timedelta(minutes=1))


def test_everything_can_be_configured() -> None:
    thresholds: list[JsonObject] = [{"type": "RuntimeComponentsHealthy", "duration": "1m"}]
    found = settings(
        {
            "syncPeriod": "30s",
            "conditionThresholds": thresholds,
            "countLabelledResourcesOnce": True,
        },
        featureGates={"PrometheusHealthChecks": True},
    )
    assert found == Settings(
        sync_period=timedelta(seconds=30),
        thresholds={"RuntimeComponentsHealthy": timedelta(minutes=1)},
        queries_prometheus=True,
        counts_once=True,
    )


@pytest.mark.parametrize(("period", "seconds"), [(30, 15), (60, 30), (180, 90), (3600, 90)])
def test_checks_time_out_after_half_the_period_or_90_seconds(period: int, seconds: int) -> None:
    assert Settings(sync_period=timedelta(seconds=period)).patience == seconds
