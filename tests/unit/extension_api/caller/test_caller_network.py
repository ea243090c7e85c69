"""The Network of a Shoot, and how its spec is replaced (spec 40 §4)."""

from datetime import UTC, datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.extension_api.caller import CallerError, choose_cidr, network_of, timestamp_of
from pergola.extension_api.caller.deploy import replaced_spec
from pergola.extension_api.cluster import Cluster, Shoot
from pergola.health.times import read_time
from pergola.kube.patches import apply_merge_patch

V4, V6 = "100.64.0.0/11", "2001:db8::/48"
PROVIDER: JsonObject = {"overlay": {"enabled": False}}


def cluster(workers: int = 1, status: JsonObject | None = None, **networking: Any) -> Cluster:
    desired = {"type": "calico", "pods": V4, "services": "100.32.0.0/13"} | networking
    return Cluster(
        "shoot--a--demo",
        Shoot(
            {
                "metadata": {"name": "demo", "namespace": "garden-a"},
                "spec": {"networking": desired, "provider": {"workers": [{}] * workers}},
                "status": {"networking": status or {}},
            }
        ),
    )


@pytest.mark.parametrize(
    ("families", "cidrs", "chosen"),
    [
        ([], [V4], V4),
        (["IPv4"], [V4, V6], V4),
        (["IPv6"], [V6], V6),
        (["IPv4", "IPv6"], [V4, V6], V4),
        (["IPv6", "IPv4"], [V6, V4], V4),
        (["IPv6", "IPv4"], [V4, V6], V4),
        (["IPv6", "IPv4"], [V6], V6),
        (["IPv6", "IPv4"], [V6, "2001:db8:1::/48"], "2001:db8:1::/48"),
        (["IPv4"], [], ""),
    ],
)
def test_a_dual_stack_network_gets_only_the_ipv4_range(
    families: list[str], cidrs: list[str], chosen: str
) -> None:
    assert choose_cidr(families, cidrs) == chosen


def test_a_shoot_with_both_families_keeps_its_ipv4_range() -> None:
    status = {"pods": [V6, V4], "services": ["2001:db8:2::/108", "100.32.0.0/13"]}
    both = cluster(status=status, ipFamilies=["IPv6", "IPv4"], pods=V6, services="2001:db8:2::/108")
    network = network_of(both)
    assert network is not None
    assert network["metadata"] == {"name": "demo", "namespace": "shoot--a--demo"}
    assert network["spec"] == {
        "type": "calico",
        "ipFamilies": ["IPv6", "IPv4"],
        "podCIDR": V4,
        "serviceCIDR": "100.32.0.0/13",
    }


def test_the_provider_config_is_copied_unchanged() -> None:
    network = network_of(cluster(providerConfig=PROVIDER))
    assert network is not None
    assert network["spec"]["providerConfig"] == PROVIDER
    assert "ipFamilies" not in network["spec"]


def test_a_shoot_without_workers_has_no_network() -> None:
    assert network_of(cluster(workers=0, type=None)) is None


def test_missing_fields_of_a_shoot_are_reported_with_their_path() -> None:
    with pytest.raises(CallerError, match=r"spec\.shoot\.spec\.networking\.pods is empty"):
        network_of(cluster(pods=None))
    with pytest.raises(CallerError, match=r"Cluster c has no spec\.shoot"):
        network_of(Cluster("c"))


def test_no_other_field_of_the_old_spec_remains() -> None:
    live = {"type": "calico", "providerConfig": {"backend": "none", "ipam": {"type": "a"}}}
    desired = {"type": "calico", "providerConfig": {"ipam": {"cidr": "b"}}}
    assert replaced_spec(live, desired) == {
        "providerConfig": {"backend": None, "ipam": {"type": None, "cidr": "b"}}
    }


@pytest.mark.parametrize(
    ("live", "desired"),
    [
        ({}, {"ipFamilies": ["IPv4"]}),
        ({"ipFamilies": ["IPv4"]}, {}),
        ({"class": "shoot"}, {}),
        ({}, {"class": "shoot"}),
        ({"class": ""}, {"class": "shoot"}),
    ],
)
def test_the_default_of_an_absent_field_is_not_a_change(
    live: JsonObject, desired: JsonObject
) -> None:
    assert replaced_spec(live, desired) == {}


def test_a_second_family_is_a_change_and_so_is_another_class() -> None:
    both = {"ipFamilies": ["IPv4", "IPv6"]}
    assert replaced_spec({}, both) == both
    assert replaced_spec(both, {"ipFamilies": ["IPv4"]}) == {"ipFamilies": ["IPv4"]}
    assert replaced_spec({"class": "seed"}, {}) == {"class": None}


values = st.recursive(
    st.booleans() | st.integers(0, 3) | st.text("ab", max_size=2),
    lambda inner: st.lists(inner, max_size=2) | st.dictionaries(st.sampled_from("abc"), inner),
    max_leaves=8,
)
specs = st.dictionaries(st.sampled_from(["type", "providerConfig", "x"]), values)


@given(specs, specs)
def test_a_replaced_spec_is_exactly_the_desired_one(live: JsonObject, desired: JsonObject) -> None:
    assert apply_merge_patch(live, replaced_spec(live, desired)) == desired


def test_the_timestamp_of_a_request_has_nanoseconds() -> None:
    now = datetime(2026, 3, 1, 10, 0, 0, 900_001, tzinfo=UTC)
    assert timestamp_of(now) == "2026-03-01T10:00:00.900001000Z"
    assert read_time(timestamp_of(now)) == now
