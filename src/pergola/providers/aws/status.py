"""`InfrastructureStatus` and the other fields of the status that others read (spec 30 §1.2)."""

from collections.abc import Iterator, Sequence
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.flow import State
from pergola.providers.aws import state as keys
from pergola.providers.aws.config import GROUP, Zone
from pergola.providers.aws.desired import Desired

INFRASTRUCTURE_STATUS: Final = GroupVersionKind(GROUP, "v1alpha1", "InfrastructureStatus")
NODES: Final = "nodes"
PUBLIC: Final = "public"
INTERNAL: Final = "internal"


def provider_status(desired: Desired, state: State) -> JsonObject:
    """Return `status.providerStatus`: identical for the same config and state.

    Subnets are in the order of the config's zones; consumers take the first of a purpose.
    """
    status: JsonObject = {
        "apiVersion": INFRASTRUCTURE_STATUS.api_version,
        "kind": INFRASTRUCTURE_STATUS.kind,
        "ec2": {"keyName": state.get(keys.KEY_PAIR) or ""},
        "iam": _iam(state),
        "vpc": _vpc(desired, state),
    }
    file_system = file_system_of(desired, state)
    if file_system:
        status["elasticFileSystem"] = {"ID": file_system}
    return status


def egress_cidrs(state: State) -> list[str]:
    """Return `status.egressCIDRs`: the sources of the cluster's traffic; empty if unknown.

    NAT gateways' addresses come first, then the IPv6 block, if the range of Services is known.
    """
    cidrs = [cidr for cidr in (state.get(keys.EGRESS_CIDRS) or "").split(",") if cidr]
    block = _block(state)
    return list(dict.fromkeys([*cidrs, *([block] if block else [])]))


def networking(desired: Desired, state: State) -> JsonObject:
    """Return `status.networking`: ranges of nodes, pods and Services, IPv6 of AWS first."""
    block, services = _block(state), state.get(keys.SERVICE_CIDR) if _block(state) else None
    return {
        "nodes": _ranges(block, (desired.node_range,)),
        "pods": _ranges(block, desired.pod_ranges),
        "services": _ranges(services, desired.service_ranges),
    }


def full_status(desired: Desired, state: State) -> JsonObject:
    """Return all fields of `status` that a successful reconciliation writes.

    An empty list of egress CIDRs becomes null: a merge patch then clears the previous value.
    """
    return {
        "providerStatus": provider_status(desired, state),
        "state": keys.state_object(state.snapshot()),
        "egressCIDRs": egress_cidrs(state) or None,
        "networking": networking(desired, state),
    }


def vpc_id(desired: Desired, state: State) -> str:
    """Return the VPC of the config, or the managed one; empty if there is none yet."""
    return desired.config.networks.vpc.id or state.get(keys.VPC) or ""


def nodes_security_group(desired: Desired, state: State) -> str:
    """Return the nodes' security group: that of the config, or the managed one; empty if none."""
    group = desired.config.networks.nodes_security_group_id
    return group or state.get(keys.NODES_SECURITY_GROUP) or ""


def file_system_of(desired: Desired, state: State) -> str:
    """Return the file system: that of the config, or the managed one; empty without EFS."""
    config = desired.config.elastic_file_system
    if config is None or not config.enabled:
        return ""
    return config.id or state.get(keys.FILE_SYSTEM) or ""


def subnets_of(zone: Zone, state: State) -> Iterator[tuple[str, str]]:
    """Yield purpose and id of a zone's subnets: those of the config, else those of the state."""
    for purpose, named, key in (
        (NODES, zone.workers_subnet_id, keys.SUBNET_WORKERS),
        (PUBLIC, zone.public_subnet_id, keys.SUBNET_PUBLIC),
        (INTERNAL, zone.internal_subnet_id, keys.SUBNET_INTERNAL),
    ):
        subnet = named or state.get(keys.zone_key(zone.name, key))
        if subnet:
            yield purpose, subnet


def _vpc(desired: Desired, state: State) -> JsonObject:
    name = vpc_id(desired, state)
    networks = desired.config.networks
    found = [
        {"purpose": purpose, "id": subnet, "zone": zone.name}
        for zone in networks.zones
        for purpose, subnet in subnets_of(zone, state)
    ]
    group = nodes_security_group(desired, state)
    return {
        "id": name,
        "subnets": found if name else [],
        "securityGroups": [{"purpose": NODES, "id": group}] if group else [],
    }


def _iam(state: State) -> JsonObject:
    profile, arn = state.get(keys.INSTANCE_PROFILE_NAME), state.get(keys.ROLE_ARN)
    return {
        "instanceProfiles": [{"purpose": NODES, "name": profile}] if profile else [],
        "roles": [{"purpose": NODES, "arn": arn}] if arn else [],
    }


def _block(state: State) -> str | None:
    """Return the VPC's IPv6 block, which counts only together with a range of Services."""
    return state.get(keys.VPC_IPV6_BLOCK) if state.get(keys.SERVICE_CIDR) else None


def _ranges(first: str | None, others: Sequence[str]) -> list[str]:
    return list(dict.fromkeys(cidr for cidr in (first, *others) if cidr))
