"""Workers on AWS with the real machine-controller-manager, instances in a simulated AWS, nodes."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Final

import pytest

from pergola.api.kinds import MACHINE, MACHINE_CLASS, MACHINE_DEPLOYMENT, MACHINE_SET, SECRET
from pergola.api.objects import (
    GroupVersionKind,
    JsonObject,
    Key,
    finalizers_of,
    map_at,
    name_of,
)
from pergola.extension_api.errors import Code, RequeueAfter
from pergola.extensions.actuator import Context
from pergola.extensions.workers import reconcile
from pergola.extensions.workers.live import class_of
from pergola.kube.kubeconfig import load as load_kubeconfig
from pergola.sandbox.aws.corrections import CorrectedAws
from pergola.testing.waiting import running, until
from pergola.testing.world import RecordingClient
from tests.support.aws.worker_site import PATIENCE, WorkerSite
from tests.support.dying import killed_after

ZONES: Final = ("eu-west-1a", "eu-west-1b", "eu-west-1c")
CLASS_SECRETS: Final = "gardener.cloud/purpose=machineclass"


@pytest.fixture
def site(worker_site: WorkerSite) -> WorkerSite:
    return worker_site


async def test_machines_are_made_and_removed(site: WorkerSite) -> None:
    actuator = await site.create_worker()
    async with running(site.unit(actuator)):
        worker = await site.until_reconciled()

        instances = await site.instances()
        assert len(instances) == 3
        assert {each["Placement"]["AvailabilityZone"] for each in instances.values()} == set(ZONES)
        assert set(instances) == set(await site.names(MACHINE))
        status = map_at(worker, "status")
        assert [each["name"] for each in status["machineDeployments"]] == [
            f"{site.namespace}-pool-a-z{zone}" for zone in (1, 2, 3)
        ]

        await site.delete()
        await site.until_gone()

    assert await site.instances() == {}
    for kind in (MACHINE, MACHINE_SET, MACHINE_DEPLOYMENT, MACHINE_CLASS):
        assert await site.names(kind) == []
    assert await site.client.list(SECRET, site.namespace, labels=CLASS_SECRETS) == []
    credentials = await site.client.get(SECRET, Key(site.namespace, "cloudprovider"))
    assert finalizers_of(credentials) == []


async def test_a_run_without_a_change_writes_only_the_status(
    site: WorkerSite, kubeconfig: Path
) -> None:
    requests: list[str] = []
    pools = site.pools(
        *({"name": f"p{number}", "minimum": 0, "zones": [ZONES[0]]} for number in range(20))
    )
    actuator = await site.create_worker(*pools)
    async with (
        RecordingClient.connect(
            load_kubeconfig(kubeconfig), observe=lambda method, *_: requests.append(method)
        ) as recording,
        running(site.unit(actuator, client=recording)),
    ):
        await site.until_reconciled()
        before = await site.uids()
        recording.writes = []
        requests.clear()
        await site.annotate("reconcile")
        await site.until_reconciled()

    assert {write.split(" ")[1] for write in recording.writes} == {"Worker"}
    assert await site.uids() == before
    assert len(requests) <= 20


async def test_pools_come_and_go(site: WorkerSite) -> None:
    first, second = site.pools(
        {"name": "one", "zones": [ZONES[0]], "minimum": 1, "maximum": 1},
        {"name": "two", "zones": [ZONES[1]], "minimum": 1, "maximum": 1},
    )
    actuator = await site.create_worker(first)
    async with running(site.unit(actuator)):
        await site.until_reconciled()
        kept = set(await site.instances())

        await site.change(first, second)
        await site.until_reconciled()
        assert len(await site.instances()) == 2

        await site.change({**first, "minimum": 2, "maximum": 2}, second)
        await site.until_reconciled()
        assert len(await site.instances()) == 3
        assert kept <= set(await site.instances())

        await site.change(first)
        await site.until_reconciled()

    assert len(await site.instances()) == 1
    assert await site.names(MACHINE_DEPLOYMENT) == [f"{site.namespace}-one-z1"]
    assert len(await site.names(MACHINE_CLASS)) == 1
    assert len(await site.client.list(SECRET, site.namespace, labels=CLASS_SECRETS)) == 1


async def test_another_volume_replaces_the_machines_and_back(site: WorkerSite) -> None:
    [pool] = site.pools({"zones": list(ZONES[:1]), "minimum": 2, "maximum": 2})
    actuator = await site.create_worker(pool)
    async with running(site.unit(actuator)):
        await site.until_reconciled()
        old, [old_class] = set(await site.instances()), await site.names(MACHINE_CLASS)
        [first] = await site.client.list(MACHINE_DEPLOYMENT, site.namespace)

        taint = {"key": "example.com/only", "value": "batch", "effect": "NoSchedule"}
        marks = {"taints": [taint], "labels": {"example.com/batch": "yes"}}
        await site.change({**pool, **marks, "volume": {**pool["volume"], "encrypted": True}})
        await site.until_reconciled()

        new = set(await site.instances())
        assert len(new) == 2
        assert old.isdisjoint(new)
        [new_class] = await site.names(MACHINE_CLASS)
        assert new_class != old_class

        await site.change(pool)
        await site.until_reconciled()

    assert new.isdisjoint(await site.instances())
    assert await site.names(MACHINE_CLASS) == [old_class]
    [last] = await site.client.list(MACHINE_DEPLOYMENT, site.namespace)
    assert last["spec"]["template"] == first["spec"]["template"]


@pytest.mark.parametrize(
    ("code", "expected"),
    [
        ("InsufficientInstanceCapacity", Code.RESOURCES_DEPLETED),
        ("VcpuLimitExceeded", Code.QUOTA_EXCEEDED),
        ("UnauthorizedOperation", Code.UNAUTHORIZED),
    ],
)
async def test_an_error_of_aws_is_reported_with_its_code(
    site: WorkerSite,
    aws: CorrectedAws,
    monkeypatch: pytest.MonkeyPatch,
    code: str,
    expected: Code,
) -> None:
    monkeypatch.setattr(reconcile, "_RETRY_SECONDS", 1.0)
    [pool] = site.pools({"zones": list(ZONES[:1]), "minimum": 1, "maximum": 1})
    aws.fail("RunInstances", code, message="said by AWS", times=1000)
    actuator = await site.create_worker(pool)
    async with running(site.unit(actuator)):
        failed = await site.until(_has_failed, patience=PATIENCE)
        error = map_at(failed, "status", "lastError")
        assert f"{code}: said by AWS" in error["description"]
        assert expected in error["codes"]

        aws.heal()
        await site.controllers.restart()
        await site.until_reconciled()

    assert len(await site.instances()) == 1


async def test_a_shoot_sleeps_is_changed_and_wakes(site: WorkerSite) -> None:
    one, two, three = site.pools(
        *(
            {"name": name, "zones": [ZONES[0]], "minimum": 1, "maximum": 3}
            for name in ("one", "two", "three")
        )
    )
    actuator = await site.create_worker(one, two)
    async with running(site.unit(actuator)):
        await site.until_reconciled()

        await site.hibernate(enabled=True)
        await site.until_reconciled()
        assert await site.instances() == {}
        assert len(await site.names(MACHINE_DEPLOYMENT)) == 2
        await site.until_controller_has(0)
        await site.controllers.stop()

        await site.change({**one, "volume": {**one["volume"], "encrypted": True}}, three)
        await site.until_reconciled()
        await site.until_controller_has(0)

        await site.scale_controller(1)
        await site.controllers.start()
        await site.hibernate(enabled=False)
        await site.until_reconciled()

    assert len(await site.instances()) == 2
    assert await site.names(MACHINE_DEPLOYMENT) == [
        f"{site.namespace}-{name}-z1" for name in ("one", "three")
    ]
    assert len(await site.names(MACHINE_CLASS)) == 2


async def test_machines_of_the_original_are_taken_over(site: WorkerSite, kubeconfig: Path) -> None:
    for obj in site.made_by_the_original():
        await site.client.create(obj)
    for deployment in await site.client.list(MACHINE_DEPLOYMENT, site.namespace):
        await until(
            site.client, MACHINE_DEPLOYMENT, Key.of(deployment), _is_available, patience=PATIENCE
        )
    before, instances = await site.uids(), await site.instances()
    assert len(instances) == 3

    actuator = await site.create_worker()
    async with (
        RecordingClient.connect(load_kubeconfig(kubeconfig)) as recording,
        running(site.unit(actuator, client=recording)),
    ):
        await site.until_reconciled()

    assert [write for write in recording.writes if " Worker " not in write] == []
    assert await site.uids() == before
    assert set(await site.instances()) == set(instances)


async def test_a_changed_worker_is_not_awaited(stopped_worker_site: WorkerSite) -> None:
    site = stopped_worker_site
    [pool] = site.pools({"zones": [ZONES[0]], "minimum": 1, "maximum": 1})
    actuator = await site.create_worker(pool)
    async with running(site.unit(actuator)):
        await site.until(lambda worker: "machineDeployments" in worker.get("status", {}))
        await site.change({**pool, "minimum": 2, "maximum": 2})
        await site.until(lambda worker: worker["status"]["machineDeployments"][0]["minimum"] == 2)


async def test_bytes_of_another_spec_are_not_hashed(stopped_worker_site: WorkerSite) -> None:
    site = stopped_worker_site
    config = {
        "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
        "kind": "WorkerConfig",
        "volume": {"throughput": 150},
    }
    [pool] = site.pools({"kubernetesVersion": "1.33.5", "providerConfig": config})
    actuator = await site.create_worker(pool)
    stale = await site.read()
    await site.edit({"spec": {"pools": [{**pool, "minimum": 2}]}})

    with pytest.raises(RequeueAfter, match="was changed while it was read"):
        await actuator.reconcile(site.context(site.client), stale)
    assert await site.names(MACHINE_CLASS) == []


@pytest.mark.parametrize("kind", [MACHINE_DEPLOYMENT, MACHINE_CLASS])
async def test_what_is_being_deleted_is_not_taken_for_new(
    site: WorkerSite, kind: GroupVersionKind
) -> None:
    [pool] = site.pools({"zones": [ZONES[0]], "minimum": 1, "maximum": 1})
    actuator = await site.create_worker(pool)
    worker, context = await site.read(), site.context(site.client)
    await actuator.reconcile(context, worker)
    await site.controllers.stop()
    [obj] = await site.client.list(kind, site.namespace)
    await site.client.delete(kind, Key.of(obj))

    with pytest.raises(RequeueAfter, match="is needed again, but is still being deleted"):
        await actuator.reconcile(context, worker)


async def test_it_converges_after_a_kill_at_any_write(site: WorkerSite) -> None:
    """Each run dies after its first write; no machine is ever without its class."""
    pools = site.pools({"zones": list(ZONES[:2]), "minimum": 2, "maximum": 2})
    actuator = await site.create_worker(*pools)
    runs = 0

    async def alive(act: Callable[[Context, JsonObject], Awaitable[object]]) -> int:
        """Run until nothing is left to write; return how often the process died."""
        worker, deaths = await site.read(), 0
        while True:
            try:
                if not await killed_after(1, site.client, lambda it: act(site.context(it), worker)):
                    return deaths
            except RequeueAfter as again:  # moto gives out an address, and its name, at once
                if "VM using old node obj" not in str(again):
                    raise
                continue
            deaths += 1
            secrets = await site.client.list(SECRET, site.namespace, labels=CLASS_SECRETS)
            complete = set(await site.names(MACHINE_CLASS)) & {*map(name_of, secrets)}
            for kind in (MACHINE, MACHINE_SET):
                for each in await site.client.list(kind, site.namespace):
                    assert class_of(each) in complete or map_at(each, "spec").get("replicas") == 0

    runs += await alive(actuator.reconcile)
    old = await site.instances()
    assert len(old) == 2

    changed = [{**pool, "volume": {**pool["volume"], "encrypted": True}} for pool in pools]
    await site.edit({"spec": {"pools": changed}})
    runs += await alive(actuator.reconcile)
    new = await site.instances()
    assert len(new) == 2
    assert old.keys().isdisjoint(new)

    runs += await alive(actuator.delete)

    assert runs > 20
    assert await site.instances() == {}
    assert await site.uids() == {}
    assert await site.client.list(SECRET, site.namespace, labels=CLASS_SECRETS) == []


def _is_available(deployment: JsonObject) -> bool:
    return map_at(deployment, "status").get("availableReplicas") == 1


def _has_failed(worker: JsonObject) -> bool:
    return bool(map_at(worker, "status", "lastError"))
