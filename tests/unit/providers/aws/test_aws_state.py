"""The state of an infrastructure, in the keys of existing clusters (spec 30 §1.3)."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow import State
from pergola.providers.aws import state as keys

WRITTEN = {
    "apiVersion": "aws.provider.extensions.gardener.cloud/v1alpha1",
    "kind": "InfrastructureState",
    "data": {
        "NodesSecurityGroup": "sg-1",
        "SomethingOfLater": "kept",
        "VPC": "vpc-1",
        "Zones/eu-west-1b/Suffix": "z0",
        "Zones/eu-west-1a/NATGateway": "nat-1",
        "Zones/eu-west-1a/Suffix": "z2",
    },
}


def test_a_written_state_keeps_unknown_keys() -> None:
    assert keys.state_object(keys.read_state(WRITTEN).snapshot()) == WRITTEN


@given(st.dictionaries(st.text(), st.text(min_size=1)))
def test_any_state_survives_reading_and_writing(data: dict[str, str]) -> None:
    written = keys.state_object(data)

    assert keys.state_object(keys.read_state(written).snapshot()) == written


def test_equal_states_are_written_as_equal_texts() -> None:
    one, other = State(), State()
    for key in ("VPC", "KeyPair"):
        one.set(key, "x")
    for key in ("KeyPair", "VPC"):
        other.set(key, "x")

    assert str(keys.state_object(one.snapshot())) == str(keys.state_object(other.snapshot()))


@pytest.mark.parametrize("raw", [None, {}])
def test_a_missing_state_is_empty(raw: dict[str, str] | None) -> None:
    assert keys.is_empty(keys.read_state(raw))


def test_a_state_of_unset_values_is_empty() -> None:
    assert keys.is_empty(State({"VPC": ""}))
    assert not keys.is_empty(State({"VPC": "vpc-1"}))


@pytest.mark.parametrize(
    ("raw", "said"),
    [
        ({"encoding": "base64", "data": "H4sI"}, "Terraform"),
        ({"version": 3, "terraform_version": "0.15", "modules": []}, "Terraform"),
        ({"kind": "Other"}, '"Other"'),
        ({**WRITTEN, "data": ["x"]}, "not a map of strings"),
        ({**WRITTEN, "data": {"VPC": 1}}, "not a map of strings"),
    ],
)
def test_the_error_about_an_invalid_state_says_what_to_do(
    raw: dict[str, object], said: str
) -> None:
    with pytest.raises(ExtensionError, match=said) as caught:
        keys.read_state(raw)

    assert caught.value.codes == (Code.CONFIGURATION_PROBLEM,)


def test_keys_of_zones_endpoints_and_mount_targets_match_the_original() -> None:
    assert keys.zone_key("eu-west-1a", keys.NAT_GATEWAY) == "Zones/eu-west-1a/NATGateway"
    assert keys.endpoint_key("s3") == "VPCEndpoints/s3"
    assert keys.mount_target_key("fs-1", "subnet-1", "sg-1") == "efsMountTargets/fs-1_subnet-1_sg-1"
    assert keys.mount_target_key("fs-1", "subnet-1") == "efsMountTargets/fs-1_subnet-1"


def test_zones_are_read_from_the_keys_of_the_state() -> None:
    state = keys.read_state(WRITTEN)

    assert keys.zones_of(state) == ["eu-west-1a", "eu-west-1b"]
    assert list(keys.in_zones(state, keys.NAT_GATEWAY)) == [("eu-west-1a", "nat-1")]


def test_a_zone_keeps_its_suffix_and_a_new_one_gets_the_smallest_free_one() -> None:
    state = keys.read_state(WRITTEN)

    assert keys.suffix_of(state, "eu-west-1a") == "z2"
    assert keys.suffix_of(state, "eu-west-1c") == "z1"
    assert keys.suffix_of(state, "eu-west-1d") == "z3"
    assert keys.suffix_of(state, "eu-west-1c") == "z1"
