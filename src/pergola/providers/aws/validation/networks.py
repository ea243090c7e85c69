"""The VPC, the security group and gateway endpoints (spec 30 §1.4, V10, V12, V13, V18; §6.5)."""

from collections.abc import Iterator
from typing import Final

from pergola.api.core_v1_validation import is_dns_subdomain
from pergola.api.field_errors import Cause, forbidden, invalid
from pergola.api.ip_ranges import has_host_bits, is_network, parse_network
from pergola.providers.aws.config import InfrastructureConfig, Ipv6IpamPool, Networks, Vpc
from pergola.providers.aws.validation import identifiers
from pergola.providers.aws.validation.facts import ShootFacts
from pergola.providers.aws.validation.identifiers import check_id
from pergola.providers.aws.validation.zones import NEEDS_VPC

_NODES_GROUP: Final = "networks.nodesSecurityGroupID"
_ENDPOINTS: Final = "networks.vpc.gatewayEndpoints"
_BLOCK: Final = "networks.vpc.ipv6IpamPool.cidrBlock"
_BLOCK_BITS: Final = 56


def check_networks(config: InfrastructureConfig, facts: ShootFacts) -> Iterator[Cause]:
    """Yield findings about the settings shared by all zones."""
    networks = config.networks
    yield from _vpc(networks.vpc, facts)
    byo_subnets = any(zone.workers_subnet_id is not None for zone in networks.zones)
    yield from _endpoints(networks.vpc.gateway_endpoints, byo_subnets=byo_subnets)
    yield from _security_group(networks)


def _vpc(vpc: Vpc, facts: ShootFacts) -> Iterator[Cause]:
    if (vpc.id is None) == (vpc.cidr is None):
        yield invalid(
            "networks.vpc",
            vpc.to_json(),
            "must have either the id of an existing VPC, or the cidr of one to create",
        )
    yield from check_id("networks.vpc.id", vpc.id, identifiers.VPC)
    if vpc.ipv6_ipam_pool is not None:
        yield from _ipam_pool(vpc.ipv6_ipam_pool, facts)


def _ipam_pool(pool: Ipv6IpamPool, facts: ShootFacts) -> Iterator[Cause]:
    block = pool.cidr_block
    if block is None:
        return
    if not facts.has_ipv6:
        yield invalid(_BLOCK, block, "can only be used by a Shoot with IPv6")
    if pool.id is None:
        yield invalid(_BLOCK, block, "can only be used with the id of the pool that it is from")
    network = parse_network(block) if is_network(block) else None
    if network is None or network.version != 6:
        yield invalid(_BLOCK, block, "must be an IPv6 CIDR")
        return
    if has_host_bits(block):
        yield invalid(_BLOCK, block, f"must be valid canonical CIDR, which is {network}")
    if network.prefixlen != _BLOCK_BITS:
        yield invalid(_BLOCK, block, f"must be a /{_BLOCK_BITS}")


def _endpoints(endpoints: list[str], *, byo_subnets: bool) -> Iterator[Cause]:
    if endpoints and byo_subnets:
        yield forbidden(
            _ENDPOINTS,
            "must not be set together with workersSubnetID: an endpoint works only where it is "
            "associated with route tables, and those are yours: create the endpoints on your own "
            "and associate them with the route tables of your subnets",
        )
    for index, name in enumerate(endpoints):
        if not is_dns_subdomain(name):
            yield invalid(
                f"{_ENDPOINTS}[{index}]",
                name,
                'must be the short name of a service, such as "s3": a lowercase RFC 1123 subdomain',
            )


def _security_group(networks: Networks) -> Iterator[Cause]:
    group = networks.nodes_security_group_id
    if group is not None and networks.vpc.id is None:
        yield forbidden(_NODES_GROUP, NEEDS_VPC)
    yield from check_id(_NODES_GROUP, group, identifiers.SECURITY_GROUP)
