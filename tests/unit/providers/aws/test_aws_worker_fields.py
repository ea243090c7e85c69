"""The effect of each field of a Worker on running machines: replacement, change in place, or none.

A field that is new in the definition of Workers or in WorkerConfigs fails these tests until it has
a row here.
"""

from collections.abc import Iterator, Sequence
from enum import StrEnum
from itertools import groupby
from typing import Any, Final

import pytest

from conformance.strategies.fields import ABSENT, Change, changed
from conformance.subjects.aws_machines import plan_of
from pergola.api.objects import JsonObject, map_at, name_of
from pergola.api.schema.structural import schema_of
from pergola.extensions.workers.desired import DesiredMachines, desired_machines
from pergola.garden.components.definitions import SHOOT_EXTENSIONS, load
from pergola.providers.aws.worker_config import WorkerConfig
from pergola.providers.aws.workers.actuator import AwsWorker
from pergola.providers.aws.workers.machines import machines
from tests.support.aws.machines import machine_fact, machine_facts

EVERYTHING: Final[JsonObject] = machine_fact("everything, Kubernetes 1.34.2")["input"]
OLD: Final = "1.33.5"
SPEC: Final = "worker.spec"
POOL: Final = f"{SPEC}.pools.0"
CONFIG: Final = f"{POOL}.providerConfig"


class Effect(StrEnum):
    """The effect on the machines of a pool."""

    REPLACE = "another class replaces them"
    CLASS = "the class, or its Secret, changes in place"
    DEPLOYMENT = "the deployment changes, and the class stays"
    NOTHING = "nothing changes"


REPLACE, CLASS, DEPLOYMENT, NOTHING = Effect
OF_POOL: Final[list[tuple[str, Any, Effect]]] = [
    ("annotations", {"a": "b"}, DEPLOYMENT),
    ("architecture", ABSENT, NOTHING),
    ("clusterAutoscaler.maxNodeProvisionTime", "20m", DEPLOYMENT),
    ("clusterAutoscaler.scaleDownGpuUtilizationThreshold", "0.4", DEPLOYMENT),
    ("clusterAutoscaler.scaleDownUnneededTime", "20m", DEPLOYMENT),
    ("clusterAutoscaler.scaleDownUnreadyTime", "20m", DEPLOYMENT),
    ("clusterAutoscaler.scaleDownUtilizationThreshold", "0.4", DEPLOYMENT),
    ("dataVolumes.0.encrypted", False, REPLACE),
    ("dataVolumes.0.name", "vol-c", CLASS),
    ("dataVolumes.0.size", "101Gi", REPLACE),
    ("dataVolumes.0.type", "io1", REPLACE),
    ("kubeletConfig", {"maxPods": 50}, NOTHING),
    ("kubeletDataVolumeName", "vol-a", NOTHING),
    ("kubernetesVersion", "1.34.3", NOTHING),
    ("labels", {"a": "b"}, CLASS),
    ("machineControllerManager.autoPreserveFailedMachineMax", 3, DEPLOYMENT),
    ("machineControllerManager.disableHealthTimeout", True, DEPLOYMENT),
    ("machineControllerManager.inPlaceUpdateTimeout", "20m", DEPLOYMENT),
    ("machineControllerManager.machineCreationTimeout", "20m", DEPLOYMENT),
    ("machineControllerManager.machineDrainTimeout", "20m", DEPLOYMENT),
    ("machineControllerManager.machineHealthTimeout", "20m", DEPLOYMENT),
    ("machineControllerManager.machinePreserveTimeout", "20m", DEPLOYMENT),
    ("machineControllerManager.maxEvictRetries", 0, DEPLOYMENT),
    ("machineControllerManager.nodeConditions", ["ReadonlyFilesystem"], DEPLOYMENT),
    ("machineImage.name", "other", CLASS),
    ("machineImage.version", "2.0.0", CLASS),
    ("machineType", "g4dn.xlarge", CLASS),
    ("maxSurge", 3, DEPLOYMENT),
    ("maxUnavailable", 3, DEPLOYMENT),
    ("maximum", 9, DEPLOYMENT),
    ("minimum", 1, DEPLOYMENT),
    ("name", "pool-b", REPLACE),
    ("nodeAgentSecretName", "another", REPLACE),
    ("nodeTemplate.capacity", {"cpu": "3"}, CLASS),
    ("nodeTemplate.virtualCapacity", {"example.com/a": "3"}, CLASS),
    ("priority", 5, DEPLOYMENT),
    ("taints", [{"key": "a", "effect": "NoSchedule"}], DEPLOYMENT),
    ("updateStrategy", "AutoInPlaceUpdate", REPLACE),
    ("userDataSecretRef.key", "script", CLASS),
    ("userDataSecretRef.name", "another", CLASS),
    ("userDataSecretRef.optional", True, NOTHING),
    ("volume.encrypted", False, REPLACE),
    ("volume.name", "root", NOTHING),
    ("volume.size", "51Gi", CLASS),
    ("volume.type", "io1", CLASS),
    ("zones", ["eu-west-1a", "eu-west-1b", "eu-west-1c", "eu-west-1d"], DEPLOYMENT),
]
"""Fields of a pool.

The version of Kubernetes, the image, the machine type, the root volume and settings of the kubelet
replace machines by `nodeAgentSecretName`, because gardenlet names another Secret for them.
"""
OF_WORKER: Final[list[tuple[str, Any, Effect]]] = [
    ("class", "other", NOTHING),
    ("infrastructureProviderStatus.ec2.keyName", "another", CLASS),
    ("infrastructureProviderStatus.iam.instanceProfiles.0.name", "another", CLASS),
    ("infrastructureProviderStatus.vpc.securityGroups.0.id", "sg-1", CLASS),
    ("infrastructureProviderStatus.vpc.subnets.0.id", "subnet-1", CLASS),
    ("providerConfig", {"a": "b"}, NOTHING),
    ("secretRef.name", "another", CLASS),
    ("sshPublicKey", "YQ==", NOTHING),
    ("type", "other", NOTHING),
]
OF_CONFIG: Final[list[tuple[str, Any, Effect]]] = [
    ("capacityReservation.capacityReservationId", "cr-1", REPLACE),
    ("capacityReservation.capacityReservationPreference", "open", REPLACE),
    ("capacityReservation.capacityReservationResourceGroupArn", "arn:a", REPLACE),
    ("cpuOptions.amdSevSnp", "disabled", CLASS),
    ("cpuOptions.coreCount", 4, REPLACE),
    ("cpuOptions.threadsPerCore", 2, REPLACE),
    ("dataVolumes.0.iops", 4000, REPLACE),
    ("dataVolumes.0.name", "vol-c", REPLACE),
    ("dataVolumes.0.snapshotID", "snap-1", REPLACE),
    ("dataVolumes.0.throughput", 200, REPLACE),
    ("iamInstanceProfile.arn", "arn:b", REPLACE),
    ("iamInstanceProfile.name", "another", REPLACE),
    ("instanceMarketOptions.marketType", "spot", REPLACE),
    ("instanceMetadataOptions.httpPutResponseHopLimit", 4, REPLACE),
    ("instanceMetadataOptions.httpTokens", "required", REPLACE),
    ("networkInterfaces.0.description", "another", CLASS),
    ("networkInterfaces.0.deviceIndex", 2, REPLACE),
    ("networkInterfaces.0.networkCardIndex", 4, REPLACE),
    ("networkInterfaces.0.subnetID", "subnet-1", REPLACE),
    ("networkInterfaces.0.type", "interface", REPLACE),
    ("networkInterfaces.1.networkCardIndexRange.from", 2, REPLACE),
    ("networkInterfaces.1.networkCardIndexRange.to", 4, REPLACE),
    ("nodeTemplate.capacity", {"cpu": "5"}, REPLACE),
    ("nodeTemplate.virtualCapacity", {"example.com/licence": "8"}, CLASS),
    ("placement.affinity", "default", REPLACE),
    ("placement.groupId", "pg-1", REPLACE),
    ("placement.hostId", "h-1", REPLACE),
    ("placement.partitionNumber", 3, REPLACE),
    ("placement.tenancy", "dedicated", REPLACE),
    ("volume.iops", 5000, REPLACE),
    ("volume.throughput", 300, REPLACE),
]
"""Fields of a WorkerConfig, since Kubernetes 1.34; before, its bytes count."""
IN_PLACE_BEFORE: Final = "nodeTemplate.virtualCapacity"
METADATA: Final[list[tuple[str, Any]]] = [
    ("generation", 7),
    ("resourceVersion", "7"),
    ("uid", "7"),
    ("annotations", {"a": "b"}),
    ("labels", {"a": "b"}),
]


def desired(question: JsonObject) -> list[DesiredMachines]:
    """Return the machines; the user data say from where they are."""
    plan = plan_of(question)
    user_data = {pool.name: _place(pool.raw["userDataSecretRef"]) for pool in plan.pools}
    return desired_machines(plan, machines(plan), AwsWorker.provider, user_data)


def _place(reference: JsonObject) -> bytes:
    return f"{reference['name']} {reference['key']}".encode()


def effect(*changes: Change, before: JsonObject = EVERYTHING) -> Effect:
    """Return the effect of a change on the machines that existed before."""
    old = {each.name: each for each in desired(before)}
    new = {each.name: each for each in desired(changed(before, changes))}
    pairs = [(old[name], new[name]) for name in old.keys() & new.keys()]
    if not pairs or any(was.class_name != now.class_name for was, now in pairs):
        return REPLACE
    if any(
        (was.machine_class, was.secret) != (now.machine_class, now.secret) for was, now in pairs
    ):
        return CLASS
    return NOTHING if all(was == now for was, now in pairs) else DEPLOYMENT


@pytest.fixture(scope="module")
def everything() -> JsonObject:
    """Return the Worker with everything, and a second image in its CloudProfile."""
    profile = "cluster.spec.cloudProfile.spec.providerConfig.machineImages"
    images = map_at(EVERYTHING, *profile.rpartition(".")[0].split("."))["machineImages"]
    [image] = images
    [version] = image["versions"]
    more = {**image, "versions": [version, {**version, "version": "2.0.0"}]}
    other = {**image, "name": "other"}
    return changed(EVERYTHING, [Change(profile, [more, other])])


@pytest.mark.parametrize(("field", "value", "expected"), OF_POOL)
def test_each_field_of_a_pool_has_its_effect(
    everything: JsonObject, field: str, value: Any, expected: Effect
) -> None:
    assert effect(Change(f"{POOL}.{field}", value), before=everything) is expected


@pytest.mark.parametrize(("field", "value", "expected"), OF_WORKER)
def test_each_other_field_of_a_worker_has_its_effect(
    field: str, value: Any, expected: Effect
) -> None:
    base: JsonObject = machine_fact("base")["input"]

    assert effect(Change(f"{SPEC}.{field}", value), before=base) is expected


@pytest.mark.parametrize(("field", "value", "expected"), OF_CONFIG)
def test_each_field_of_a_worker_config_has_its_effect(
    field: str, value: Any, expected: Effect
) -> None:
    assert effect(Change(f"{CONFIG}.{field}", value)) is expected


@pytest.mark.parametrize(("field", "value", "expected"), OF_CONFIG)
def test_before_kubernetes_1_34_every_other_byte_of_a_config_replaces_machines(
    field: str, value: Any, expected: Effect
) -> None:
    before = changed(EVERYTHING, [Change(f"{POOL}.kubernetesVersion", OLD)])

    found = effect(Change(f"{CONFIG}.{field}", value), before=before)

    assert found is (CLASS if field == IN_PLACE_BEFORE else REPLACE)


@pytest.mark.parametrize(("field", "value"), METADATA)
def test_the_metadata_of_a_worker_has_no_effect(field: str, value: Any) -> None:
    assert effect(Change(f"worker.metadata.{field}", value)) is NOTHING


def test_every_field_has_a_row() -> None:
    [worker] = [each for each in load(SHOOT_EXTENSIONS) if name_of(each).startswith("workers.")]
    schema = worker["spec"]["versions"][0]["schema"]["openAPIV3Schema"]
    spec = schema["properties"]["spec"]["properties"]
    pool = spec["pools"]["items"]
    secret = spec["secretRef"]["properties"]

    assert {*secret} == {"name", "namespace"}
    assert _roots(OF_WORKER) == {*spec} - {"pools", "region"}  # regions do not change
    depth = {"kubeletConfig", "providerConfig"}
    assert _rows(OF_POOL) == {*_leaves(pool, depth)} - {"providerConfig"}
    assert _rows(OF_CONFIG) == {*_leaves(schema_of(WorkerConfig), set())}


def _roots(rows: Sequence[tuple[str, Any, Effect]]) -> set[str]:
    return {field.partition(".")[0] for field, _, _ in rows}


def _rows(rows: Sequence[tuple[str, Any, Effect]]) -> set[str]:
    """Return fields without places in lists."""
    return {".".join(part for part in field.split(".") if not part.isdigit()) for field, *_ in rows}


def _leaves(schema: JsonObject, opaque: set[str], path: str = "") -> Iterator[str]:
    """Yield the paths of fields; maps of names and lists of values count as one."""
    below = schema.get("items", schema)
    properties = below.get("properties")
    if not properties or path in opaque or path == "taints":
        yield path
        return
    for name, each in properties.items():
        yield from _leaves(each, opaque, f"{path}.{name}" if path else name)


MADE: Final = [fact["input"] for fact in machine_facts() if "wanted" in fact["output"]]


def test_the_node_template_has_the_type_of_its_class() -> None:
    compared = 0
    for question in MADE:
        for each in desired(question):
            template = each.machine_class["nodeTemplate"]
            if template["instanceType"]:
                assert template["instanceType"] == each.machine_class["providerSpec"]["machineType"]
                compared += 1
    assert compared > 300


def test_all_zones_of_a_pool_have_the_same_machines() -> None:
    compared = 0
    for question in MADE:
        for _, zones in groupby(desired(question), key=lambda each: each.pool):
            first, *others = map(_without_zone, zones)
            assert [each for each in others if each != first] == []
            compared += len(others)
    assert compared > 200


def _without_zone(of: DesiredMachines) -> JsonObject:
    """Return what must be the same in all zones of a pool."""
    machine_class = of.machine_class
    template = of.template["nodeTemplate"].get("metadata", {})
    return {
        "hash": of.class_name.removeprefix(of.name),
        "spec": {
            k: v for k, v in machine_class["providerSpec"].items() if k != "networkInterfaces"
        },
        "capacity": machine_class["nodeTemplate"]["capacity"],
        "labels": {*machine_class["metadata"]["labels"]},
        "secret": of.secret["data"],
        "options": of.options,
        "annotations": template.get("annotations"),
        "node labels": {*template["labels"]},
        "taints": of.template["nodeTemplate"]["spec"],
        "settings": {k: v for k, v in of.template.items() if k not in ("class", "nodeTemplate")},
        "strategy": of.strategy["type"],
    }


@pytest.mark.parametrize("capacity", [{"ephemeral-storage": "50Gi", "nvidia.com/gpu": "1"}])
def test_a_pool_that_may_be_empty_has_a_complete_node_template(capacity: JsonObject) -> None:
    template: JsonObject = {"capacity": {"cpu": "2", "memory": "8Gi", **capacity}}
    base: JsonObject = machine_fact("base")["input"]
    change = [Change(f"{POOL}.nodeTemplate", template)]
    empty = desired(changed(base, [*change, Change(f"{POOL}.minimum", 0)]))

    for each in empty:
        zone = each.template["nodeTemplate"]["metadata"]["labels"]["topology.kubernetes.io/zone"]
        assert each.minimum == 0
        assert each.machine_class["nodeTemplate"] == {
            **template,
            "instanceType": "m5.large",
            "region": "eu-west-1",
            "zone": zone,
            "architecture": "amd64",
        }


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        ({}, {}),
        ({"maxEvictRetries": 0}, {"maxEvictRetries": 0}),
        ({"machineDrainTimeout": "0s"}, {"drainTimeout": "0s"}),
        ({"machineDrainTimeout": "2h"}, {"drainTimeout": "2h0m0s"}),
        ({"machineHealthTimeout": "30m0s"}, {"healthTimeout": "30m0s"}),
        ({"disableHealthTimeout": False}, {"disableHealthTimeout": False}),
    ],
)
def test_settings_of_machine_controller_manager_stay_as_they_are(
    settings: JsonObject, expected: JsonObject
) -> None:
    base: JsonObject = machine_fact("base")["input"]

    for each in desired(changed(base, [Change(f"{POOL}.machineControllerManager", settings)])):
        found = {k: v for k, v in each.template.items() if k not in ("class", "nodeTemplate")}
        assert found == expected


VIRTUAL: Final[JsonObject] = {
    "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
    "kind": "WorkerConfig",
    "nodeTemplate": {"virtualCapacity": {"example.com/licence": "7"}},
}


def test_a_virtual_capacity_in_the_first_config_replaces_no_machines() -> None:
    base: JsonObject = machine_fact("base")["input"]

    assert effect(Change(CONFIG, VIRTUAL), before=base) is CLASS
