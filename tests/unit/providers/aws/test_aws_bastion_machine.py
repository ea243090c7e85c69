"""The machine type, image and place of a bastion: spec 30 §10.1."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.extension_api.errors import ExtensionError
from pergola.providers.aws.bastion.machine import Machine, machine_of
from pergola.providers.aws.bastion.site import site_of, usable

REGION = "eu-west-1"


def profile(bastion: JsonObject | None = None, **spec: object) -> JsonObject:
    def image(name: str, *versions: str, architecture: str = "amd64") -> JsonObject:
        return {
            "name": name,
            "versions": [
                {
                    "version": version,
                    "regions": [
                        {
                            "name": REGION,
                            "ami": f"ami-{name}-{version}",
                            "architecture": architecture,
                        }
                    ],
                }
                for version in versions
            ],
        }

    return {
        "spec": {
            "bastion": bastion or {},
            "machineTypes": [
                {"name": "large", "cpu": "8", "memory": "32Gi"},
                {"name": "small", "cpu": "1", "memory": "512Mi"},
                {"name": "tiny", "cpu": "1", "memory": "256Mi", "usable": False},
                {"name": "arm", "cpu": "2", "memory": "1Gi", "architecture": "arm64"},
            ],
            "machineImages": [
                {
                    "name": "one",
                    "versions": [
                        {"version": "9.0.0"},
                        {"version": "10.1.0"},
                        {"version": "11.0.0", "classification": "preview"},
                    ],
                },
                {"name": "two", "versions": [{"version": "1.0.0"}]},
            ],
            "providerConfig": {
                "machineImages": [
                    image("one", "9.0.0", "10.1.0", "11.0.0"),
                    image("two", "1.0.0", architecture="arm64"),
                ]
            },
            **spec,
        }
    }


@pytest.mark.parametrize(
    ("bastion", "machine"),
    [
        ({}, Machine("small", "ami-one-10.1.0")),
        ({"machineType": {"name": "large"}}, Machine("large", "ami-one-10.1.0")),
        ({"machineType": {"name": "arm"}}, Machine("arm", "ami-two-1.0.0")),
        (
            {"machineImage": {"name": "one", "version": "9.0.0"}},
            Machine("small", "ami-one-9.0.0"),
        ),
    ],
)
def test_the_machine_of_a_bastion_is_read_from_the_profile(
    bastion: JsonObject, machine: Machine
) -> None:
    assert machine_of(profile(bastion), REGION) == machine


def in_capabilities(bastion: JsonObject | None = None) -> JsonObject:
    """Return a profile that describes machines and images by capabilities."""

    def flavor(ami: str, **capabilities: str) -> JsonObject:
        return {
            "capabilities": {name: [value] for name, value in capabilities.items()},
            "regions": [{"name": REGION, "ami": ami}],
        }

    def machine(name: str, cpu: str, **capabilities: str) -> JsonObject:
        values = {key: [value] for key, value in capabilities.items()}
        return {"name": name, "cpu": cpu, "memory": "1Gi", "capabilities": values}

    flavors = [
        flavor("ami-arm", architecture="arm64"),
        flavor("ami-metal", architecture="amd64", hypervisor="metal"),
        flavor("ami-amd", architecture="amd64"),
    ]
    config = {"name": "one", "versions": [{"version": "1.0.0", "capabilityFlavors": flavors}]}
    return profile(
        bastion,
        machineCapabilities=[
            {"name": "architecture", "values": ["amd64", "arm64"]},
            {"name": "hypervisor", "values": ["nitro", "metal"]},
        ],
        machineTypes=[
            machine("small", "1", architecture="amd64", hypervisor="nitro"),
            machine("metal", "2", architecture="amd64", hypervisor="metal"),
            machine("arm", "4", architecture="arm64"),
        ],
        machineImages=[{"name": "one", "versions": [{"version": "1.0.0"}]}],
        providerConfig={"machineImages": [config]},
    )


@pytest.mark.parametrize(
    ("machine", "ami"),
    [("small", "ami-amd"), ("metal", "ami-amd"), ("arm", "ami-arm"), ("", "ami-amd")],
)
def test_the_image_is_the_preferred_flavor_that_fits_the_machine(machine: str, ami: str) -> None:
    """A flavor without a hypervisor runs on the preferred one, too, so it is preferred."""
    bastion = {"machineType": {"name": machine}} if machine else {}

    found = machine_of(in_capabilities(bastion), REGION)

    assert found == Machine(machine or "small", ami)


def test_a_profile_with_capabilities_may_have_images_by_architecture() -> None:
    found = profile(
        {"machineType": {"name": "arm"}},
        machineCapabilities=[{"name": "architecture", "values": ["amd64", "arm64"]}],
        machineTypes=[
            {
                "name": "arm",
                "cpu": "1",
                "memory": "1Gi",
                "capabilities": {"architecture": ["arm64"]},
            }
        ],
    )

    assert machine_of(found, REGION) == Machine("arm", "ami-two-1.0.0")


@pytest.mark.parametrize(
    ("bastion", "region", "text"),
    [
        ({"machineType": {"name": "huge"}}, REGION, 'no machine type "huge"'),
        (
            {"machineImage": {"name": "three"}},
            REGION,
            "no image for amd64 or arm64 machines in eu-west-1",
        ),
        (
            {"machineImage": {"name": "two"}, "machineType": {"name": "large"}},
            REGION,
            "no image for amd64 machines in eu-west-1",
        ),
        ({}, "us-east-1", "no image for amd64 or arm64 machines in us-east-1"),
    ],
)
def test_missing_fields_of_the_profile_are_reported(
    bastion: JsonObject, region: str, text: str
) -> None:
    with pytest.raises(ExtensionError, match=text):
        machine_of(profile(bastion), region)


TYPES = st.fixed_dictionaries(
    {
        "cpu": st.sampled_from(["1", "2", "4"]),
        "memory": st.sampled_from(["1Gi", "8Gi"]),
        "architecture": st.sampled_from(["amd64", "arm64"]),
        "usable": st.booleans(),
    }
)
IMAGES = st.dictionaries(st.sampled_from(["one", "two"]), st.sampled_from(["amd64", "arm64"]))


@given(st.lists(TYPES, min_size=1, max_size=4), IMAGES, st.sampled_from([None, "one", "two"]))
def test_a_bastion_gets_the_smallest_usable_machine_with_an_image(
    types: list[JsonObject], images: dict[str, str], named: str | None
) -> None:
    machines = [{"name": f"type-{index}", **each} for index, each in enumerate(types)]
    amis = [
        {"name": REGION, "ami": f"ami-{name}", "architecture": architecture}
        for name, architecture in images.items()
    ]
    version: JsonObject = {"version": "1.0.0"}
    found = profile(
        {"machineImage": {"name": named}} if named else {},
        machineTypes=machines,
        machineImages=[{"name": name, "versions": [version]} for name in images],
        providerConfig={
            "machineImages": [
                {"name": name, "versions": [{**version, "regions": [ami]}]}
                for name, ami in zip(images, amis, strict=True)
            ]
        },
    )
    offered = {images[name] for name in images if named in (None, name)}
    able = [each for each in machines if each["usable"] and each["architecture"] in offered]

    if not able:
        with pytest.raises(ExtensionError, match=r"no image for|no machine type"):
            machine_of(found, REGION)
        return

    chosen = machine_of(found, REGION)
    [machine] = [each for each in able if each["name"] == chosen.type]
    assert int(machine["cpu"]) == min(int(each["cpu"]) for each in able)
    assert images[chosen.image.removeprefix("ami-")] == machine["architecture"]


def test_without_machine_types_no_bastion_is_possible() -> None:
    with pytest.raises(ExtensionError, match="no machine type for a bastion"):
        machine_of(None, REGION)


BASTION: JsonObject = {
    "metadata": {"name": "cli", "namespace": "shoot--p--s", "uid": "u"},
    "spec": {"ingress": [{"ipBlock": {"cidr": "10.0.0.9/8"}}], "userData": "IyE="},
}


def infrastructure(vpc: JsonObject, **networks: str) -> JsonObject:
    return {
        "spec": {"providerConfig": {"networks": networks}},
        "status": {"providerStatus": {"vpc": vpc}},
    }


def test_the_first_public_subnet_and_the_node_group_are_used() -> None:
    vpc = {
        "id": "vpc-1",
        "subnets": [
            {"purpose": "nodes", "id": "subnet-1"},
            {"purpose": "public", "id": "subnet-2"},
            {"purpose": "public", "id": "subnet-3"},
        ],
        "securityGroups": [{"purpose": "nodes", "id": "sg-1"}],
    }

    site = site_of(BASTION, infrastructure(vpc, nodesSecurityGroupID="sg-1"), ["IPv4", "IPv6"])

    assert (site.vpc, site.subnet, site.nodes_group) == ("vpc-1", "subnet-2", "sg-1")
    assert (site.is_users_group, site.ipv6) == (True, True)
    assert site.group_name == "shoot--p--s-cli-bsg"
    assert site.instance_name == "shoot--p--s-cli-bastion"
    assert usable(site, BASTION) == (("10.0.0.0/8",), b"#!")


def test_a_bastion_waits_for_its_infrastructure() -> None:
    with pytest.raises(ExtensionError, match="wait until it is reconciled"):
        usable(site_of(BASTION, infrastructure({}), []), BASTION)


@pytest.mark.parametrize(
    ("change", "text"),
    [
        ({"ingress": []}, "spec.ingress is empty"),
        ({"userData": "§"}, "spec.userData is not valid base64"),
    ],
)
def test_an_invalid_bastion_is_refused(change: JsonObject, text: str) -> None:
    vpc = {
        "id": "vpc-1",
        "subnets": [{"purpose": "public", "id": "subnet-2"}],
        "securityGroups": [{"purpose": "nodes", "id": "sg-1"}],
    }
    bastion = {**BASTION, "spec": {**BASTION["spec"], **change}}

    with pytest.raises(ExtensionError, match=text):
        usable(site_of(bastion, infrastructure(vpc), []), bastion)


def test_the_first_capability_of_a_profile_decides_between_flavors() -> None:
    flavors = [
        {"capabilities": {"net": ["slow"], "architecture": ["amd64"]}, "regions": region("one")},
        {"capabilities": {"net": ["fast"], "architecture": ["arm64"]}, "regions": region("two")},
    ]
    config = {"name": "one", "versions": [{"version": "1.0.0", "capabilityFlavors": flavors}]}
    both = {"architecture": ["amd64", "arm64"]}
    found = profile(
        {},
        machineCapabilities=[
            {"name": "net", "values": ["fast", "slow"]},
            {"name": "architecture", "values": ["amd64", "arm64"]},
        ],
        machineTypes=[{"name": "any", "cpu": "1", "memory": "1Gi", "capabilities": both}],
        machineImages=[{"name": "one", "versions": [{"version": "1.0.0"}]}],
        providerConfig={"machineImages": [config]},
    )

    assert machine_of(found, REGION) == Machine("any", "ami-two")


def region(image: str) -> list[JsonObject]:
    return [{"name": REGION, "ami": f"ami-{image}"}]
