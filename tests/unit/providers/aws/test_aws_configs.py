"""The AWS configs of control planes and CloudProfiles."""

import pytest

from pergola.api.objects import JsonObject
from pergola.extensions.provider_config import read_leniently, read_strict
from pergola.providers.aws.cloud_profile_config import (
    ARCHITECTURE,
    CLOUD_PROFILE_CONFIG,
    CloudProfileConfig,
)
from pergola.providers.aws.control_plane_config import CONTROL_PLANE_CONFIG, ControlPlaneConfig
from pergola.providers.aws.image_selection import definitions, flavor

PROFILE: JsonObject = {
    "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
    "kind": "CloudProfileConfig",
    "machineImages": [
        {
            "name": "gardenlinux",
            "versions": [
                {"version": "1.0.0", "regions": [{"name": "eu-west-1", "ami": "ami-old"}]},
                {
                    "version": "2.0.0",
                    "regions": [
                        {"name": "eu-west-1", "ami": "ami-arm", "architecture": "arm64"},
                        {"name": "eu-west-1", "ami": "ami-amd", "architecture": "amd64"},
                    ],
                },
            ],
        }
    ],
    "somethingNewer": {},
}


@pytest.mark.parametrize(
    ("desired", "ami"),
    [
        (("gardenlinux", "1.0.0", "eu-west-1", "amd64"), "ami-old"),
        (("gardenlinux", "2.0.0", "eu-west-1", "amd64"), "ami-amd"),
        (("gardenlinux", "2.0.0", "eu-west-1", "arm64"), "ami-arm"),
        (("gardenlinux", "1.0.0", "eu-west-1", "arm64"), None),
        (("gardenlinux", "1.0.0", "eu-west-2", "amd64"), None),
        (("gardenlinux", "3.0.0", "eu-west-1", "amd64"), None),
        (("other", "1.0.0", "eu-west-1", "amd64"), None),
    ],
)
def test_an_image_is_found_by_name_version_region_and_architecture(
    desired: tuple[str, str, str, str], ami: str | None
) -> None:
    config = read_leniently(CloudProfileConfig, PROFILE, CLOUD_PROFILE_CONFIG)
    name, version, region, architecture = desired
    machine, known = {ARCHITECTURE: [architecture]}, definitions({})

    found = flavor(config, name, version, region, machine, known)

    assert (found and found.ami) == ami


def test_of_two_images_that_fit_equally_none_is_chosen() -> None:
    image = {"capabilities": {ARCHITECTURE: ["amd64"]}}
    flavors = [{**image, "regions": [{"name": "eu-west-1", "ami": ami}]} for ami in ("a", "b")]
    images = [{"name": "linux", "versions": [{"version": "1", "capabilityFlavors": flavors}]}]
    given: JsonObject = {**PROFILE, "machineImages": images}
    config = read_leniently(CloudProfileConfig, given, CLOUD_PROFILE_CONFIG)

    found = flavor(config, "linux", "1", "eu-west-1", {ARCHITECTURE: ["amd64"]}, definitions({}))

    assert found is None


@pytest.mark.parametrize(
    ("config", "uses"),
    [
        ({}, False),
        ({"cloudControllerManager": {}}, False),
        ({"cloudControllerManager": {"useCustomRouteController": False}}, False),
        ({"cloudControllerManager": {"useCustomRouteController": True}}, True),
    ],
)
def test_pods_get_routes_only_on_request(config: JsonObject, *, uses: bool) -> None:
    read = read_strict(ControlPlaneConfig, config, CONTROL_PLANE_CONFIG)

    assert read.uses_route_controller is uses


def test_a_control_plane_config_has_these_fields() -> None:
    config: JsonObject = {
        "cloudControllerManager": {
            "featureGates": {"A": True},
            "useCustomRouteController": True,
        },
        "loadBalancerController": {"enabled": True, "ingressClassName": "alb"},
        "storage": {"managedDefaultClass": False},
    }

    assert read_strict(ControlPlaneConfig, config, CONTROL_PLANE_CONFIG).to_json() == config
