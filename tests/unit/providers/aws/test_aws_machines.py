"""Machines in AWS are those of the original, class by class: spec 31 §3 and §4."""

from typing import Any, Final

import pytest

from conformance.strategies.aws import config
from conformance.strategies.aws_machines import BASE
from conformance.strategies.fields import Change
from conformance.strategies.fields import changed as with_changes
from conformance.subjects.aws_machines import rendered
from pergola.api.objects import JsonObject
from pergola.api.schema.read import Malformed
from pergola.extension_api.errors import ExtensionError
from tests.support.aws.machines import machine_fact, machine_facts

MADE: Final = ("machineClasses", "secrets", "wanted")
DUPLICATE: Final = "raw providerConfig: a field twice, Kubernetes 1.33"
"""No API server returns such a config: it keeps the last one."""
NO_CAPACITY: Final = "no nodeTemplate, capacity of WorkerConfig"
"""The original crashes: ours takes the pool's capacity as empty."""
OLD_STATUS: Final = {
    "image: only in the status in the old format, capabilities in the profile": ["amd64"],
    "image: only in the status in the old format, arm64, capabilities in the profile, two pools": [
        "arm64"
    ],
}
"""The original loses the architecture of an image that comes from such a status."""


SAME: Final = [
    fact for fact in machine_facts() if fact["case"] not in {DUPLICATE, NO_CAPACITY, *OLD_STATUS}
]


@pytest.mark.parametrize("fact", SAME, ids=lambda fact: fact["case"])
def test_machines_are_those_of_the_original(fact: JsonObject) -> None:
    output = fact["output"]

    if output.keys() & {"error", "panic"}:
        with pytest.raises((ExtensionError, Malformed)):
            rendered(fact["input"])
        return
    found = rendered(fact["input"])

    assert {part: found[part] for part in MADE} == {part: output[part] for part in MADE}
    assert found["providerStatus"] == output["workerStatus"]["providerStatus"]


def test_all_facts_are_compared() -> None:
    assert len(SAME) == 174
    assert len(machine_facts()) == 178


@pytest.mark.parametrize(("name", "architectures"), OLD_STATUS.items())
def test_an_image_of_an_old_status_keeps_its_architecture(
    name: str, architectures: list[str]
) -> None:
    fact = machine_fact(name)
    found = rendered(fact["input"])

    assert {part: found[part] for part in MADE} == {part: fact["output"][part] for part in MADE}
    assert found["providerStatus"]["machineImages"] == [
        {
            "name": "gardenlinux",
            "version": "1443.0.0",
            "ami": "ami-from-status",
            "capabilities": {"architecture": architectures},
        }
    ]


def test_the_capacity_of_a_config_needs_none_of_the_pool() -> None:
    fact = machine_fact(NO_CAPACITY)
    assert "panic" in fact["output"]

    found = rendered(fact["input"])["machineClasses"][0]["nodeTemplate"]

    assert found == {"capacity": {"cpu": "3"}, "instanceType": "", "region": "", "zone": ""}


def changed(own: JsonObject, **fields: Any) -> JsonObject:
    """Return the input of the Worker with everything, with another config."""
    found: JsonObject = machine_fact("everything, Kubernetes 1.34.2")["input"]
    [pool] = found["worker"]["spec"]["pools"]
    pool |= fields
    pool["providerConfig"] |= own
    return found


def names(question: JsonObject) -> list[str]:
    return [each["metadata"]["name"] for each in rendered(question)["machineClasses"]]


VERSIONS: Final = ("1.32.9", "1.33.5", "1.34.0-rc.1", "1.34.2", "1.35.1")


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(
    "virtual", [{}, {"example.com/licence": "8"}, {"example.com/licence": 7, "b": "1"}, None]
)
def test_a_changed_virtual_capacity_replaces_no_machines(
    version: str, virtual: JsonObject | None
) -> None:
    capacity = {"cpu": "4", "example.com/dongle": "3", "memory": "16Gi"}
    template = {"capacity": capacity, "virtualCapacity": {"example.com/licence": "7"}}
    before = changed({"nodeTemplate": template}, kubernetesVersion=version)
    new = {"capacity": capacity, **({} if virtual is None else {"virtualCapacity": virtual})}
    after = changed({"nodeTemplate": new}, kubernetesVersion=version)

    assert names(after) == names(before)
    assert rendered(after) != rendered(before)


@pytest.mark.parametrize("version", VERSIONS)
def test_a_changed_description_replaces_machines_before_kubernetes_1_34(version: str) -> None:
    def interfaces(description: str) -> JsonObject:
        return {"networkInterfaces": [{"deviceIndex": 0, "description": description}]}

    before = changed(interfaces("first"), kubernetesVersion=version)
    after = changed(interfaces("other"), kubernetesVersion=version)

    is_same = version not in ("1.32.9", "1.33.5")
    assert (names(after) == names(before)) is is_same
    assert rendered(after) != rendered(before)


def test_an_image_by_capabilities_prefers_the_first_value_of_the_first_capability() -> None:
    found = machine_fact("image: capabilities, either boot mode, no gpu")["input"]
    [entry] = rendered(found)["providerStatus"]["machineImages"]

    assert entry["ami"] == "ami-uefi"


def image_of(images: Any, definitions: Any, status: Any = None) -> JsonObject:
    """Return the only entry of the status for the arm64 machine of a Worker."""
    pool = "worker.spec.pools.0"
    found = changed_base(
        Change(f"{pool}.machineType", "m6g.large"),
        Change(f"{pool}.architecture", "arm64"),
        Change("cluster.spec.cloudProfile.spec.machineCapabilities", definitions),
        Change("cluster.spec.cloudProfile.spec.providerConfig.machineImages", images),
        Change("worker.status.providerStatus", status),
    )
    entries: list[JsonObject] = rendered(found)["providerStatus"]["machineImages"]
    [entry] = entries
    return entry


def changed_base(*changes: Change) -> JsonObject:
    return with_changes(BASE, changes)


BOTH: Final[list[JsonObject]] = [{"name": "architecture", "values": ["amd64", "arm64"]}]
PLAIN_FLAVOR: Final[list[JsonObject]] = [
    {
        "name": "gardenlinux",
        "versions": [
            {
                "version": "1592.4.0",
                "capabilityFlavors": [{"regions": [{"name": "eu-west-1", "ami": "ami-1"}]}],
            }
        ],
    }
]


def test_a_flavor_without_an_architecture_has_that_of_the_machine() -> None:
    assert image_of(PLAIN_FLAVOR, BOTH) == {
        "name": "gardenlinux",
        "version": "1592.4.0",
        "ami": "ami-1",
        "capabilities": {"architecture": ["arm64"]},
    }
    assert image_of(PLAIN_FLAVOR, [])["architecture"] == "arm64"


def test_an_old_status_serves_machines_of_its_architecture_only() -> None:
    image = {"name": "gardenlinux", "version": "1592.4.0"}
    used = [{**image, "ami": "ami-amd"}, {**image, "ami": "ami-arm", "architecture": "arm64"}]

    entry = image_of([], BOTH, config("WorkerStatus", {"machineImages": used}))

    assert (entry["ami"], entry["capabilities"]) == ("ami-arm", {"architecture": ["arm64"]})


@pytest.mark.parametrize(
    ("quantity", "digits"),
    [
        ("10E", "37dc8"),
        ("1e30", "37dc8"),
        ("0", "37dc8"),
        ("9223372036854775808", "41dd8"),
        ("123456789012345678901234567890", "98b5b"),
    ],
)
def test_amounts_overflow_as_in_go(quantity: str, digits: str) -> None:
    template: Any = {"capacity": {"memory": quantity}}
    found = changed_base(Change("worker.spec.pools.0.providerConfig.nodeTemplate", template))

    assert names(found)[0] == f"shoot--demo--blue-a-z1-{digits}"
