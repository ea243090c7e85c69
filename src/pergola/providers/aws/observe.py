"""Observing everything in AWS that belongs to a cluster (spec 30 §13).

All requests are sent concurrently, and by VPC or tags, so that their number does not depend on the
number of zones: at most 14 for a managed network, and 12 for a user-provided one; and one more for
the quota of routes, if the Shoot has no overlay and large pools.
"""

import asyncio
from collections.abc import Coroutine, Iterable, Mapping
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.aws.network import tags_of
from pergola.cloud.errors import CloudError, Unauthorized
from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.resources import kinds
from pergola.providers.aws.resources.efs.observe import observe_file_system
from pergola.providers.aws.resources.iam.observe import (
    observe_profile_and_role,
    observe_role_policy,
)
from pergola.providers.aws.resources.key_pair import observe_key_pair
from pergola.providers.aws.resources.observation import Observation, Query, describe
from pergola.providers.aws.resources.route_quota import may_exceed, observe_route_quota
from pergola.providers.aws.resources.vpc_observation import (
    DNS,
    find_vpc,
    observe_dns,
    observe_vpc,
)
from pergola.providers.aws.snapshot import Snapshot
from pergola.providers.aws.status import vpc_id
from pergola.runtime.failures import Failures

Pending = Coroutine[object, object, None]


async def observe(
    aws: AwsClient, desired: Desired, state: State, *, for_deletion: bool = False
) -> Snapshot:
    """Return AWS's descriptions of a cluster's infrastructure; only reads.

    Missing resources are simply absent. The VPC is that of the config or of the state; if neither
    has one, it is found by its tags.

    Args:
        for_deletion: without the attributes of the VPC and quotas, which are not needed then.

    Raises:
        CloudError: a request failed; Failures if several failed for different reasons.
        ExtensionError: several VPCs have the tags of this cluster.
    """
    seen = Observation(aws=aws, desired=desired, state=state, vpc=vpc_id(desired, state))
    account = _of_account(seen, for_deletion=for_deletion)
    if seen.vpc:
        contents = _of_vpc(seen, for_deletion=for_deletion)
        await _together(*account, observe_vpc(seen), *contents)
    else:
        # Without an id, the contents of the VPC can be requested only once the VPC is found.
        await _together(*account, find_vpc(seen))
        if seen.snapshot.vpc:
            await _together(*_of_vpc(seen, for_deletion=for_deletion))
    await _together(*_elsewhere(seen))
    return seen.snapshot


def named_subnets(desired: Desired) -> list[str]:
    """Return the ids of the subnets that the config names."""
    return [
        id_
        for zone in desired.config.networks.zones
        for id_ in (zone.workers_subnet_id, zone.public_subnet_id, zone.internal_subnet_id)
        if id_
    ]


def _of_account(seen: Observation, *, for_deletion: bool) -> Iterable[Pending]:
    """Read resources that are identified by names or tags, with or without a VPC."""
    if not for_deletion and may_exceed(seen.desired):
        yield observe_route_quota(seen)
    yield observe_key_pair(seen)
    yield observe_profile_and_role(seen)
    yield observe_role_policy(seen)
    if seen.desired.config.wants_efs:
        yield observe_file_system(seen)
    yield from (query.run(seen) for query in _ACCOUNT if query.needed(seen))


def _of_vpc(seen: Observation, *, for_deletion: bool) -> Iterable[Pending]:
    if not for_deletion:
        yield from (observe_dns(seen, attribute) for attribute in DNS)
    yield from (query.run(seen) for query in _VPC if query.needed(seen))


def _elsewhere(seen: Observation) -> Iterable[Pending]:
    """Read resources named in the config that are not in the VPC."""
    group = seen.desired.config.networks.nodes_security_group_id
    for kind, named, known, by in (
        (kinds.SUBNET, named_subnets(seen.desired), seen.snapshot.subnets, "subnet-id"),
        (kinds.FOREIGN_GROUP, [group], seen.snapshot.security_groups, "group-id"),
    ):
        missing = [id_ for id_ in named if id_ and id_ not in known]
        if missing:
            # A filter, because an unknown id is not an error in that case.
            yield describe(seen, kind, [{"Name": by, "Values": missing}])


# Conditions and results of requests


def _needs_addresses(seen: Observation) -> bool:
    config = seen.desired.config
    named = any(zone.elastic_ip_allocation_id for zone in config.networks.zones)
    return config.has_public_zone or named or any(keys.in_zones(seen.state, keys.ADDRESS))


def _has_managed_vpc(seen: Observation) -> bool:
    return not seen.desired.config.byo_vpc


def _needs_internet_gateways(seen: Observation) -> bool:
    return _has_managed_vpc(seen) or seen.desired.config.has_public_zone


def _needs_egress_only_gateways(seen: Observation) -> bool:
    known = seen.state.get(keys.EGRESS_ONLY_GATEWAY)
    return known is not None or (seen.desired.ipv6 and not seen.desired.config.byo_subnets)


def _needs_endpoints(seen: Observation) -> bool:
    """Return whether to read endpoints, which user-provided subnets may have as well."""
    config = seen.desired.config
    configured = config.networks.vpc.gateway_endpoints or seen.state.under(keys.ENDPOINTS)
    return bool(configured) or config.byo_subnets


def _by_cluster_tag(seen: Observation) -> Mapping[str, str]:
    return {"tag-key": seen.desired.cluster_tag}


def _by_attachment(seen: Observation) -> Mapping[str, str]:
    if seen.desired.config.byo_vpc:
        return {"attachment.vpc-id": seen.vpc}
    return _by_cluster_tag(seen)


def _addresses(seen: Observation) -> Mapping[str, str]:
    """Return all of the account if the config names some: no filter combines tags and ids."""
    return {} if any(_named_addresses(seen)) else _by_cluster_tag(seen)


def _all(seen: Observation) -> Mapping[str, str]:
    del seen
    return {}


def _is_of_cluster(seen: Observation, address: JsonObject) -> bool:
    is_named = address.get("AllocationId") in _named_addresses(seen)
    return is_named or seen.desired.cluster_tag in tags_of(address)


def _is_attached_or_ours(seen: Observation, gateway: JsonObject) -> bool:
    attached = {attachment.get("VpcId") for attachment in gateway.get("Attachments") or ()}
    return (bool(seen.vpc) and seen.vpc in attached) or seen.desired.owns(tags_of(gateway))


def _named_addresses(seen: Observation) -> set[str | None]:
    return {zone.elastic_ip_allocation_id for zone in seen.desired.config.networks.zones} - {None}


_ACCOUNT: Final = (
    Query(kind=kinds.ADDRESS, needed=_needs_addresses, filters=_addresses, keep=_is_of_cluster),
    Query(kind=kinds.DHCP_OPTIONS, needed=_has_managed_vpc, filters=_by_cluster_tag),
    Query(kind=kinds.INTERNET_GATEWAY, needed=_needs_internet_gateways, filters=_by_attachment),
    Query(  # no filter exists for the VPC; an account has few of them
        kind=kinds.EGRESS_ONLY_GATEWAY,
        needed=_needs_egress_only_gateways,
        filters=_all,
        keep=_is_attached_or_ours,
    ),
)
_VPC: Final = (
    Query(kind=kinds.SUBNET),
    Query(kind=kinds.ROUTE_TABLE),
    Query(kind=kinds.SECURITY_GROUP),
    Query(kind=kinds.NAT_GATEWAY),
    Query(kind=kinds.ENDPOINT, needed=_needs_endpoints),
)


async def _together(*pending: Pending) -> None:
    """Await all; report every missing permission, and the first other failure of each kind.

    Requests sent together usually suffer from the same problem.
    """
    outcomes = await asyncio.gather(*pending, return_exceptions=True)
    failures: dict[object, CloudError] = {}
    for outcome in outcomes:
        if isinstance(outcome, CloudError):
            kind = str(outcome) if isinstance(outcome, Unauthorized) else type(outcome)
            failures.setdefault(kind, outcome)
        elif isinstance(outcome, BaseException):
            raise outcome
    if len(failures) == 1:
        raise next(iter(failures.values()))
    if failures:
        raise Failures("AWS could not be read", list(failures.values()))
