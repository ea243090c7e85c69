"""`InfrastructureState`: the keys under which a flow remembers resources (spec 30 §1.3).

The keys are those of existing clusters. Unlisted keys stay unchanged.
"""

from collections.abc import Iterator, Mapping
from typing import Final

from pergola.api.objects import GroupVersionKind, JsonObject
from pergola.extension_api.errors import Code, ExtensionError
from pergola.flow import State
from pergola.providers.aws.config import GROUP

INFRASTRUCTURE_STATE: Final = GroupVersionKind(GROUP, "v1alpha1", "InfrastructureState")

VPC: Final = "VPC"
VPC_IPV6_BLOCK: Final = "VPCIPv6CidrBlock"
DHCP_OPTIONS: Final = "DHCPOptions"
DEFAULT_SECURITY_GROUP: Final = "DefaultSecurityGroup"
NODES_SECURITY_GROUP: Final = "NodesSecurityGroup"
INTERNET_GATEWAY: Final = "InternetGateway"
EGRESS_ONLY_GATEWAY: Final = "EgressOnlyInternetGateway"
MAIN_ROUTE_TABLE: Final = "MainRouteTable"
EGRESS_CIDRS: Final = "EgressCIDRs"
"""Separated by commas."""
SERVICE_CIDR: Final = "ServiceCIDR"

ROLE_NAME: Final = "IAMRoleName"
ROLE_ARN: Final = "IAMRoleARN"
ROLE_POLICY_NAME: Final = "IAMRolePolicyName"
INSTANCE_PROFILE_NAME: Final = "IAMInstanceProfileName"

KEY_PAIR: Final = "KeyPair"
KEY_PAIR_FINGERPRINT: Final = "KeyPairFingerprint"
KEY_PAIR_SPEC_FINGERPRINT: Final = "KeyPairSpecFingerprint"

FILE_SYSTEM: Final = "efsSystemID"
MOUNT_TARGETS: Final = "efsMountTargets"
"""Mount targets are below it, by file system, subnet and security group."""
ENDPOINTS: Final = "VPCEndpoints"
"""Gateway endpoints are below it, by the short names of their services."""
ZONES: Final = "Zones"
"""Zones are below it, by their names."""
TAGGED: Final = "TaggedByPergola"
"""Records of our tags on user-provided resources are below it, by the resources' ids."""

SUFFIX: Final = "Suffix"
SUBNET_WORKERS: Final = "SubnetWorkers"
SUBNET_PUBLIC: Final = "SubnetPublicUtility"
SUBNET_INTERNAL: Final = "SubnetPrivateUtility"
SUBNET_WORKERS_CIDR: Final = "SubnetWorkersCIDR"
SUBNET_PUBLIC_CIDR: Final = "SubnetPublicUtilityCIDR"
SUBNET_INTERNAL_CIDR: Final = "SubnetPrivateUtilityCIDR"
SUBNET_WORKERS_IPV6_CIDR: Final = "SubnetWorkersIPv6CIDR"
SUBNET_PUBLIC_IPV6_CIDR: Final = "SubnetPublicUtilityIPv6CIDR"
SUBNET_INTERNAL_IPV6_CIDR: Final = "SubnetPrivateUtilityIPv6CIDR"
ADDRESS: Final = "NATGatewayElasticIP"
NAT_GATEWAY: Final = "NATGateway"
ROUTE_TABLE: Final = "ZoneRouteTable"
ASSOCIATION_WORKERS: Final = "SubnetWorkersRouteTableAssoc"
ASSOCIATION_PUBLIC: Final = "SubnetPublicRouteTableAssoc"
ASSOCIATION_INTERNAL: Final = "SubnetPrivateRouteTableAssoc"

BALANCERS_DESTROYED: Final = "LoadBalancersAndSecurityGroupsDestroyed"
TRUE: Final = "true"
"""The value of markers."""

_TERRAFORM: Final = ("terraform_version", "encoding", "lineage")


def zone_key(zone: str, key: str) -> str:
    """Return the key of a zone's property: `Zones/eu-west-1a/NATGateway`."""
    return f"{ZONES}/{zone}/{key}"


def endpoint_key(service: str) -> str:
    """Return the key of the gateway endpoint of a service, such as `s3`."""
    return f"{ENDPOINTS}/{service}"


def mount_target_key(file_system: str, subnet: str, group: str = "") -> str:
    """Return the key of a mount target; without its security group if it is the user's."""
    return f"{MOUNT_TARGETS}/{'_'.join(part for part in (file_system, subnet, group) if part)}"


def tagged_key(thing: str) -> str:
    """Return the key of the record of our tags on a user-provided resource."""
    return f"{TAGGED}/{thing}"


def zones_of(state: State) -> list[str]:
    """Return the names of the zones in the state, sorted."""
    names = (key.rpartition("/")[0] for key in state.under(ZONES))
    return sorted({name for name in names if name})


def in_zones(state: State, key: str) -> Iterator[tuple[str, str]]:
    """Yield the zones that have a property, with its value."""
    for zone in zones_of(state):
        value = state.get(zone_key(zone, key))
        if value:
            yield zone, value


def suffix_of(state: State, zone: str) -> str:
    """Return the `zN` of a zone, which never changes; a new zone gets the smallest free one."""
    known = state.get(zone_key(zone, SUFFIX))
    if known:
        return known
    taken = {suffix for _, suffix in in_zones(state, SUFFIX)}
    free = next(f"z{n}" for n in range(len(taken) + 1) if f"z{n}" not in taken)
    state.set(zone_key(zone, SUFFIX), free)
    return free


def read_state(raw: JsonObject | None) -> State:
    """Return the state in `status.state`; an empty one if there is none.

    Raises:
        ExtensionError: it was written by an older tool, or is not a state at all.
    """
    if not raw:
        return State()
    if any(key in raw for key in _TERRAFORM) and raw.get("kind") != INFRASTRUCTURE_STATE.kind:
        raise ExtensionError(
            "status.state is a Terraform state: reconcile the Infrastructure once with a "
            "release of the extension that converts it, then try again",
            Code.CONFIGURATION_PROBLEM,
        )
    if raw.get("kind") != INFRASTRUCTURE_STATE.kind:
        raise ExtensionError(
            f'status.state is of kind "{raw.get("kind", "")}", not {INFRASTRUCTURE_STATE.kind}: '
            "restore it from a backup of the Infrastructure",
            Code.CONFIGURATION_PROBLEM,
        )
    return State(_texts(raw.get("data") or {}))


def state_object(data: Mapping[str, str]) -> JsonObject:
    """Return the content of `status.state`, sorted, so that equal states are equal texts."""
    return {
        "apiVersion": INFRASTRUCTURE_STATE.api_version,
        "kind": INFRASTRUCTURE_STATE.kind,
        "data": dict(sorted(data.items())),
    }


def is_empty(state: State) -> bool:
    """Return whether nothing was ever created, so that there is nothing to delete (§9.1)."""
    return not any(state.snapshot().values())


def _texts(data: object) -> dict[str, str]:
    if isinstance(data, dict) and all(isinstance(value, str) for value in data.values()):
        return data
    raise ExtensionError(
        "status.state.data is not a map of strings: restore it from a backup of the Infrastructure",
        Code.CONFIGURATION_PROBLEM,
    )
