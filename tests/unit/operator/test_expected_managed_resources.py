"""The expected ManagedResources of a Garden are those that its components render."""

from dataclasses import replace
from typing import Any, Final

import pytest

from pergola.api.objects import Key
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Managed, Target
from pergola.garden.components.managed_resources import Expected, expected
from pergola.garden.landscape import Landscape
from pergola.garden.landscape.credentials import Credentials
from tests.support.garden import COMPLETE, HIGHLY_AVAILABLE, landscape

PVC: Final = {
    "spec": {"runtimeCluster": {"settings": {"persistentVolumeClaimAutoscaler": {"enabled": True}}}}
}
NO_DASHBOARD: Final = {"spec": {"virtualCluster": {"gardener": {"gardenerDashboard": None}}}}
NO_VPA: Final = {
    "spec": {"runtimeCluster": {"settings": {"verticalPodAutoscaler": {"enabled": False}}}}
}


def gates(**changed: bool) -> dict[str, Any]:
    return {"feature_gates": {**landscape().feature_gates, **changed}}


GARDENS: Final = {
    "small": landscape(NO_DASHBOARD, NO_VPA),
    "usual": landscape(),
    "complete": landscape(COMPLETE, HIGHLY_AVAILABLE, PVC),
    "other logs": landscape(**gates(VictoriaLogsBackend=True, RemoveVali=True)),
    "TLS passed on": landscape(**gates(IstioTLSTermination=False, OpenTelemetryCollector=False)),
    "with nginx": landscape(**gates(DisableNginxIngressInGarden=False)),
}


@pytest.mark.parametrize("garden", GARDENS.values(), ids=GARDENS)
def test_every_garden_expects_the_managed_resources_of_its_components(garden: Landscape) -> None:
    rendered = {
        Expected(Key(each.namespace, each.name), condition(each))
        for component in CATALOG
        if component.absent(garden) is None
        for each in component.objects(garden).managed
    }
    assert set(expected(garden)) == rendered


def test_expected_managed_resources_need_neither_credentials_nor_references() -> None:
    garden = GARDENS["complete"]
    bare = replace(garden, credentials=Credentials(), references={}, wildcard_certificate=None)
    assert expected(bare) == expected(garden)


def condition(managed: Managed) -> str:
    """Return the condition that counts a ManagedResource by its label and class."""
    by_class = {Target.RUNTIME: "RuntimeComponentsHealthy"}
    return managed.condition or by_class.get(managed.target, "VirtualComponentsHealthy")
