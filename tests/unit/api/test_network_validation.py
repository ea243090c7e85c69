"""Validation of Networks: spec 40 §1.3, and Pergola's additions (Beyond 8)."""

from typing import Any

import pytest

from pergola.api.network_validation import check_network, check_network_update

SPEC = {"type": "calico", "podCIDR": "100.244.0.0/16", "serviceCIDR": "100.32.0.0/13"}


def network(**spec: Any) -> dict[str, Any]:
    return {"spec": {**SPEC, **spec}}


@pytest.mark.parametrize(
    ("spec", "findings"),
    [
        ({}, []),
        ({"type": ""}, ["spec.type: Required value: field is required"]),
        ({"podCIDR": ""}, ["spec.podCIDR: Required value: field is required"]),
        (
            {"podCIDR": "100.32.0.0/14"},
            [
                (
                    'spec.serviceCIDR: Invalid value: "100.32.0.0/13": must not overlap with'
                    ' "spec.podCIDR" ("100.32.0.0/14")'
                )
            ],
        ),
        (
            {"ipFamilies": ["IPv5"], "podCIDR": ""},
            [
                'spec.ipFamilies[0]: Unsupported value: "IPv5": supported values: "IPv4", "IPv6"',
            ],
        ),
        ({"ipFamilies": ["IPv6", "IPv4"], "podCIDR": "2001:db8::/64"}, []),
    ],
)
def test_invalid_networks_are_reported(spec: dict[str, Any], findings: list[str]) -> None:
    assert [str(cause) for cause in check_network(network(**spec))] == findings


@pytest.mark.parametrize(
    ("old", "new", "allowed"),
    [
        (None, ["IPv4"], True),
        (["IPv4"], None, True),
        ([], None, True),
        (None, ["IPv4", "IPv6"], True),
        (["IPv4", "IPv6"], None, True),
        (None, ["IPv6"], False),
        (["IPv6"], None, False),
        (["IPv6"], ["IPv6", "IPv4"], False),
    ],
)
def test_the_default_ip_family_is_ipv4(
    old: list[str] | None, new: list[str] | None, allowed: bool
) -> None:
    found = check_network_update(network(ipFamilies=new), network(ipFamilies=old))
    assert [cause.field for cause in found] == ([] if allowed else ["spec.ipFamilies"])


@pytest.mark.parametrize("name", ["type", "podCIDR", "serviceCIDR"])
def test_identifying_fields_of_a_network_are_immutable(name: str) -> None:
    [cause] = check_network_update(network(**{name: "other"}), network())
    assert str(cause) == f'spec.{name}: Invalid value: "other": field is immutable'


@pytest.mark.parametrize("field", ["podCIDR", "serviceCIDR"])
@pytest.mark.parametrize(
    "text",
    ["fd00::%x\nCOMMIT\n/64", "fd00::1%$(reboot)/128", "fd00::%eth0/64", "10.0.0.0/255.0.0.0"],
)
@pytest.mark.parametrize("families", [["IPv6"], ["IPv4", "IPv6"]])
def test_a_range_with_a_zone_id_or_a_netmask_is_refused(
    field: str, text: str, families: list[str]
) -> None:
    ranges = {"podCIDR": "fd00:1::/64", "serviceCIDR": "fd00:2::/108", field: text}

    [cause] = check_network(network(ipFamilies=families, **ranges))

    assert (cause.field, cause.reason) == (f"spec.{field}", "FieldValueInvalid")
    assert "invalid CIDR address" in cause.message
