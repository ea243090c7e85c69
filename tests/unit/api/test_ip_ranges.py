"""Addresses and ranges that Kubernetes accepts, in the canonical form that we pass on."""

import ipaddress
import re

import pytest
from hypothesis import given
from hypothesis import strategies as st

from pergola.api.ip_ranges import (
    has_host_bits,
    is_address,
    is_network,
    parse_address,
    parse_network,
    unmapped,
)

HOSTILE = (
    "fd00::%x\nCOMMIT\n/64",
    "fd00::%$(reboot)/64",
    "fd00::1%eth0/128",
    "fd00::%/64",
    "10.0.0.0/8\n",
    " 10.0.0.0/8",
    "10.0.0.0/255.0.0.0",
    "10.0.0.0/0.255.255.255",
    "10.0.0.0",
    "fd00::",
    "10.0.0.0/-1",
    "10.0.0.0/8/8",
    "/8",
    "",
)
SAFE = re.compile(r"[0-9a-f:.]+/[0-9]{1,3}")


@pytest.mark.parametrize("text", HOSTILE)
def test_a_range_without_a_plain_prefix_length_is_refused(text: str) -> None:
    assert not is_network(text)
    with pytest.raises(ValueError, match="CIDR"):
        parse_network(text)


@pytest.mark.parametrize("text", ["fe80::1%eth0", "::%\n", "10.0.0.1\n", "10.0.0.0/8", ""])
def test_an_address_with_a_suffix_is_refused(text: str) -> None:
    assert not is_address(text)
    with pytest.raises(ValueError, match="IP address"):
        parse_address(text)


def test_ranges_are_normalized() -> None:
    assert str(parse_network("10.1.2.3/8")) == "10.0.0.0/8"
    assert str(parse_network("FD00:0::1/64")) == "fd00::/64"
    assert str(parse_address("FD00:0::1")) == "fd00::1"


texts = st.one_of(
    st.text(),
    st.builds(
        "{}%{}/{}".format,
        st.ip_addresses(v=6),
        st.text(),
        st.integers(min_value=-1, max_value=129),
    ),
    st.builds("{}{}".format, st.ip_addresses(), st.text(alphabet="%/0123456789\n '\"$`;|&")),
)


@given(texts)
def test_accepted_input_is_emitted_as_digits_and_separators_only(text: str) -> None:
    if is_network(text):
        assert SAFE.fullmatch(str(parse_network(text)))
    if is_address(text):
        assert SAFE.fullmatch(f"{parse_address(text)}/0")


@given(st.ip_addresses(v=4), st.integers(0, 32))
def test_ipv4_that_is_mapped_into_ipv6_is_ipv4(address: ipaddress.IPv4Address, bits: int) -> None:
    assert parse_address(f"::ffff:{address}") == address
    assert parse_network(f"::ffff:{address}/{96 + bits}") == parse_network(f"{address}/{bits}")


def test_a_range_that_contains_more_than_mapped_addresses_is_ipv6() -> None:
    assert str(parse_network("::ffff:10.0.0.0/95")) == "::fffe:0:0/95"


@given(st.ip_addresses().filter(lambda address: unmapped(address) == address))
def test_every_address_and_its_host_range_is_accepted(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address,
) -> None:
    text = address.compressed
    bits = address.max_prefixlen

    assert parse_address(text) == address
    assert parse_network(f"{text}/{bits}").network_address == address


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("10.0.0.0/8", False),
        ("10.0.0.1/8", True),
        ("2001:DB8::/56", False),
        ("2001:db8:0::1/56", True),
        ("::10.250.0.0/112", False),
        ("::10.250.0.1/112", True),
        ("::ffff:10.250.0.0/112", False),
        ("::ffff:10.250.0.1/112", True),
    ],
)
def test_host_bits_are_found_however_the_address_is_written(text: str, *, expected: bool) -> None:
    assert has_host_bits(text) == expected
