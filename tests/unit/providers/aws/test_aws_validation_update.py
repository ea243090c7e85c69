"""Validation of changes to InfrastructureConfigs (spec 30 §1.4, §11)."""

import copy
from typing import Any

import pytest

from pergola.api.objects import JsonObject
from pergola.extensions.provider_config import read_leniently, read_strict
from pergola.providers.aws.config import INFRASTRUCTURE_CONFIG, InfrastructureConfig
from pergola.providers.aws.validation import ShootFacts, check_config, check_update

INVALID = "FieldValueInvalid"
FORBIDDEN = "FieldValueForbidden"
IMMUTABLE = "field is immutable"
Path = tuple[str | int, ...]
ZONE: Path = ("networks", "zones", 0)

MANAGED: JsonObject = {
    "networks": {
        "vpc": {"cidr": "10.250.0.0/16"},
        "zones": [{"name": "eu-west-1a", "workers": "10.250.0.0/19"}],
    }
}
BYO: JsonObject = {
    "networks": {
        "vpc": {"id": "vpc-1"},
        "zones": [{"name": "eu-west-1a", "workersSubnetID": "subnet-1"}],
    }
}


def changed(value: JsonObject, path: Path, to: Any) -> JsonObject:
    """Return the config with another value at a path; None removes it."""
    new = copy.deepcopy(value)
    here: Any = new
    for step in path[:-1]:
        here = here[step] if isinstance(step, int) else here.setdefault(step, {})
    if to is None:
        here.pop(path[-1], None)
    else:
        here[path[-1]] = to
    return new


def causes(new: JsonObject, old: JsonObject) -> list[tuple[str, str]]:
    now = read_strict(InfrastructureConfig, new, INFRASTRUCTURE_CONFIG)
    before = read_leniently(InfrastructureConfig, old, INFRASTRUCTURE_CONFIG)
    return [(cause.reason, cause.field) for cause in check_update(now, before)]


def all_causes(new: JsonObject, old: JsonObject) -> list[tuple[str, str]]:
    """Return the causes, including those of the new config, as admission reports them."""
    now = read_strict(InfrastructureConfig, new, INFRASTRUCTURE_CONFIG)
    before = read_leniently(InfrastructureConfig, old, INFRASTRUCTURE_CONFIG)
    found = [*check_config(now, ShootFacts(), before), *check_update(now, before)]
    return [(cause.reason, cause.field) for cause in found]


def text(path: Path) -> str:
    return "".join(f"[{p}]" if isinstance(p, int) else f".{p}" for p in path).removeprefix(".")


FIXED: list[tuple[Path, Any, Any]] = [
    (("networks", "vpc", "id"), "vpc-1", "vpc-2"),
    (("networks", "vpc", "cidr"), "10.250.0.0/16", "10.250.0.0/15"),
    (("networks", "nodesSecurityGroupID"), "sg-1", "sg-2"),
    ((*ZONE, "workersSubnetID"), "subnet-1", "subnet-2"),
    (("enableDedicatedTenancyForVPC",), True, False),
]


@pytest.mark.parametrize(("path", "one", "other"), FIXED)
@pytest.mark.parametrize("direction", ["set", "unset", "other"])
def test_the_foundation_of_a_cluster_is_immutable(
    path: Path, one: Any, other: Any, direction: str
) -> None:
    before, now = {"set": (None, one), "unset": (one, None), "other": (one, other)}[direction]

    found = causes(changed(MANAGED, path, now), changed(MANAGED, path, before))

    assert found == [(INVALID, text(path))]


KEPT: list[tuple[Path, Any, Any]] = [
    ((*ZONE, "workers"), "10.250.0.0/19", "10.250.0.0/20"),
    ((*ZONE, "internal"), "10.250.32.0/20", "10.250.32.0/21"),
    ((*ZONE, "public"), "10.250.48.0/20", "10.250.48.0/21"),
    ((*ZONE, "publicSubnetID"), "subnet-2", "subnet-3"),
    ((*ZONE, "internalSubnetID"), "subnet-2", "subnet-3"),
    (("networks", "vpc", "ipv6IpamPool"), {"id": "ipam-1"}, {"id": "ipam-2"}),
    (("elasticFileSystem",), {"enabled": True}, {"enabled": True, "id": "fs-1"}),
]


@pytest.mark.parametrize(("path", "one", "other"), KEPT)
@pytest.mark.parametrize(
    ("direction", "is_allowed"), [("set", True), ("unset", False), ("other", False)]
)
def test_fields_that_can_be_added_are_immutable_afterwards(
    path: Path, one: Any, other: Any, direction: str, *, is_allowed: bool
) -> None:
    before, now = {"set": (None, one), "unset": (one, None), "other": (one, other)}[direction]

    found = causes(changed(MANAGED, path, now), changed(MANAGED, path, before))

    assert found == ([] if is_allowed else [(INVALID, text(path))])


MUTABLE: list[tuple[Path, Any, Any]] = [
    ((*ZONE, "elasticIPAllocationID"), "eipalloc-1", "eipalloc-2"),
    (("networks", "vpc", "gatewayEndpoints"), ["s3"], ["dynamodb"]),
    (("ignoreTags",), {"keys": ["a"]}, {"keys": ["b"]}),
    (("enableECRAccess",), True, False),
    (("enableMTUCustomizer",), True, False),
]


@pytest.mark.parametrize(("path", "one", "other"), MUTABLE)
@pytest.mark.parametrize("direction", ["set", "unset", "other"])
def test_other_fields_are_mutable(path: Path, one: Any, other: Any, direction: str) -> None:
    before, now = {"set": (None, one), "unset": (one, None), "other": (one, other)}[direction]

    assert causes(changed(MANAGED, path, now), changed(MANAGED, path, before)) == []


@pytest.mark.parametrize("config", [MANAGED, BYO])
def test_an_unchanged_config_is_not_a_change(config: JsonObject) -> None:
    assert causes(copy.deepcopy(config), config) == []


@pytest.mark.parametrize(
    ("before", "now", "is_allowed"),
    [
        (None, {"enabled": True}, True),
        (None, {"enabled": False}, True),
        ({"enabled": False}, {"enabled": True}, True),
        ({"enabled": False}, None, True),
        ({"enabled": True}, {"enabled": False}, False),
        ({"enabled": True}, None, False),
    ],
)
def test_dual_stack_cannot_be_disabled(
    before: JsonObject | None, now: JsonObject | None, *, is_allowed: bool
) -> None:
    found = causes(changed(MANAGED, ("dualStack",), now), changed(MANAGED, ("dualStack",), before))

    assert found == ([] if is_allowed else [(FORBIDDEN, "dualStack.enabled")])


def with_zones(config: JsonObject, *names: str) -> JsonObject:
    (zone,) = config["networks"]["zones"]
    zones = [zone | {"name": name} for name in names]
    for index, entry in enumerate(zones):
        if "workersSubnetID" in entry:
            entry["workersSubnetID"] = f"subnet-{index}"
        else:
            entry["workers"] = f"10.250.{32 * index}.0/19"
    return changed(config, ("networks", "zones"), zones)


@pytest.mark.parametrize("config", [MANAGED, BYO])
def test_a_zone_of_the_same_kind_may_be_appended(config: JsonObject) -> None:
    assert all_causes(with_zones(config, "a", "b"), with_zones(config, "a")) == []


@pytest.mark.parametrize("config", [MANAGED, BYO])
def test_a_zone_is_never_removed(config: JsonObject) -> None:
    assert causes(with_zones(config, "a"), with_zones(config, "a", "b")) == [
        (FORBIDDEN, "networks.zones")
    ]


def test_a_removed_zone_is_named() -> None:
    now = read_strict(InfrastructureConfig, with_zones(MANAGED, "b"), INFRASTRUCTURE_CONFIG)
    before = read_strict(InfrastructureConfig, with_zones(MANAGED, "a", "b"), INFRASTRUCTURE_CONFIG)

    assert "removing zones is not allowed: a" in next(check_update(now, before)).message


@pytest.mark.parametrize("config", [MANAGED, BYO])
def test_a_zone_is_never_renamed(config: JsonObject) -> None:
    assert causes(with_zones(config, "c"), with_zones(config, "a")) == [
        (INVALID, "networks.zones[0].name")
    ]


def test_zones_are_never_reordered() -> None:
    assert causes(with_zones(MANAGED, "b", "a"), with_zones(MANAGED, "a", "b")) == [
        (INVALID, "networks.zones[0].name"),
        (INVALID, "networks.zones[1].name"),
    ]


def test_a_cluster_cannot_switch_to_user_provided_subnets() -> None:
    now = changed(
        changed(MANAGED, (*ZONE, "workers"), None), (*ZONE, "workersSubnetID"), "subnet-1"
    )

    found = causes(now, MANAGED)

    assert found == [
        (INVALID, "networks.zones[0].workersSubnetID"),
        (INVALID, "networks.zones[0].workers"),
    ]


def test_a_cluster_cannot_switch_to_managed_subnets() -> None:
    now = changed(
        changed(BYO, (*ZONE, "workersSubnetID"), None), (*ZONE, "workers"), "10.250.0.0/19"
    )

    assert all_causes(now, BYO) == [(INVALID, "networks.zones[0].workersSubnetID")]


@pytest.mark.parametrize(
    ("config", "zone"),
    [
        (BYO, {"name": "eu-west-1b", "workers": "10.250.32.0/19"}),
        (
            changed(
                changed(MANAGED, ("networks", "vpc", "cidr"), None),
                ("networks", "vpc", "id"),
                "vpc-1",
            ),
            {"name": "eu-west-1b", "workersSubnetID": "subnet-2"},
        ),
    ],
)
def test_a_zone_of_the_other_kind_is_refused(config: JsonObject, zone: JsonObject) -> None:
    now = changed(config, ("networks", "zones"), [*config["networks"]["zones"], zone])

    assert all_causes(now, config) == [(FORBIDDEN, "networks.zones")]


def test_load_balancer_subnets_may_be_named_later() -> None:
    now = changed(BYO, (*ZONE, "publicSubnetID"), "subnet-2")

    assert all_causes(now, BYO) == []


def test_a_refused_change_has_the_message_of_the_api_server() -> None:
    now = read_strict(
        InfrastructureConfig,
        changed(BYO, ("networks", "vpc", "id"), "vpc-2"),
        INFRASTRUCTURE_CONFIG,
    )
    before = read_strict(InfrastructureConfig, BYO, INFRASTRUCTURE_CONFIG)

    assert [str(cause) for cause in check_update(now, before)] == [
        f'networks.vpc.id: Invalid value: "vpc-2": {IMMUTABLE}'
    ]
