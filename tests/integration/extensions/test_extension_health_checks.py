"""Health checks become conditions of a Network, on a real API server (spec 40 §2.6)."""

import asyncio
import secrets
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from datetime import UTC, datetime, timedelta
from pathlib import Path

import pytest

from pergola.api.conditions import get_condition
from pergola.api.extensions_v1alpha1 import CLUSTER, NETWORK
from pergola.api.objects import GroupVersionKind, JsonObject, Key, maps_at
from pergola.api.resources_v1alpha1 import MANAGED_RESOURCE
from pergola.extension_api.errors import Code
from pergola.extensions.health_checks import (
    SYSTEM_COMPONENTS_HEALTHY,
    CheckContext,
    HealthCheck,
    Settings,
    Verdict,
    health_controller,
    managed_resource,
)
from pergola.extensions.heartbeat import Heartbeat
from pergola.extensions.installation import Installation, installation_documents
from pergola.kube.client import Client
from pergola.kube.kubeconfig import ClusterConfig, load
from pergola.runtime.clock import Clock, FakeClock
from pergola.runtime.controlling.unit import Unit
from pergola.runtime.metrics import Metrics
from pergola.testing.extension_site import ExtensionSite
from pergola.testing.waiting import running, settled
from pergola.testing.world import RecordingClient
from tests.support.service_accounts import service_account_config, until_granted

NOW = datetime(2026, 5, 4, 3, 2, 1, tzinfo=UTC)
RESOURCE = "extension-networking-config"
HEALTHY = {"ResourcesApplied": "True", "ResourcesHealthy": "True", "ResourcesProgressing": "False"}
# The requests of a run may take twice as long, even on a busy machine.
QUICK = Settings(sync_period=2.0)


@pytest.fixture
async def recorder(kubeconfig: Path) -> AsyncIterator[RecordingClient]:
    async with RecordingClient.connect(load(kubeconfig)) as client:
        yield client


class Switch:
    """A check whose verdict a test chooses."""

    def __init__(self, verdict: Verdict | Exception) -> None:
        self.verdict = verdict
        self.calls = 0

    async def run(self, context: CheckContext, obj: JsonObject) -> Verdict:
        self.calls += 1
        if isinstance(self.verdict, Exception):
            raise self.verdict
        return self.verdict

    def check(
        self, condition: str = SYSTEM_COMPONENTS_HEALTHY, *, applies: bool = True
    ) -> HealthCheck:
        return HealthCheck(
            name="switch", condition=condition, run=self.run, applies=lambda _: applies
        )


def unit(
    site: ExtensionSite,
    *checks: HealthCheck,
    client: Client | None = None,
    settings: Settings | None = None,
    clock: Clock | None = None,
) -> Unit:
    return health_controller(
        client or site.client,
        NETWORK,
        site.type,
        checks,
        settings,
        metrics=Metrics(),
        clock=clock,
    )


async def put_resource(site: ExtensionSite, **conditions: str) -> None:
    """Write the ManagedResource's status, as the resource manager would."""
    key = Key(site.namespace, RESOURCE)
    await site.client.apply(
        {
            "apiVersion": MANAGED_RESOURCE.api_version,
            "kind": MANAGED_RESOURCE.kind,
            "metadata": {"name": key.name, "namespace": key.namespace},
            "spec": {"class": "of-nobody", "secretRefs": []},
        },
        manager="test",
    )
    time = "2026-01-01T00:00:00Z"
    reported = [
        {
            "type": kind,
            "status": status,
            "reason": "Test",
            "message": f"{kind} is {status}",
            "lastTransitionTime": time,
            "lastUpdateTime": time,
        }
        for kind, status in (HEALTHY | conditions).items()
    ]
    status = {"observedGeneration": 1, "conditions": reported}
    await site.client.patch(MANAGED_RESOURCE, key, {"status": status}, subresource="status")


def says(
    status: str, reason: str, message: str = "", kind: str = SYSTEM_COMPONENTS_HEALTHY
) -> Callable[[JsonObject], bool]:
    def holds(obj: JsonObject) -> bool:
        found = get_condition(maps_at(obj, "status", "conditions"), kind) or {}
        reported = (found.get("status"), found.get("reason"))
        return reported == (status, reason) and message in str(found.get("message"))

    return holds


async def test_a_healthy_managed_resource_makes_the_condition_true_with_one_write(
    site: ExtensionSite, recorder: RecordingClient
) -> None:
    await put_resource(site)
    await site.create()
    health = unit(site, managed_resource(RESOURCE), client=recorder)
    async with running(health):
        found = await site.until(says("True", "HealthCheckSuccessful"))
        touched = {"metadata": {"annotations": {"any": "thing"}}}
        await site.client.patch(MANAGED_RESOURCE, Key(site.namespace, RESOURCE), touched)
        await settled(health, site.client)
    [condition] = found["status"]["conditions"]
    assert condition["message"] == "All health checks successful"
    assert recorder.taken() == [f"patch/status Network {site.key}"]
    assert "lastOperation" not in found["status"]


async def test_a_change_of_the_managed_resource_is_noticed_at_once(site: ExtensionSite) -> None:
    await put_resource(site)
    await site.create()
    check = managed_resource(RESOURCE, threshold=600.0)
    async with running(unit(site, check, settings=Settings(sync_period=900))):
        await site.until(says("True", "HealthCheckSuccessful"))
        await put_resource(site, ResourcesProgressing="True")
        await site.until(says("Progressing", "HealthCheckProgressing"))
        await put_resource(site, ResourcesHealthy="False")
        text = f"ManagedResource {site.namespace}/{RESOURCE} is unhealthy: condition"
        await site.until(says("False", "HealthCheckUnsuccessful", text))


async def test_conditions_are_up_to_date_after_a_successful_reconciliation(
    site: ExtensionSite,
) -> None:
    switch = Switch(Verdict("True"))
    await site.create()
    operation = {
        "type": "Reconcile",
        "state": "Processing",
        "progress": 1,
        "description": "",
        "lastUpdateTime": "2026-01-01T00:00:00Z",
    }
    async with running(unit(site, switch.check(), settings=Settings(sync_period=900))):
        await site.until(says("True", "HealthCheckSuccessful"))
        await site.edit_status({"lastOperation": operation})
        switch.verdict = Verdict("False", "a subnet is missing")
        await site.edit_status({"lastOperation": operation | {"state": "Succeeded"}})

        await site.until(says("False", "HealthCheckUnsuccessful", "a subnet is missing"))
        switch.verdict = Verdict("True")
        again = {"state": "Succeeded", "lastUpdateTime": "2026-01-01T00:00:01Z"}
        await site.edit_status({"lastOperation": operation | again})

        await site.until(says("True", "HealthCheckSuccessful"))


async def test_unwatched_changes_are_found_after_the_sync_period(site: ExtensionSite) -> None:
    switch = Switch(Verdict("True"))
    await site.create()
    async with running(unit(site, switch.check(), settings=QUICK)):
        await site.until(says("True", "HealthCheckSuccessful"))
        switch.verdict = Verdict("False", "it broke", (Code.DEPENDENCIES,))
        found = await site.until(says("False", "HealthCheckUnsuccessful", "it broke."))
    assert found["status"]["conditions"][0]["codes"] == ["ERR_INFRA_DEPENDENCIES"]


async def test_checks_that_raise_or_hang_do_not_stop_the_others(
    site: ExtensionSite,
) -> None:
    async def hang(context: CheckContext, obj: JsonObject) -> Verdict:
        await context.read(MANAGED_RESOURCE, Key(site.namespace, "x"))
        await asyncio.Event().wait()
        raise AssertionError("unreachable")

    async def cut_off(context: CheckContext, obj: JsonObject) -> Verdict:
        raise TimeoutError("the load balancer did not answer")

    late = HealthCheck(name="slow one", condition="EveryNodeReady", run=hang)
    cut = HealthCheck(name="cut off", condition="LoadBalancerReady", run=cut_off)
    broken = Switch(RuntimeError("no route"))
    fine = Switch(Verdict("True"))
    await site.create()
    checks = (late, cut, broken.check("ControlPlaneHealthy"), fine.check())
    async with running(unit(site, *checks, settings=QUICK)):
        await site.until(says("True", "HealthCheckSuccessful"))
        text = "failed to execute 1 health check: no route."
        await site.until(says("Unknown", "ConditionCheckError", text, "ControlPlaneHealthy"))
        text = "slow one: no answer within 2 seconds."
        await site.until(says("Unknown", "ConditionCheckError", text, "EveryNodeReady"))
        text = "the load balancer did not answer."
        await site.until(says("Unknown", "ConditionCheckError", text, "LoadBalancerReady"))


async def test_a_check_that_does_not_apply_counts_as_true(site: ExtensionSite) -> None:
    switch = Switch(Verdict("False"))
    await site.create()
    async with running(unit(site, switch.check(applies=False))):
        await site.until(says("True", "HealthCheckSuccessful"))
    assert switch.calls == 0


async def test_a_hibernated_shoot_is_healthy_until_it_wakes_up(site: ExtensionSite) -> None:
    switch = Switch(Verdict("False", "no pods"))
    await site.put_cluster({"spec": {"hibernation": {"enabled": True}}})
    await site.create()
    async with running(unit(site, switch.check(), settings=Settings(sync_period=900))):
        await site.until(says("True", "HealthCheckSuccessful", "Shoot is hibernated"))
        assert switch.calls == 0
        await site.put_cluster({"spec": {"hibernation": {"enabled": False}}})
        await site.until(says("False", "HealthCheckUnsuccessful", "no pods."))


@pytest.mark.parametrize("operation", ["migrate", "wait-for-state"])
async def test_a_resource_during_a_migration_is_left_alone(
    site: ExtensionSite, recorder: RecordingClient, operation: str
) -> None:
    await site.create(operation)
    health = unit(site, Switch(Verdict("True")).check(), client=recorder, settings=QUICK)
    async with running(health):
        await settled(health, site.client)
        assert recorder.taken() == []
        await site.annotate("restore")
        await site.until(says("True", "HealthCheckSuccessful"))


async def test_a_migrated_or_deleted_resource_is_left_alone(
    site: ExtensionSite, recorder: RecordingClient
) -> None:
    await site.create(finalizers=("example.org/held",))
    time = "2026-01-01T00:00:00Z"
    migrated = {"type": "Migrate", "state": "Succeeded", "progress": 100}
    reported = {"description": "done", "lastUpdateTime": time}
    await site.edit_status({"lastOperation": migrated | reported})
    health = unit(site, Switch(Verdict("True")).check(), client=recorder, settings=QUICK)
    async with running(health):
        await settled(health, site.client)
        await site.delete()
        await site.edit_status({"lastOperation": None})
        await settled(health, site.client)
    assert recorder.taken() == []


async def test_obsolete_condition_types_are_removed(site: ExtensionSite) -> None:
    await site.create()
    time = "2026-01-01T00:00:00Z"
    base = {"status": "True", "reason": "r", "message": "m"}
    times = {"lastTransitionTime": time, "lastUpdateTime": time}
    old = [{"type": kind} | base | times for kind in ("Retired", "OfOthers")]
    await site.edit_status({"conditions": old})
    settings = Settings(conditions_to_remove=("Retired",))
    async with running(unit(site, Switch(Verdict("True")).check(), settings=settings)):
        found = await site.until(says("True", "HealthCheckSuccessful"))
    kinds = [condition["type"] for condition in found["status"]["conditions"]]
    assert kinds == ["OfOthers", SYSTEM_COMPONENTS_HEALTHY]


async def test_progressing_for_too_long_is_unhealthy(site: ExtensionSite) -> None:
    clock = FakeClock(NOW)
    switch = Switch(Verdict("Progressing", "1 of 2", threshold=60.0))
    await site.create()
    async with running(unit(site, switch.check(), settings=QUICK, clock=clock)):
        await site.until(says("Progressing", "HealthCheckProgressing", "1 of 2."))
        clock.set(NOW + timedelta(seconds=61))
        await site.until(says("False", "HealthCheckUnsuccessful", "1 of 2."))


async def test_resources_of_another_type_or_class_are_ignored(
    site: ExtensionSite, recorder: RecordingClient
) -> None:
    switch = Switch(Verdict("True"))
    await site.create(spec={"class": "seed"})
    health = unit(site, switch.check(), client=recorder, settings=QUICK)
    async with running(health):
        await settled(health, site.client)
    assert (switch.calls, recorder.taken()) == (0, [])


async def test_without_a_cluster_the_status_is_not_changed(
    site: ExtensionSite, recorder: RecordingClient
) -> None:
    await site.client.delete(CLUSTER, Key("", site.namespace))
    await site.create()
    health = unit(site, Switch(Verdict("True")).check(), client=recorder, settings=QUICK)
    async with running(health):
        await settled(health, site.client)
        assert recorder.taken() == []
        await site.put_cluster()
        await site.until(says("True", "HealthCheckSuccessful"))


async def test_a_cluster_without_a_shoot_is_not_hibernated(site: ExtensionSite) -> None:
    patch = {"spec": {"shoot": None}}
    await site.client.patch(CLUSTER, Key("", site.namespace), patch)
    await site.create()
    async with running(unit(site, Switch(Verdict("True")).check(), settings=QUICK)):
        await site.until(says("True", "HealthCheckSuccessful", "All health checks successful"))


async def test_an_extension_needs_no_other_permissions_than_its_own(
    site: ExtensionSite, kubeconfig: Path
) -> None:
    await put_resource(site)
    await site.create()
    async with restricted(site, load(kubeconfig)) as client:
        async with running(unit(site, managed_resource(RESOURCE), client=client)):
            await site.until(says("True", "HealthCheckSuccessful"))
            await put_resource(site, ResourcesHealthy="False")
            await site.until(says("False", "HealthCheckUnsuccessful"))
        await Heartbeat(client, "networking-x", site.namespace).beat()


@asynccontextmanager
async def restricted(site: ExtensionSite, admin: ClusterConfig) -> AsyncIterator[Client]:
    """Yield a client with the permissions of an extension in the site's namespace."""
    name = f"x-{secrets.token_hex(3)}"
    installation = Installation(
        name=name, image="x", plurals=["networks"], references=[], namespace=site.namespace
    )
    desired = ("ServiceAccount", "ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding")
    found = [obj for obj in installation_documents(installation) if obj["kind"] in desired]
    for obj in found:
        await site.client.create(obj)
    config = await service_account_config(admin, site.namespace, name)
    async with Client.connect(config) as client:
        await until_granted(site.client, Key(site.namespace, name))
        yield client
    for obj in found:
        await site.client.delete(GroupVersionKind.of(obj), Key.of(obj))
