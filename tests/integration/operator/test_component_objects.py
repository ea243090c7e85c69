"""A real API server accepts the objects of all components, and knows each of their fields."""

from collections.abc import AsyncIterator

import pytest

from pergola.api.objects import GroupVersionKind, JsonObject, metadata_of, name_of
from pergola.garden.components.catalog import CATALOG
from pergola.garden.components.component import Component
from pergola.garden.landscape import NAMESPACE
from pergola.kube.errors import AlreadyExists, ApiError
from pergola.kube.kubeconfig import load
from pergola.sandbox import Sandbox
from tests.support.garden import HIGHLY_AVAILABLE, landscape
from tests.support.strict_client import StrictClient

BUILT_IN = {
    "",
    "admissionregistration.k8s.io",
    "apps",
    "autoscaling",
    "coordination.k8s.io",
    "networking.k8s.io",
    "policy",
    "rbac.authorization.k8s.io",
    "scheduling.k8s.io",
}
EVERYTHING: JsonObject = {
    "spec": {
        "runtimeCluster": {
            "settings": {
                "loadBalancerServices": {"externalTrafficPolicy": "Local"},
                "persistentVolumeClaimAutoscaler": {"enabled": True},
                "topologyAwareRouting": {"enabled": True},
            }
        }
    }
}
GATES = {"DisableNginxIngressInGarden": False, "IstioTLSTermination": True}


@pytest.fixture
async def strict(garden_sandbox: Sandbox) -> AsyncIterator[StrictClient]:
    async with StrictClient.connect(load(garden_sandbox.kubeconfig)) as client:
        yield client


def rendered(component: Component) -> list[JsonObject]:
    """Return the objects of built-in kinds; those with a namespace are moved to the garden's."""
    built = landscape(HIGHLY_AVAILABLE, EVERYTHING, feature_gates=GATES)
    if component.absent(built) is not None:
        return []
    found = component.objects(built)
    objects = [*found.direct, *(obj for each in found.managed for obj in each.objects)]
    return [moved(obj) for obj in objects if GroupVersionKind.of(obj).group in BUILT_IN]


def moved(obj: JsonObject) -> JsonObject:
    metadata = metadata_of(obj)
    if "namespace" not in metadata:
        return obj
    return {**obj, "metadata": {**metadata, "namespace": NAMESPACE}}


@pytest.mark.parametrize("component", CATALOG, ids=lambda each: each.name)
async def test_the_api_server_accepts_all_objects_of_a_component(
    strict: StrictClient, component: Component
) -> None:
    refused = {}
    for obj in rendered(component):
        try:
            await strict.create(obj)
        except AlreadyExists:
            continue  # such as the namespace of the garden: validation comes before the lookup
        except ApiError as error:
            refused[f"{obj['kind']} {name_of(obj)}"] = str(error)
    assert refused == {}
