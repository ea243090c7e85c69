"""The health of a Garden becomes conditions, on a real API server (spec 21 §3 'Must hold')."""

import asyncio
from collections import Counter
from datetime import UTC, datetime, timedelta
from typing import Any

import pytest

from pergola.api.conditions import timestamp
from pergola.api.kinds import DEPLOYMENT
from pergola.api.objects import JsonObject, Key
from pergola.api.operator_v1alpha1 import GARDEN
from pergola.api.operator_v1alpha1.garden import CARE_CONDITIONS
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.garden.landscape.etcd_objects import ETCD
from pergola.kube.client import Client
from pergola.kube.kubeconfig import load
from pergola.operator.care import Probe, Probing, Settings, garden_care
from pergola.operator.conditions import condition_of
from pergola.operator.copies import Copies
from pergola.runtime.clock import Clock, FakeClock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.sandbox import Sandbox
from pergola.testing.waiting import PATIENCE, running, settled, until
from pergola.testing.world import RecordingClient
from tests.support.care_site import (
    CareSite,
    SwitchedCluster,
    last_operation,
    statuses_of,
    template,
    with_copies,
)
from tests.support.garden_states import is_healthy
from tests.support.overtaken import Overtaken

API, RUNTIME, VIRTUAL, OBSERVABILITY = CARE_CONDITIONS
NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
ON_EVENTS = Settings(sync_period=timedelta(hours=1))
QUICK = Settings(sync_period=timedelta(seconds=1))
UNHEALTHY: dict[str, Any] = {"ResourcesHealthy": "False"}


def unit(
    client: Client,
    settings: Settings = ON_EVENTS,
    probe: Probing | None = None,
    *,
    clock: Clock | None = None,
    metrics: Metrics | None = None,
) -> Unit:
    copies = Copies(client)
    care = garden_care(
        copies,
        probe or SwitchedCluster().probe,
        template,
        settings,
        metrics=metrics or Metrics(),
        clock=clock,
    )
    return with_copies(copies, care)


def failing(garden: JsonObject) -> set[str]:
    statuses = statuses_of(garden)
    return {condition for condition in CARE_CONDITIONS if statuses.get(condition) != "True"}


async def settled_garden(site: CareSite, care: Unit) -> JsonObject:
    await settled(care, site.client)
    return await site.client.get(GARDEN, site.garden)


async def test_a_new_garden_gets_four_conditions_and_keeps_foreign_ones(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    time = "2026-01-01T00:00:00Z"
    other = {"type": "Other", "status": "False", "reason": "Others", "message": "Not ours."}
    other |= {"lastTransitionTime": time, "lastUpdateTime": time}
    await care_site.create_garden(other)
    async with running(unit(writer)):
        garden = await care_site.until_healthy()
    assert [*statuses_of(garden)] == [
        "Other",
        "VirtualGardenAPIServerAvailable",
        "RuntimeComponentsHealthy",
        "VirtualComponentsHealthy",
        "ObservabilityComponentsHealthy",
    ]
    assert condition_of(garden, "Other") == other
    assert writer.taken() == ["patch/status Garden minimal"]


async def test_a_missing_deployment_is_named(care_site: CareSite, writer: RecordingClient) -> None:
    await care_site.heal()
    await care_site.delete(DEPLOYMENT, "virtual-garden-kube-controller-manager")
    await care_site.create_garden()
    care = unit(writer)
    async with running(care):
        found = await care_site.until(VIRTUAL, "False", "DeploymentMissing")
        garden = await settled_garden(care_site, care)
    assert found["message"] == (
        "Missing required deployments: [virtual-garden-kube-controller-manager]"
    )
    assert failing(garden) == {VIRTUAL}


async def test_only_managed_resources_in_namespaces_of_components_count(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.put_resource("one", "kube-system", **UNHEALTHY)
    await care_site.create_garden()
    care = unit(writer)
    async with running(care):
        assert failing(await settled_garden(care_site, care)) == set()
        await care_site.put_resource("one", "istio-system", **UNHEALTHY)
        await care_site.until(RUNTIME, "False", "Because")
        assert failing(await settled_garden(care_site, care)) == {RUNTIME}


@pytest.mark.parametrize(
    ("has_class", "conditions"),
    [(True, {OBSERVABILITY}), (False, {VIRTUAL, OBSERVABILITY})],
    ids=["class seed", "no class"],
)
async def test_a_managed_resource_with_the_label_counts_as_observability(
    care_site: CareSite, writer: RecordingClient, *, has_class: bool, conditions: set[str]
) -> None:
    await care_site.heal()
    await care_site.put_resource("one", has_class=has_class, label=OBSERVABILITY, **UNHEALTHY)
    await care_site.create_garden()
    care = unit(writer)
    async with running(care):
        await care_site.until(OBSERVABILITY, "False", "Because")
        assert failing(await settled_garden(care_site, care)) == conditions


async def test_a_rollout_in_the_virtual_cluster_is_reported(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.put_resource(
        "one", has_class=False, reason="DeploymentProgressing", ResourcesProgressing="True"
    )
    await care_site.create_garden()
    async with running(unit(writer)):
        found = await care_site.until(VIRTUAL, "False", "DeploymentProgressing")
    assert found["message"] == "ManagedResource garden/one: ResourcesProgressing is True"


@pytest.mark.parametrize(
    ("answer", "reason"),
    [(Probe(500, "etcd failed"), "HealthzRequestError"), (None, "VirtualGardenAPIServerDown")],
)
async def test_a_failing_virtual_api_server_is_progressing_until_the_threshold(
    care_site: CareSite, writer: RecordingClient, answer: Probe | None, reason: str
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    clock, virtual = FakeClock(NOW), SwitchedCluster()
    settings = Settings(sync_period=timedelta(seconds=1), thresholds={API: timedelta(minutes=1)})
    async with running(unit(writer, settings, virtual.probe, clock=clock)):
        await care_site.until(API, "True")
        virtual.answer = answer
        found = await care_site.until(API, "Progressing", reason)
        assert found["lastTransitionTime"] == timestamp(NOW)
        clock.set(NOW + timedelta(seconds=61))
        found = await care_site.until(API, "False", reason)
        assert found["lastTransitionTime"] == timestamp(clock.now())
        virtual.answer = Probe(200, "ok")
        await care_site.until(API, "True", "HealthzRequestSucceeded")


async def test_nothing_is_written_if_nothing_changed(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.put_resource("one")
    await care_site.create_garden()
    virtual = SwitchedCluster()
    care = unit(writer, QUICK, virtual.probe)
    async with running(care):
        await care_site.until_healthy()
        writer.taken()
        ran = virtual.probes
        await care_site.put_resource("one", reason="Other")
        async with asyncio.timeout(PATIENCE):
            while virtual.probes < ran + 3:
                await care_site.client.get_raw("/version")
    assert writer.taken() == []


async def test_a_conflict_is_retried_and_no_condition_is_lost(
    care_site: CareSite, garden_sandbox: Sandbox
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    other = {"type": "Other", "status": "True", "reason": "Others", "message": "Not ours."}
    times = {"lastTransitionTime": timestamp(NOW), "lastUpdateTime": timestamp(NOW)}

    async with Overtaken.connect(load(garden_sandbox.kubeconfig)) as client:
        client.before = lambda: care_site.patch_status({"conditions": [other | times]})
        async with running(unit(client)):
            garden = await until(
                care_site.client,
                GARDEN,
                care_site.garden,
                lambda obj: len(statuses_of(obj)) == 5 and is_healthy(obj),
            )
        written = client.taken()
    assert len(written) > 1
    assert {*written} == {"patch/status Garden minimal"}
    assert condition_of(garden, "Other") == other | times


async def test_changes_during_a_reconciliation_of_the_garden_wait_for_its_success(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    names = [f"flow-{number}" for number in range(100)]
    await asyncio.gather(*(care_site.put_resource(name) for name in names))
    virtual = SwitchedCluster()
    care = unit(writer, ON_EVENTS, virtual.probe)
    async with running(care):
        await care_site.until_healthy()
        await care_site.patch_status({"lastOperation": last_operation("Processing")})
        await settled(care, care_site.client)
        ran = virtual.probes
        await asyncio.gather(*(care_site.put_resource(name, **UNHEALTHY) for name in names))
        await settled(care, care_site.client)
        assert virtual.probes == ran
        await care_site.patch_status({"lastOperation": last_operation("Succeeded")})
        await care_site.until(RUNTIME, "False", "Because")
        await settled(care, care_site.client)
        assert virtual.probes == ran + 1


# Beyond


async def test_a_deleted_managed_resource_is_reported_at_once(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    care = unit(writer)
    async with running(care):
        await care_site.until_healthy()
        await care_site.delete(MANAGED_RESOURCE, "plutono")
        found = await care_site.until(OBSERVABILITY, "False", "ManagedResourceMissing")
        assert found["message"] == "ManagedResource garden/plutono does not exist"
        assert failing(await settled_garden(care_site, care)) == {OBSERVABILITY}
        await care_site.put_resource("plutono", label=OBSERVABILITY)
        await care_site.until(OBSERVABILITY, "True")


async def test_changes_of_the_control_plane_are_noticed(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    async with running(unit(writer)):
        await care_site.until_healthy()
        await care_site.put_etcd("main", ready=False)
        found = await care_site.until(VIRTUAL, "False", "EtcdUnhealthy")
        assert found["message"] == (
            'Etcd extension resource "virtual-garden-etcd-main" is unhealthy: '
            'etcd "virtual-garden-etcd-main" is not ready yet'
        )
        await care_site.put_etcd("main")
        await care_site.until(VIRTUAL, "True")
        await care_site.put_deployment("virtual-garden-kube-apiserver", Available="False")
        found = await care_site.until(VIRTUAL, "False", "DeploymentUnhealthy")
        assert found["message"] == (
            'Deployment "virtual-garden-kube-apiserver" is unhealthy: condition "Available" has '
            "invalid status False (expected True) due to Because: Available is False"
        )
        await care_site.delete(ETCD, "virtual-garden-etcd-events")
        await care_site.until(VIRTUAL, "False", "EtcdMissing")


async def test_a_run_reads_only_caches(care_site: CareSite, garden_sandbox: Sandbox) -> None:
    await care_site.heal()
    await care_site.create_garden()
    requests: Counter[str] = Counter()

    def observe(method: str, *_: object) -> None:
        requests[method] += 1

    virtual = SwitchedCluster()
    config = load(garden_sandbox.kubeconfig)
    async with Client.connect(config, observe=observe) as client:
        care = unit(client, QUICK, virtual.probe)
        async with running(care):
            await care_site.until_healthy()
            await settled(care, care_site.client)
            requests.clear()
            ran = virtual.probes
            async with asyncio.timeout(PATIENCE):
                while virtual.probes < ran + 5:
                    await care_site.client.get_raw("/version")
            assert requests == Counter()


async def test_nothing_is_missing_from_a_garden_under_deletion(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    finalizers = {"metadata": {"finalizers": ["gardener.cloud/operator"]}}
    await care_site.client.patch(GARDEN, care_site.garden, finalizers)
    await care_site.client.delete(GARDEN, care_site.garden)
    await care_site.delete(MANAGED_RESOURCE, "plutono")
    try:
        async with running(unit(writer)):
            await care_site.until_healthy()
    finally:
        no_finalizers = {"metadata": {"finalizers": None}}
        await care_site.client.patch(GARDEN, care_site.garden, no_finalizers)


async def test_only_the_older_of_two_gardens_is_reported_on(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.create_garden()
    await care_site.create_garden(name="zz-younger")
    care = unit(writer)
    async with running(care):
        await care_site.until_healthy()
        await settled(care, care_site.client)
    younger = await care_site.client.get(GARDEN, Key("", "zz-younger"))
    assert statuses_of(younger) == {}


async def test_metrics_show_which_components_are_healthy(
    care_site: CareSite, writer: RecordingClient
) -> None:
    await care_site.heal()
    await care_site.put_resource("vpa", **UNHEALTHY)
    await care_site.create_garden()
    metrics = Metrics()
    virtual = SwitchedCluster(Probe(200, "ok", 0.25))
    async with running(unit(writer, ON_EVENTS, virtual.probe, metrics=metrics)):
        await care_site.until(RUNTIME, "False")
    text = metrics.render().decode()
    assert _sample(RUNTIME, "ManagedResource", "vpa", healthy=0) in text
    assert _sample(OBSERVABILITY, "ManagedResource", "vali", healthy=1) in text
    assert _sample(VIRTUAL, "Etcd", "virtual-garden-etcd-main", healthy=1) in text
    assert "pergola_garden_api_server_response_seconds 0.25" in text
    for condition in CARE_CONDITIONS:
        assert f'pergola_garden_check_seconds{{condition="{condition}"}} ' in text


def _sample(condition: str, kind: str, name: str, *, healthy: float) -> str:
    labels = f'condition="{condition}",kind="{kind}",name="{name}",namespace="garden"'
    return f"pergola_garden_component_healthy{{{labels}}} {healthy:.1f}"
