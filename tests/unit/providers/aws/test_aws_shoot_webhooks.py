"""Admission of Shoots on AWS (spec 30 §1.1, §1.4, §7.3; spec 40 §10)."""

import copy
from typing import Any

import pytest

from conformance.documents import client_of
from pergola.admission.draft import Draft
from pergola.admission.review import GroupVersionResource, Request, Verdict
from pergola.api.kinds import SHOOT
from pergola.api.objects import JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.extensions.garden import Garden
from pergola.providers.aws.admission.webhooks import admission_webhooks
from pergola.providers.aws.config import INFRASTRUCTURE_CONFIG
from pergola.providers.aws.control_plane_config import CONTROL_PLANE_CONFIG
from pergola.providers.aws.overlay import has_overlay
from pergola.providers.aws.shoot_checks import check_shoot
from pergola.providers.aws.shoot_defaults import mutate_shoot
from pergola.providers.aws.shoot_webhooks import shoot_validator

INFRASTRUCTURE: JsonObject = {
    "apiVersion": INFRASTRUCTURE_CONFIG.api_version,
    "kind": INFRASTRUCTURE_CONFIG.kind,
    "enableMTUCustomizer": False,
    "networks": {
        "vpc": {"id": "vpc-1"},
        "zones": [{"name": "eu-west-1a", "workersSubnetID": "subnet-1"}],
    },
}
PROFILE: JsonObject = {
    "spec": {
        "regions": [{"name": "eu-west-1", "zones": [{"name": "eu-west-1a"}]}],
        "machineTypes": [{"name": "m5.large"}],
    }
}
CONTROL_PLANE: JsonObject = {
    "apiVersion": CONTROL_PLANE_CONFIG.api_version,
    "kind": CONTROL_PLANE_CONFIG.kind,
}
SHOOTS = GroupVersionResource("core.gardener.cloud", "v1beta1", "shoots")


def a_shoot(
    *,
    overlay: Any = None,
    network: str = "calico",
    infrastructure: JsonObject | None = INFRASTRUCTURE,
    control_plane: JsonObject | None = None,
    families: tuple[str, ...] = ("IPv4",),
    **more: Any,
) -> JsonObject:
    pool: JsonObject = {
        "name": "w",
        "machine": {"type": "m5.large"},
        "volume": {"size": "50Gi", "type": "gp3"},
        "zones": ["eu-west-1a"],
    }
    provider: JsonObject = {"type": "aws", "workers": [pool]}
    networking: JsonObject = {
        "type": network,
        "ipFamilies": list(families),
        "nodes": "10.250.0.0/16",
    }
    if infrastructure is not None:
        provider["infrastructureConfig"] = infrastructure
        pool["zones"] = [
            zone["name"] for zone in infrastructure.get("networks", {}).get("zones", ())
        ]
    if control_plane is not None:
        provider["controlPlaneConfig"] = control_plane
    if overlay is not None:
        networking["providerConfig"] = {"overlay": {"enabled": overlay}}
    return {
        "metadata": {"namespace": "garden-dev", "name": "web"},
        "spec": {"region": "eu-west-1", "provider": provider, "networking": networking, **more},
    }


def changes(new: JsonObject, old: JsonObject | None = None) -> dict[str, Any]:
    """Return the changes of the mutator, by pointer."""
    draft = Draft(new)
    mutate_shoot(draft, old)
    return {edit.path: edit.value for edit in draft.edits}


def after(new: JsonObject, old: JsonObject | None = None) -> Draft:
    draft = Draft(new)
    mutate_shoot(draft, old)
    return Draft(draft.object)


def overlay_of(shoot: Draft) -> Any:
    return shoot.get("spec", "networking", "providerConfig", "overlay", "enabled")


def routes_of(shoot: Draft) -> Any:
    path = ("cloudControllerManager", "useCustomRouteController")
    return shoot.get("spec", "provider", "controlPlaneConfig", *path)


@pytest.mark.parametrize("network", ["calico", "cilium"])
def test_a_new_shoot_has_no_overlay_and_routes_to_its_pods(network: str) -> None:
    shoot = after(a_shoot(network=network))

    assert overlay_of(shoot) is False
    assert routes_of(shoot) is True
    assert shoot.get("spec", "provider", "controlPlaneConfig", "kind") == "ControlPlaneConfig"


@pytest.mark.parametrize("overlay", [True, False])
def test_routes_are_the_opposite_of_the_chosen_overlay(*, overlay: bool) -> None:
    shoot = after(a_shoot(overlay=overlay))

    assert overlay_of(shoot) is overlay
    assert routes_of(shoot) is not overlay


def test_overlays_of_other_network_plugins_are_ignored() -> None:
    assert changes(a_shoot(network="other")) == {}


def test_other_fields_of_a_control_plane_config_are_kept() -> None:
    config = CONTROL_PLANE | {"storage": {"managedDefaultClass": False}, "unknown": 1}

    shoot = after(a_shoot(control_plane=config))

    assert shoot.get("spec", "provider", "controlPlaneConfig") == config | {
        "cloudControllerManager": {"useCustomRouteController": True}
    }


def test_a_new_shoot_has_no_mtu_customizer() -> None:
    config = {key: v for key, v in INFRASTRUCTURE.items() if key != "enableMTUCustomizer"}

    shoot = after(a_shoot(infrastructure=config))

    assert shoot.get("spec", "provider", "infrastructureConfig") == INFRASTRUCTURE


def test_a_new_shoot_keeps_the_mtu_customizer_of_the_user() -> None:
    config = INFRASTRUCTURE | {"enableMTUCustomizer": True}

    assert "/spec/provider/infrastructureConfig/enableMTUCustomizer" not in changes(
        a_shoot(infrastructure=config)
    )


def test_an_existing_shoot_keeps_an_unset_mtu_customizer() -> None:
    config = {key: v for key, v in INFRASTRUCTURE.items() if key != "enableMTUCustomizer"}
    old = a_shoot(infrastructure=config)

    assert changes(a_shoot(infrastructure=config, purpose="production"), old) == {}


def test_a_shoot_without_a_config_gets_no_partial_config() -> None:
    shoot = after(a_shoot(infrastructure=None))

    assert shoot.get("spec", "provider", "infrastructureConfig") is None


def test_an_existing_shoot_keeps_an_unset_overlay() -> None:
    assert changes(a_shoot(purpose="production"), a_shoot()) == {}


def test_a_removed_overlay_setting_keeps_its_value() -> None:
    old = after(a_shoot(overlay=False)).object

    shoot = after(a_shoot(purpose="production"), old)

    assert overlay_of(shoot) is False
    assert routes_of(shoot) is True


@pytest.mark.parametrize("overlay", [True, False])
def test_routes_follow_when_the_overlay_changes(*, overlay: bool) -> None:
    old = after(a_shoot(overlay=not overlay)).object
    new = copy.deepcopy(old)
    new["spec"]["networking"]["providerConfig"]["overlay"]["enabled"] = overlay

    assert routes_of(after(new, old)) is not overlay


@pytest.mark.parametrize("overlay", [True, False, None])
def test_routes_cannot_contradict_the_overlay(*, overlay: bool | None) -> None:
    has = overlay is not False
    control_plane = {**CONTROL_PLANE, "cloudControllerManager": {"useCustomRouteController": has}}
    new = a_shoot(overlay=overlay, control_plane=control_plane)
    old = a_shoot(overlay=overlay)

    shoot = after(new, old)

    assert routes_of(shoot) is not has
    assert changes(shoot.object, old) == {}


@pytest.mark.parametrize(
    ("node_local_dns", "forces_tcp"),
    [
        ({"enabled": True}, False),
        ({"enabled": True, "forceTCPToUpstreamDNS": True}, True),
        ({"enabled": False}, None),
        (None, None),
    ],
)
def test_node_local_dns_asks_upstream_over_udp_by_default(
    node_local_dns: JsonObject | None, *, forces_tcp: bool | None
) -> None:
    components = {"nodeLocalDNS": node_local_dns} if node_local_dns else {}

    shoot = after(a_shoot(systemComponents=components))

    path = ("spec", "systemComponents", "nodeLocalDNS", "forceTCPToUpstreamDNS")
    assert shoot.get(*path) is forces_tcp


@pytest.mark.parametrize("families", [("IPv6",), ("IPv4", "IPv6")])
def test_load_balancers_with_ipv6_always_enable_the_controller(families: tuple[str, ...]) -> None:
    config = CONTROL_PLANE | {"loadBalancerController": {"enabled": False}}
    new = a_shoot(families=families, control_plane=config)
    path = ("spec", "provider", "controlPlaneConfig", "loadBalancerController", "enabled")

    assert after(new).get(*path) is True
    assert after(new, a_shoot()).get(*path) is True
    assert after(a_shoot(control_plane=config)).get(*path) is False


@pytest.mark.parametrize(
    "new",
    [
        {"spec": {"provider": {"type": "aws"}, "networking": {"type": "calico"}}},
        a_shoot() | {"status": {"lastOperation": {"type": "Migrate", "state": "Processing"}}},
        a_shoot() | {"status": {"lastOperation": {"type": "Restore", "state": "Processing"}}},
    ],
)
def test_workerless_and_migrating_shoots_are_unchanged(new: JsonObject) -> None:
    assert changes(new) == {}


def test_a_shoot_that_changes_its_seed_is_unchanged() -> None:
    old = a_shoot(overlay=False, seedName="a")

    assert changes(a_shoot(seedName="b"), old) == {}


def test_a_shoot_with_an_unchanged_spec_is_not_mutated() -> None:
    shoot = a_shoot(overlay=False)

    assert changes(shoot, shoot) == {}


@pytest.mark.parametrize("part", [{"overlay": 1}, {"overlay": {"enabled": "no"}}, []])
def test_malformed_shoots_are_left_to_validation(part: Any) -> None:
    shoot = a_shoot(control_plane={"cloudControllerManager": 1})
    shoot["spec"]["networking"]["providerConfig"] = part

    assert changes(shoot) == {}


def review(new: JsonObject, old: JsonObject | None = None) -> Request:
    return Request(
        uid="1",
        operation="CREATE" if old is None else "UPDATE",
        kind=SHOOT,
        resource=SHOOTS,
        namespace="garden-dev",
        name="web",
        object=new,
        old_object=old,
    )


def mutated(new: JsonObject, old: JsonObject | None = None) -> Verdict:
    garden = Garden(client_of([]))
    [mutator] = [each for each in admission_webhooks(garden) if each.short_name == "mutator"]
    verdict = mutator.handler(review(new, old))
    assert isinstance(verdict, Verdict)
    return verdict


def validated(new: JsonObject, old: JsonObject | None = None) -> Verdict:
    verdict = shoot_validator(lambda _: PROFILE)(review(new, old))
    assert isinstance(verdict, Verdict)
    return verdict


def test_the_mutator_patches_shoots_on_aws() -> None:
    assert {edit.path for edit in mutated(a_shoot()).edits} == {
        "/spec/networking/providerConfig",
        "/spec/provider/controlPlaneConfig",
        "/spec/provider/controlPlaneConfig/cloudControllerManager",
    }


def test_shoots_on_other_clouds_are_ignored() -> None:
    shoot = a_shoot(infrastructure={})
    shoot["spec"]["provider"]["type"] = "gcp"

    assert mutated(shoot).edits == ()
    assert validated(shoot).allowed


def fields(new: JsonObject, old: JsonObject | None = None) -> list[str]:
    return [cause.field for cause in check_shoot(new, old, PROFILE)]


def test_a_shoot_after_its_defaults_is_accepted() -> None:
    for families in (("IPv4",), ("IPv6",), ("IPv4", "IPv6")):
        assert validated(after(a_shoot(families=families)).object) == Verdict()


def test_a_shoot_needs_a_network() -> None:
    assert fields(a_shoot(infrastructure=None)) == ["spec.provider.infrastructureConfig"]


def test_a_shoot_without_workers_needs_no_network() -> None:
    assert fields({"spec": {"provider": {"type": "aws"}}}) == []


def test_zones_must_be_in_the_cloud_profile() -> None:
    config = copy.deepcopy(INFRASTRUCTURE)
    config["networks"]["zones"][0]["name"] = "eu-west-1z"

    assert fields(a_shoot(infrastructure=config)) == [
        "spec.provider.infrastructureConfig.networks.zones[0].name"
    ]
    namespaced = {"spec": {}, "status": {"cloudProfileSpec": PROFILE["spec"]}}
    assert list(check_shoot(a_shoot(), None, namespaced)) == []
    assert list(check_shoot(a_shoot(infrastructure=config), None, namespaced))
    other_region = a_shoot(infrastructure=config, region="eu-central-1")
    assert list(check_shoot(other_region, None, PROFILE)) == []


def test_unknown_fields_of_a_control_plane_config_are_refused() -> None:
    config = CONTROL_PLANE | {"cloudControllerManager": {"useCustomRoutes": True}, "x": 1}

    assert fields(a_shoot(control_plane=config)) == [
        "spec.provider.controlPlaneConfig.cloudControllerManager.useCustomRoutes",
        "spec.provider.controlPlaneConfig.x",
    ]


def test_a_control_plane_config_needs_its_api_version_and_kind() -> None:
    assert fields(a_shoot(control_plane={})) == [
        "spec.provider.controlPlaneConfig.apiVersion",
        "spec.provider.controlPlaneConfig.kind",
    ]


@pytest.mark.parametrize("families", [("IPv6",), ("IPv4", "IPv6")])
@pytest.mark.parametrize("overlay", [None, True])
def test_ipv6_has_no_overlay(families: tuple[str, ...], *, overlay: bool | None) -> None:
    assert fields(a_shoot(families=families, overlay=overlay)) == [
        "spec.networking.providerConfig.overlay.enabled"
    ]


@pytest.mark.parametrize("overlay", [None, True, False])
def test_another_plugin_has_no_overlay_with_ipv6_either(*, overlay: bool | None) -> None:
    shoot = a_shoot(network="other", families=("IPv6",), overlay=overlay)
    path = "spec.networking.providerConfig.overlay.enabled"
    assert fields(shoot) == ([path] if overlay else [])


def test_an_overlay_must_be_a_boolean() -> None:
    shoot = a_shoot(overlay="yes")

    (cause,) = check_shoot(shoot)

    assert cause.field == "spec.networking.providerConfig.overlay.enabled"
    assert "overlay.enabled is not a boolean" in cause.message
    with pytest.raises(ExtensionError, match=r"overlay\.enabled is not a boolean") as error:
        has_overlay(shoot)
    assert error.value.codes == (Code.CONFIGURATION_PROBLEM,)


@pytest.mark.parametrize(("overlay", "has"), [(None, True), (True, True), (False, False)])
def test_an_overlay_is_enabled_by_default(*, overlay: bool | None, has: bool) -> None:
    assert has_overlay(a_shoot(overlay=overlay)) is has


def test_a_forbidden_change_is_refused_with_its_path() -> None:
    config = copy.deepcopy(INFRASTRUCTURE)
    config["networks"]["vpc"]["id"] = "vpc-2"

    verdict = validated(a_shoot(infrastructure=config), a_shoot())

    assert not verdict.allowed
    assert verdict.message == (
        'Shoot.core.gardener.cloud "web" is invalid: '
        "spec.provider.infrastructureConfig.networks.vpc.id: "
        'Invalid value: "vpc-2": field is immutable'
    )


def test_the_config_of_a_shoot_cannot_be_removed() -> None:
    assert not validated(a_shoot(infrastructure=None), a_shoot()).allowed


def test_existing_errors_are_only_warnings() -> None:
    wrong = {**INFRASTRUCTURE, "unknown": 1}
    old = a_shoot(infrastructure=wrong)

    verdict = validated(a_shoot(infrastructure=wrong, hibernation={"enabled": True}), old)

    assert verdict.allowed
    (warning,) = verdict.warnings
    assert warning.startswith("spec.provider.infrastructureConfig.unknown: ")
    assert warning.endswith("(as before)")
    assert not validated(a_shoot(infrastructure=wrong)).allowed


def test_an_old_config_with_unknown_fields_is_still_compared() -> None:
    old = a_shoot(infrastructure={**INFRASTRUCTURE, "unknown": 1})
    config = copy.deepcopy(INFRASTRUCTURE)
    config["networks"]["vpc"]["id"] = "vpc-2"

    assert fields(a_shoot(infrastructure=config), old) == [
        "spec.provider.infrastructureConfig.networks.vpc.id"
    ]


def test_a_shoot_in_deletion_is_never_refused() -> None:
    shoot = a_shoot(infrastructure={}, purpose="production")
    shoot["metadata"]["deletionTimestamp"] = "2026-01-01T00:00:00Z"

    assert validated(shoot, a_shoot()).allowed


def test_a_shoot_with_an_unchanged_spec_is_not_validated() -> None:
    shoot = a_shoot(infrastructure={})

    assert validated(shoot, shoot).because == "the spec is unchanged"
