"""The provider of machines in examples/worker."""

from pathlib import Path
from typing import Any

import pytest

from pergola.api.objects import JsonObject, name_of
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.extensions.loading import load_actuator
from pergola.extensions.provider_config import read_strict
from pergola.extensions.workers import Pool, WorkerPlan, WorkerProvider
from pergola.extensions.workers.desired import DesiredMachines, desired_machines

EXAMPLE = Path(__file__).parents[4] / "examples" / "worker" / "nimbus_workers.py"


@pytest.fixture(scope="module")
def provider() -> WorkerProvider[Any]:
    found = load_actuator(f"{EXAMPLE}:NimbusWorker")
    assert isinstance(found, WorkerProvider)
    return found


def plan(provider: WorkerProvider[Any], **config: bool) -> WorkerPlan[Any]:
    raw: JsonObject = {
        "name": "pool",
        "minimum": 3,
        "maximum": 5,
        "maxSurge": 1,
        "maxUnavailable": 0,
        "zones": ["a", "b"],
        "machineType": "large",
        "machineImage": {"name": "linux", "version": "1"},
        "nodeTemplate": {"capacity": {"cpu": "2"}},
        "nodeAgentSecretName": "agent-1",
    }
    value: JsonObject = {
        "apiVersion": provider.config_gvk.api_version,
        "kind": provider.config_gvk.kind,
        **config,
    }
    return WorkerPlan(
        pools=[Pool(raw=raw, config=read_strict(provider.config, value, provider.config_gvk))],
        region="west",
        infrastructure={"networkID": "net-1"},
        status={},
        cluster=Cluster("shoot--a--b"),
        shoot=Shoot({"status": {"technicalID": "shoot--a--b"}}),
        namespace="shoot--a--b",
        secret={"name": "cloudprovider", "namespace": "shoot--a--b"},
    )


def machines(provider: WorkerProvider[Any], **config: bool) -> list[DesiredMachines]:
    found = plan(provider, **config)
    return desired_machines(
        found, provider.render(found), provider.provider, {"pool": b"#!/bin/sh"}
    )


def test_it_renders_a_class_in_each_zone(provider: WorkerProvider[Any]) -> None:
    first, second = machines(provider)

    assert (first.name, first.minimum, first.maximum) == ("shoot--a--b-pool-z1", 2, 3)
    assert (second.name, second.minimum, second.maximum) == ("shoot--a--b-pool-z2", 1, 2)
    assert first.machine_class["provider"] == "Nimbus"
    assert first.machine_class["providerSpec"] == {
        "image": "linux-1",
        "size": "large",
        "network": "net-1",
        "spot": False,
    }
    assert name_of(first.secret) == first.class_name


def test_machines_for_spot_prices_replace_others(provider: WorkerProvider[Any]) -> None:
    names = {each.class_name for each in machines(provider)}

    assert names.isdisjoint(each.class_name for each in machines(provider, spot=True))
    assert names == {each.class_name for each in machines(provider, spot=False)}


def test_a_missing_network_is_named(provider: WorkerProvider[Any]) -> None:
    found = plan(provider)

    assert list(provider.check(found)) == []
    object.__setattr__(found, "infrastructure", {})
    [cause] = provider.check(found)
    assert cause.field == "spec.infrastructureProviderStatus.networkID"


def test_the_author_writes_less_than_a_hundred_lines() -> None:
    assert len(EXAMPLE.read_text().splitlines()) < 100
