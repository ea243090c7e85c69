"""A provider is upgraded while the infra manager runs: its CRD follows another contract then."""

import copy
import secrets
from collections.abc import AsyncIterator

import pytest

from pergola.api.cluster_api import (
    MANAGED_BY,
    SOURCE,
    ContractVersion,
    contract_label,
    crd_name,
)
from pergola.api.kinds import CRD
from pergola.api.objects import GroupVersionKind, JsonObject, Key, map_at
from pergola.externally_managed.contract import is_provisioned
from pergola.externally_managed.manager import Settings
from pergola.externally_managed.units import KindUnits
from pergola.kube.yaml import dump
from pergola.runtime.metrics import Metrics
from pergola.runtime.task_group import TaskGroup
from pergola.testing.waiting import until
from pergola.testing.world import RecordingClient, config_map
from tests.support.cluster_api import NEW, cluster, infra_cluster, infra_cluster_crd, install
from tests.support.failing_conditions import failing_conditions

ANNOTATIONS = {MANAGED_BY: "pergola", SOURCE: "configmap/net"}
NETWORK: JsonObject = {
    "endpoint": {"host": "api.example.org", "port": 6443},
    "failureDomains": [{"name": "a"}],
}


@pytest.fixture
async def kind(infra_client: RecordingClient) -> AsyncIterator[GroupVersionKind]:
    """Yield a kind of contract v1beta1."""
    found = GroupVersionKind(NEW.group, "v1beta1", f"Moving{secrets.token_hex(3)}Cluster")
    await install(infra_client, infra_cluster_crd(found))
    yield found
    await infra_client.delete(CRD, Key("", crd_name(found.group_kind)))


def upgraded(kind: GroupVersionKind, *, is_served: bool) -> JsonObject:
    """Return the change of a CRD to contract v1beta2, with or without the older version."""
    [older] = infra_cluster_crd(kind)["spec"]["versions"]
    [newer] = copy.deepcopy(infra_cluster_crd(kind._replace(version="v1beta2"))["spec"]["versions"])
    return {
        "metadata": {"labels": {contract_label("v1beta2"): "v1beta2"}},
        "spec": {"versions": [newer, {**older, "storage": False, "served": is_served}]},
    }


@pytest.mark.parametrize("is_served", [True, False], ids=["older is served", "older is gone"])
async def test_objects_of_an_upgraded_provider_are_written_as_their_contract_says(
    infra_client: RecordingClient, namespace: str, kind: GroupVersionKind, *, is_served: bool
) -> None:
    description = {**config_map("net", namespace), "data": {"network.yaml": dump(NETWORK)}}
    await infra_client.create(description)
    metrics = Metrics()
    [served] = await KindUnits(infra_client, Settings(namespace=namespace), metrics).build(
        [kind.group_kind]
    )

    async def ready(name: str, of: GroupVersionKind) -> JsonObject:
        await infra_client.create(infra_cluster(of, name, namespace, ANNOTATIONS))
        await infra_client.create(cluster(name, namespace, of))
        version: ContractVersion = "v1beta1" if of.version == "v1beta1" else "v1beta2"
        return await until(
            infra_client, of, Key(namespace, name), lambda obj: is_provisioned(obj, version)
        )

    async with TaskGroup() as group:
        task = group.create_task(served.run())
        older = await ready("before", kind)
        await infra_client.patch(
            CRD, Key("", crd_name(kind.group_kind)), upgraded(kind, is_served=is_served)
        )
        newer = kind._replace(version="v1beta2")
        await until(
            infra_client,
            newer,
            Key(namespace, "before"),
            lambda obj: is_provisioned(obj, "v1beta2"),
        )
        found = await ready("after", newer)
        task.cancel()
    assert map_at(older, "status")["failureDomains"] == {"a": {"controlPlane": True}}
    assert map_at(found, "status")["failureDomains"] == [{"name": "a", "controlPlane": True}]
    assert failing_conditions(metrics) == set()
