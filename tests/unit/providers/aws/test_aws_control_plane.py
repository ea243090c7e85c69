"""Facts about the AWS network that a control plane needs: spec 30 §7.2 to §7.5."""

import pytest

from pergola.api.objects import JsonObject
from pergola.api.schema.read import Malformed
from pergola.extension_api.cluster import Shoot
from pergola.extension_api.errors import Code, ExtensionError
from pergola.providers.aws.control_plane.cloud_provider import (
    cloud_controller_arguments,
    cloud_provider_config,
    cloud_provider_config_map,
)
from pergola.providers.aws.control_plane.route_controller import (
    route_controller,
    route_controller_replicas,
)
from pergola.providers.aws.control_plane.subnets import cloud_subnet, places_load_balancers
from pergola.providers.aws.control_plane.values import given
from pergola.providers.aws.control_plane_config import CloudControllerManager, ControlPlaneConfig

NAME = "shoot--p--s"


def status(*purposes: str, vpc: str = "vpc-1") -> JsonObject:
    subnets = [
        {"purpose": purpose, "id": f"subnet-{purpose}-{number}", "zone": f"eu-west-1{number}"}
        for number in "ab"
        for purpose in purposes
    ]
    return {"vpc": {"id": vpc, "subnets": subnets}}


def routes(*, enabled: bool) -> ControlPlaneConfig:
    return ControlPlaneConfig(
        cloud_controller_manager=CloudControllerManager(use_custom_route_controller=enabled)
    )


@pytest.mark.parametrize(
    ("purposes", "subnet", "services"),
    [
        (("nodes", "internal", "public"), "subnet-public-a", True),
        (("nodes", "internal"), "subnet-internal-a", True),
        (("nodes", "public"), "subnet-public-a", True),
        (("nodes",), "subnet-nodes-a", False),
    ],
)
def test_the_subnet_is_public_or_internal_or_the_one_of_nodes(
    purposes: tuple[str, ...], subnet: str, *, services: bool
) -> None:
    assert cloud_subnet(status(*purposes)) == (subnet, "eu-west-1a")
    assert places_load_balancers(status(*purposes)) is services
    assert cloud_controller_arguments(status(*purposes)) == [
        "--configure-cloud-routes=false",
        *([] if services else ["--controllers=*,-service"]),
    ]


def test_a_status_without_any_subnet_is_an_error() -> None:
    with pytest.raises(ExtensionError) as caught:
        cloud_provider_config(status(), NAME, ["IPv4"])

    assert str(caught.value).startswith(
        "could not determine subnet from infrastructureProviderStatus"
    )
    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)


def test_a_status_without_a_vpc_is_an_error() -> None:
    with pytest.raises(ExtensionError, match="could not determine VPC"):
        cloud_provider_config(status("nodes", vpc=""), NAME, ["IPv4"])


def test_the_config_map_has_the_text() -> None:
    found = cloud_provider_config_map(status("nodes", "public"), NAME, ["IPv4"])

    assert found["metadata"] == {"name": "cloud-provider-config", "namespace": NAME}
    assert found["data"]["cloudprovider.conf"] == (
        "[Global]\n"
        'VPC="vpc-1"\n'
        'SubnetID="subnet-public-a"\n'
        "DisableSecurityGroupIngress=true\n"
        'KubernetesClusterTag="shoot--p--s"\n'
        'KubernetesClusterID="shoot--p--s"\n'
        'Zone="eu-west-1a"\n'
        "# https://github.com/kubernetes/cloud-provider-aws/issues/638\n"
        'NodeIPFamilies="ipv4"\n'
    )


@pytest.mark.parametrize(
    ("families", "lines"),
    [
        ([], ["ipv4"]),
        (["IPv4"], ["ipv4"]),
        (["IPv6"], ["ipv6"]),
        (["IPv4", "IPv6"], ["ipv4", "ipv6"]),
        (["IPv6", "IPv4"], ["ipv4", "ipv6"]),
    ],
)
def test_each_family_has_a_line(families: list[str], lines: list[str]) -> None:
    text = cloud_provider_config(status("nodes"), NAME, families)

    found = [line for line in text.splitlines() if line.startswith("NodeIPFamilies")]
    assert found == [f'NodeIPFamilies="{family}"' for family in lines]


@pytest.mark.parametrize(
    ("config", "families", "awake", "replicas"),
    [
        (None, ["IPv4"], 1, 0),
        (ControlPlaneConfig(), ["IPv4"], 1, 0),
        (routes(enabled=False), ["IPv4"], 1, 0),
        (routes(enabled=True), ["IPv4"], 1, 1),
        (routes(enabled=True), [], 1, 1),
        (routes(enabled=True), ["IPv4", "IPv6"], 1, 1),
        (routes(enabled=True), ["IPv6"], 1, 0),
        (routes(enabled=True), ["IPv4"], 0, 0),
    ],
)
def test_the_route_controller_runs_without_an_overlay_and_with_ipv4(
    config: ControlPlaneConfig | None, families: list[str], awake: int, replicas: int
) -> None:
    assert route_controller_replicas(config, families, awake=awake) == replicas


def shoot(
    *, overlay: object = None, switch: object = None, families: str = "IPv4", asleep: bool = False
) -> Shoot:
    config = {"cloudControllerManager": {"useCustomRouteController": switch}}
    return Shoot(
        {
            "spec": {
                "hibernation": {"enabled": asleep},
                "networking": {
                    "ipFamilies": families.split(),
                    "providerConfig": {"overlay": {"enabled": overlay}},
                },
                "provider": {"controlPlaneConfig": None if switch is None else config},
            }
        }
    )


@pytest.mark.parametrize(
    ("asking", "replicas", "reason"),
    [
        (shoot(), 0, "through an overlay, and need no routes"),
        (shoot(overlay=False, switch=True), 1, "there is no overlay"),
        (shoot(overlay=False, switch=True, families=""), 1, "there is no overlay"),
        (shoot(overlay=False, switch=True, asleep=True), 0, "the Shoot is hibernated"),
        (shoot(overlay=False, switch=True, families="IPv6"), 0, "only IPv6"),
        (shoot(overlay=False), 0, "no controller writes pod routes"),
        (shoot(overlay=False, switch=False), 0, "useCustomRouteController to true"),
        (shoot(overlay=True, switch=True), 1, "useCustomRouteController is true, although"),
    ],
)
def test_the_replicas_of_the_route_controller_have_a_reason(
    asking: Shoot, replicas: int, reason: str
) -> None:
    found = route_controller(asking)

    assert found.replicas == replicas
    assert reason in found.reason


def test_an_overlay_that_is_neither_on_nor_off_is_an_error() -> None:
    with pytest.raises(ExtensionError, match=r"overlay\.enabled is not a boolean"):
        route_controller(shoot(overlay="no"))


def test_an_invalid_switch_is_reported() -> None:
    path = "spec.provider.controlPlaneConfig.cloudControllerManager.useCustomRouteController"
    with pytest.raises(Malformed, match=path):
        route_controller(shoot(switch="yes"))


@pytest.mark.parametrize(
    ("namespace", "provider_status", "said"),
    [
        ("", status("nodes"), "Infrastructure s: metadata.namespace is missing"),
        (NAME, {"kind": "InfrastructureStatus"}, "is not an InfrastructureStatus.aws.provider"),
    ],
)
def test_an_infrastructure_without_a_network_in_aws_is_refused(
    namespace: str, provider_status: JsonObject, said: str
) -> None:
    infrastructure: JsonObject = {
        "metadata": {"name": "s", "namespace": namespace},
        "status": {"providerStatus": provider_status},
    }
    with pytest.raises(ExtensionError, match=said) as caught:
        given(infrastructure, Shoot({}))

    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)
