"""Conditions of ManagedResources that fail are metrics of the instance that is responsible."""

from typing import Any

from pergola.api.objects import JsonObject
from pergola.kube.client import Client
from pergola.kube.transport import Transport
from pergola.resource_manager.manager import Options, ResourceManager
from pergola.runtime.metrics import Metrics
from tests.support.cluster_config import cluster_config


def resource(name: str, version: int, applied: str, **spec: Any) -> JsonObject:
    conditions = {
        "ResourcesApplied": applied,
        "ResourcesHealthy": "True",
        "ResourcesProgressing": "False",
    }
    return {
        "apiVersion": "resources.gardener.cloud/v1alpha1",
        "kind": "ManagedResource",
        "metadata": {"name": name, "namespace": "a", "resourceVersion": str(version)},
        "spec": {"secretRefs": [{"name": "a"}], **spec},
        "status": {"conditions": [{"type": k, "status": v} for k, v in conditions.items()]},
    }


async def test_a_failing_condition_is_a_metric_until_it_is_as_it_should_be() -> None:
    metrics, client = Metrics(), Client(Transport(cluster_config()))
    source = ResourceManager(client, client, Options(), metrics=metrics).source
    source.observe(resource("broken", 1, "False"))
    source.observe(resource("fine", 2, "True"))
    source.observe(resource("of-another", 3, "False", **{"class": "seed"}))

    failing = (
        'pergola_condition_failing{condition="ResourcesApplied",'
        'kind="ManagedResource",name="broken",namespace="a"} 1.0'
    )
    text = metrics.render().decode()
    assert [line for line in text.splitlines() if line.startswith("pergola_condition_f")] == [
        failing
    ]
    assert 'pergola_conditions{kind="ManagedResource"} 6.0' in text

    source.observe(resource("broken", 4, "True"))
    assert failing not in metrics.render().decode()
