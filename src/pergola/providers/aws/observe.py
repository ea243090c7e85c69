"""One look at all of AWS that concerns a cluster (spec 30 §13).

Everything is asked for at the same time, and by the VPC or by tags, so that the number of requests
does not depend on the number of zones: at most 14 for a network that is created, and 12 for one
that is brought.
"""

import asyncio
from collections.abc import Coroutine, Iterable
from typing import Final

from pergola.api.objects import JsonObject
from pergola.cloud.aws import AwsClient
from pergola.cloud.errors import CloudError, NotFound, Unauthorized
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.snapshot import Snapshot, tags_of
from pergola.providers.aws.status import file_system_of, vpc_id
from pergola.providers.aws.wanted import Wanted

_DNS: Final = ("enableDnsSupport", "enableDnsHostnames")


async def observe(aws: AwsClient, wanted: Wanted, state: State) -> Snapshot:
    """What AWS says of a cluster's network; only reads.

    What does not exist is not in the answer. The VPC is that of the config or of the state; if
    neither knows one, it is looked for by its tags.

    Raises:
        CloudError: a request failed; if several did for different reasons, an ExceptionGroup.
        ExtensionError: several VPCs have the tags of this cluster.
    """
    look = _Look(aws, wanted, state)
    await look.at_all()
    return look.found


class _Look:
    def __init__(self, aws: AwsClient, wanted: Wanted, state: State) -> None:
        self.aws = aws
        self.wanted = wanted
        self.state = state
        self.found = Snapshot()
        self.vpc = vpc_id(wanted, state)

    async def at_all(self) -> None:
        if self.vpc:
            await _together(*self._of_account(), self._look_at_vpc(), *self._in_vpc())
        else:
            # Without an id, what is in the VPC can only be asked for once the VPC is found.
            await _together(*self._of_account(), self._find_vpc())
            await _together(*(self._in_vpc() if self.found.vpc else ()))
        await _together(self._foreign_subnets(), self._foreign_groups())

    def _of_account(self) -> Iterable[Coroutine[object, object, None]]:
        """What is known by its name or tags, with or without a VPC."""
        yield self._key_pair()
        yield self._instance_profile()
        yield self._role_policy()
        if self._wants_addresses():
            yield self._addresses()
        if not self.wanted.config.brings_vpc:
            yield self._dhcp_of_ours()
        if self._wants_gateways():
            yield self._internet_gateways()
        if self._wants_egress_only():
            yield self._egress_only_gateways()
        if self.wanted.config.wants_efs:
            yield self._file_system()

    def _in_vpc(self) -> Iterable[Coroutine[object, object, None]]:
        found = self.found
        yield from (self._attribute(name) for name in _DNS)
        yield self._list("DescribeSubnets", "Subnets", "SubnetId", found.subnets)
        yield self._list("DescribeRouteTables", "RouteTables", "RouteTableId", found.route_tables)
        yield self._list(
            "DescribeSecurityGroups", "SecurityGroups", "GroupId", found.security_groups
        )
        yield self._list(
            "DescribeNatGateways", "NatGateways", "NatGatewayId", found.nat_gateways, by="Filter"
        )
        if self._wants_endpoints():
            yield self._list(
                "DescribeVpcEndpoints", "VpcEndpoints", "VpcEndpointId", found.endpoints
            )

    # What is needed

    def _wants_addresses(self) -> bool:
        config = self.wanted.config
        named = any(zone.elastic_ip_allocation_id for zone in config.networks.zones)
        return config.has_public_zone or named or any(keys.in_zones(self.state, keys.ADDRESS))

    def _wants_gateways(self) -> bool:
        return not self.wanted.config.brings_vpc or self.wanted.config.has_public_zone

    def _wants_egress_only(self) -> bool:
        known = self.state.get(keys.EGRESS_ONLY_GATEWAY)
        return known is not None or (self.wanted.ipv6 and not self.wanted.config.brings_subnets)

    def _wants_endpoints(self) -> bool:
        """Also if subnets are brought: what they reach may be behind the user's endpoints."""
        config = self.wanted.config
        wanted = config.networks.vpc.gateway_endpoints or self.state.under(keys.ENDPOINTS)
        return bool(wanted) or config.brings_subnets

    # The VPC

    async def _look_at_vpc(self) -> None:
        vpcs = await self._pages("DescribeVpcs", "Vpcs", vpc_id=self.vpc)
        self.found.vpc = vpcs[0] if vpcs else None
        if self.found.vpc is not None and self.wanted.config.brings_vpc:
            await self._dhcp_of_vpc(self.found.vpc)

    async def _find_vpc(self) -> None:
        """The VPC that was created for this cluster, if the state forgot it."""
        filters = {f"tag:{key}": value for key, value in self._named().items()}
        vpcs = [
            vpc
            for vpc in await self._pages("DescribeVpcs", "Vpcs", **filters)
            if self.wanted.owns(tags_of(vpc))
        ]
        if len(vpcs) > 1:
            names = ", ".join(sorted(vpc["VpcId"] for vpc in vpcs))
            raise ExtensionError(
                f'multiple matches: {names} all have the tags of "{self.wanted.name()}"; delete '
                "those that the cluster does not use",
                Code.CONFIGURATION_PROBLEM,
            )
        if vpcs:
            self.found.vpc, self.vpc = vpcs[0], vpcs[0]["VpcId"]

    async def _attribute(self, name: str) -> None:
        try:
            answer = await self.aws.call(
                "ec2", "DescribeVpcAttribute", VpcId=self.vpc, Attribute=name
            )
        except NotFound:
            return
        key = name[0].upper() + name[1:]
        self.found.vpc_attributes[name] = bool((answer.get(key) or {}).get("Value"))

    async def _dhcp_of_vpc(self, vpc: JsonObject) -> None:
        options = vpc.get("DhcpOptionsId")
        await self._list(
            "DescribeDhcpOptions",
            "DhcpOptions",
            "DhcpOptionsId",
            self.found.dhcp_options,
            dhcp_options_id=str(options),
        )

    async def _dhcp_of_ours(self) -> None:
        await self._list(
            "DescribeDhcpOptions",
            "DhcpOptions",
            "DhcpOptionsId",
            self.found.dhcp_options,
            tag_key=self.wanted.cluster_tag,
        )

    # Gateways and addresses

    async def _internet_gateways(self) -> None:
        by = (
            {"attachment.vpc-id": self.vpc}
            if self.wanted.config.brings_vpc
            else {"tag-key": self.wanted.cluster_tag}
        )
        await self._list(
            "DescribeInternetGateways",
            "InternetGateways",
            "InternetGatewayId",
            self.found.internet_gateways,
            **by,
        )

    async def _egress_only_gateways(self) -> None:
        """There is no filter for the VPC; an account has few of them."""
        for each in await self.aws.pages(
            "ec2", "DescribeEgressOnlyInternetGateways", "EgressOnlyInternetGateways"
        ):
            attached = {attachment.get("VpcId") for attachment in each.get("Attachments") or ()}
            if (self.vpc and self.vpc in attached) or self.wanted.owns(tags_of(each)):
                self.found.egress_only_gateways[each["EgressOnlyInternetGatewayId"]] = each

    async def _addresses(self) -> None:
        """With addresses of the user, all of the account: no filter means tags or ids."""
        named = {zone.elastic_ip_allocation_id for zone in self.wanted.config.networks.zones}
        by = {} if any(named) else {"tag-key": self.wanted.cluster_tag}
        for address in await self._pages("DescribeAddresses", "Addresses", **by):
            name = address.get("AllocationId")
            if name in named or self.wanted.cluster_tag in tags_of(address):
                self.found.addresses[str(name)] = address

    # What the config names and the VPC does not have

    async def _foreign_subnets(self) -> None:
        missing = [name for name in named_subnets(self.wanted) if name not in self.found.subnets]
        if missing:
            filters = [{"Name": "subnet-id", "Values": missing}]
            for subnet in await self.aws.pages(
                "ec2", "DescribeSubnets", "Subnets", Filters=filters
            ):
                self.found.subnets[subnet["SubnetId"]] = subnet

    async def _foreign_groups(self) -> None:
        networks = self.wanted.config.networks
        named = [networks.nodes_security_group_id, *networks.additional_nodes_security_group_ids]
        missing = [name for name in named if name and name not in self.found.security_groups]
        if missing:
            filters = [{"Name": "group-id", "Values": missing}]
            for group in await self.aws.pages(
                "ec2", "DescribeSecurityGroups", "SecurityGroups", Filters=filters
            ):
                self.found.foreign_groups[group["GroupId"]] = group

    # Identity of the nodes

    async def _key_pair(self) -> None:
        name = self.state.get(keys.KEY_PAIR) or self.wanted.name("ssh-publickey")
        pairs = await self._pages("DescribeKeyPairs", "KeyPairs", key_name=name)
        self.found.key_pair = pairs[0] if pairs else None

    async def _instance_profile(self) -> None:
        """The profile tells its role too; the role is only asked for if it does not."""
        nodes = self.wanted.name("nodes")
        name = self.state.get(keys.INSTANCE_PROFILE_NAME) or nodes
        role = self.state.get(keys.ROLE_NAME) or nodes
        found = await self._iam("GetInstanceProfile", InstanceProfileName=name)
        self.found.instance_profile = found and found["InstanceProfile"]
        inside = self.found.instance_profile or {}
        roles = [each for each in inside.get("Roles") or () if each["RoleName"] == role]
        if roles:
            self.found.role = roles[0]
        else:
            answer = await self._iam("GetRole", RoleName=role)
            self.found.role = answer and answer["Role"]

    async def _role_policy(self) -> None:
        nodes = self.wanted.name("nodes")
        self.found.role_policy = await self._iam(
            "GetRolePolicy",
            RoleName=self.state.get(keys.ROLE_NAME) or nodes,
            PolicyName=self.state.get(keys.ROLE_POLICY_NAME) or nodes,
        )

    async def _file_system(self) -> None:
        name = file_system_of(self.wanted, self.state)
        if not (name or self.wanted.shoot_uid):
            return
        by = {"FileSystemId": name} if name else {"CreationToken": self.wanted.shoot_uid}
        try:
            systems = await self.aws.pages("efs", "DescribeFileSystems", "FileSystems", **by)
        except NotFound:
            return
        for system in systems[:1]:
            self.found.file_system = system
            for target in await self.aws.pages(
                "efs", "DescribeMountTargets", "MountTargets", FileSystemId=system["FileSystemId"]
            ):
                self.found.mount_targets[target["MountTargetId"]] = target

    # How it is asked

    def _named(self) -> dict[str, str]:
        tags = self.wanted.tags()
        del tags[self.wanted.cluster_tag]
        return tags

    async def _list(
        self,
        operation: str,
        items: str,
        name: str,
        into: dict[str, JsonObject],
        *,
        by: str = "Filters",
        **filters: str,
    ) -> None:
        asked = filters or {"vpc-id": self.vpc}
        for each in await self._pages(operation, items, by=by, **asked):
            into[each[name]] = each

    async def _pages(
        self, operation: str, items: str, *, by: str = "Filters", **filters: str
    ) -> list[JsonObject]:
        """By filters; underscores in their names stand for hyphens."""
        asked = [
            {"Name": name if name.startswith("tag:") else name.replace("_", "-"), "Values": [value]}
            for name, value in filters.items()
        ]
        return await self.aws.pages("ec2", operation, items, **({by: asked} if asked else {}))

    async def _iam(self, operation: str, **parameters: str) -> JsonObject | None:
        try:
            return await self.aws.call("iam", operation, **parameters)
        except NotFound:
            return None


def named_subnets(wanted: Wanted) -> list[str]:
    """The subnets that the config names."""
    return [
        name
        for zone in wanted.config.networks.zones
        for name in (zone.workers_subnet_id, zone.public_subnet_id, zone.internal_subnet_id)
        if name
    ]


async def _together(*looks: Coroutine[object, object, None]) -> None:
    """All at once.

    All permissions that are missing are told; of other failures the first of each kind, for
    whatever one request suffers from, its neighbours do too.
    """
    outcomes = await asyncio.gather(*looks, return_exceptions=True)
    failures = [outcome for outcome in outcomes if isinstance(outcome, BaseException)]
    for failure in failures:
        if not isinstance(failure, CloudError):
            raise failure
    told: dict[object, CloudError] = {}
    for failure in failures:
        if isinstance(failure, CloudError):
            kind = str(failure) if isinstance(failure, Unauthorized) else type(failure)
            told.setdefault(kind, failure)
    if len(told) == 1:
        raise next(iter(told.values()))
    if told:
        raise ExceptionGroup("AWS could not be read", list(told.values()))
