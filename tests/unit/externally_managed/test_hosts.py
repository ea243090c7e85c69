"""The hosts that may become a control plane endpoint, which can never be changed (spec 50 §4.3)."""

import ipaddress
from urllib.parse import urlsplit

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from pergola.api.objects import JsonObject
from pergola.externally_managed.contract import Endpoint
from pergola.externally_managed.description import Network, read_network
from pergola.externally_managed.hosts import host_problem

labels = st.from_regex(r"[A-Za-z0-9]([-A-Za-z0-9]{0,10}[A-Za-z0-9])?", fullmatch=True)
top_labels = st.from_regex(r"[A-Za-z]([-A-Za-z0-9]{0,10}[A-Za-z0-9])?", fullmatch=True)
names = st.builds(lambda first, last: ".".join([*first, last]), st.lists(labels), top_labels)


def can_be_reached(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> bool:
    """Return whether clients can connect to an address, which may be an IPv4 address in IPv6."""
    meant = getattr(address, "ipv4_mapped", None) or address
    return not (meant.is_multicast or meant.is_unspecified)


addresses = st.ip_addresses().filter(can_be_reached)


@pytest.mark.parametrize(
    ("host", "problem"),
    [
        ("", "must not be empty"),
        ("::ffff:0.0.0.0", "must be an address that clients can connect to"),
        ("::ffff:224.0.0.1", "must be an address that clients can connect to"),
        ("a b", "must be a DNS name"),
        ("https://api.example.org", "must be a host without a scheme"),
        ("api.example.org:6443", "must be a host without a port"),
        ("10.0.0.1:6443", "must be a host without a port"),
        ("[fd00::1]", "must be an IPv6 address without brackets"),
        ("[fd00::1]:6443", "must be an IPv6 address without brackets"),
        ("-", "must be a DNS name"),
        ("a..b", "must be a DNS name"),
        ("api.example.org.", "must be a DNS name"),
        (".", "must be a DNS name"),
        ("api_server", "must be a DNS name"),
        ("api.example.org\n", "must be a DNS name"),
        ("bücher.example", "must be a DNS name"),
        ("api/path", "must be a DNS name"),
        ("user@api", "must be a DNS name"),
        ("x" * 64, "must be a DNS name"),
        (".".join(["x" * 60] * 5), "must be at most 253 characters long"),
        ("10.0.0.256", "must be a valid IP address"),
        ("10.0.0", "must be a valid IP address"),
        ("0x7f000001", "must be a valid IP address"),
        ("fe80::1%eth0", "must be a valid IP address"),
        ("fd00:::1", "must be a valid IP address"),
        ("0.0.0.0", "must be an address that clients can connect to"),  # noqa: S104
        ("::", "must be an address that clients can connect to"),
        ("ff02::1", "must be an address that clients can connect to"),
    ],
)
def test_an_invalid_host_is_refused_with_the_reason(host: str, problem: str) -> None:
    assert (host_problem(host) or "").startswith(problem)
    described = read_network({"endpoint": {"host": host, "port": 6443}}, "ConfigMap demo/net")
    assert isinstance(described, list)
    assert described[0].startswith("ConfigMap demo/net: endpoint.host: ")


@given(names)
@example("My-balancer-123.elb.eu-west-1.amazonaws.com")
@example("localhost")
@example("3com.example")
def test_dns_names_are_accepted(name: str) -> None:
    assert host_problem(name) is None or len(name) > 253


@given(addresses)
def test_addresses_are_accepted(address: ipaddress.IPv4Address | ipaddress.IPv6Address) -> None:
    assert host_problem(str(address)) is None


@given(st.text() | names | addresses.map(str), st.integers(-1, 70000))
@example("a b", 6443)
@example("host:6443", 6443)
def test_clients_accept_every_valid_endpoint(host: str, port: int) -> None:
    described: JsonObject = {"endpoint": {"host": host, "port": port}}
    network = read_network(described, "ConfigMap demo/net")
    endpoint = Endpoint(host, port)
    assert isinstance(network, Network) is (endpoint.problem is None)
    if endpoint.problem is None:
        parsed = urlsplit(f"https://{endpoint}/api")
        assert (parsed.hostname, parsed.port) == (host.lower(), port)
        assert host.encode("idna")
