"""Checks of user-provided security groups, elastic IPs and file systems (§5 L10, L12, L13)."""

from collections.abc import Iterator

from pergola.api.field_errors import invalid
from pergola.api.objects import JsonObject
from pergola.cloud.aws.network import tags_of
from pergola.providers.aws.desired import Desired
from pergola.providers.aws.preflight.finding import Finding, ec2, efs, not_found, zone_path
from pergola.providers.aws.snapshot import Snapshot


def check(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    """Yield findings about security groups, elastic IPs and file systems."""
    networks = desired.config.networks
    if networks.nodes_security_group_id:
        yield from _group(desired, snapshot, networks.nodes_security_group_id)
    for index, zone in enumerate(networks.zones):
        if zone.elastic_ip_allocation_id:
            path = zone_path(index, "elasticIPAllocationID")
            yield from _address(desired, snapshot, zone.elastic_ip_allocation_id, path)
    yield from _file_system(desired, snapshot)


def _group(desired: Desired, snapshot: Snapshot, name: str) -> Iterator[Finding]:
    path = "networks.nodesSecurityGroupID"
    if name in snapshot.security_groups:
        return
    vpc = desired.config.networks.vpc.id
    fix = ec2(
        desired,
        f"describe-security-groups --filters Name=vpc-id,Values={vpc} "
        "--query 'SecurityGroups[].[GroupId,GroupName]' --output text",
    )
    foreign = snapshot.foreign_groups.get(name)
    if foreign is None:
        text = f"security group {name} has not been found in {desired.region}"
        yield Finding(not_found(path, name, text), fix)
    else:
        text = f"security group {name} is in VPC {foreign.get('VpcId')}, not in {vpc}"
        yield Finding(invalid(path, name, text), fix)


def _address(desired: Desired, snapshot: Snapshot, name: str, path: str) -> Iterator[Finding]:
    address = snapshot.addresses.get(name)
    if address is None:
        text = f"elastic IP {name} has not been found in {desired.region}"
        fix = ec2(desired, "allocate-address --domain vpc --query AllocationId --output text")
        yield Finding(not_found(path, name, text), fix)
        return
    association = address.get("AssociationId")
    if association and not _is_of_our_nat(desired, snapshot, name):
        text = (
            f"elastic IP {name} is in use ({_user(address)}); it must be free, or that of a NAT "
            "gateway of this cluster"
        )
        command = f"disassociate-address --association-id {association}"
        yield Finding(invalid(path, name, text), ec2(desired, command))


def _user(address: JsonObject) -> str:
    user = address.get("InstanceId") or address.get("NetworkInterfaceId")
    return str(user or address.get("AssociationId"))


def _is_of_our_nat(desired: Desired, snapshot: Snapshot, allocation: str) -> bool:
    return any(
        each.get("AllocationId") == allocation
        for nat in snapshot.nat_gateways.values()
        if desired.cluster_tag in tags_of(nat)
        for each in nat.get("NatGatewayAddresses") or ()
    )


def _file_system(desired: Desired, snapshot: Snapshot) -> Iterator[Finding]:
    config, path = desired.config.elastic_file_system, "elasticFileSystem.id"
    if config is None or not config.enabled or not config.id:
        return
    if snapshot.file_system is None:
        text = f"file system {config.id} has not been found in {desired.region}"
        listed = "describe-file-systems --query 'FileSystems[].[FileSystemId,Name]' --output text"
        yield Finding(not_found(path, config.id, text), efs(desired, listed))
        return
    vpc = desired.config.networks.vpc.id
    elsewhere = {str(target.get("VpcId")) for target in snapshot.mount_targets.values()} - {vpc}
    if vpc and elsewhere:
        others = ", ".join(sorted(elsewhere))
        text = f"the mount targets of file system {config.id} are in VPC {others}, not in {vpc}"
        fix = "create-file-system --encrypted --query FileSystemId --output text"
        yield Finding(invalid(path, config.id, text), efs(desired, fix))
