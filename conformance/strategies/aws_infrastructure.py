"""InfrastructureConfigs."""

from typing import Any, Final

from hypothesis import strategies as st
from hypothesis.strategies import SearchStrategy

from conformance.strategies.aws import RANGES, TYPES, ZONE_NAMES, ZONES, config, ids
from conformance.strategies.fields import BOOLEANS, free, or_absent
from pergola.api.objects import JsonObject

VPC: Final = "10.250.0.0/16"


def _managed(number: int) -> JsonObject:
    third = 64 * number
    return {
        "name": ZONES[number],
        "workers": f"10.250.{third}.0/19",
        "public": f"10.250.{third + 32}.0/20",
        "internal": f"10.250.{third + 48}.0/20",
    }


def _byo(number: int) -> JsonObject:
    return {
        "name": ZONES[number],
        "workersSubnetID": f"subnet-w{number}",
        "publicSubnetID": f"subnet-p{number}",
        "internalSubnetID": f"subnet-i{number}",
    }


def _infrastructure(vpc: JsonObject, zones: list[JsonObject], **more: Any) -> JsonObject:
    return config("InfrastructureConfig", {"networks": {"vpc": vpc, "zones": zones}, **more})


BASES: Final = (
    _infrastructure({"cidr": VPC}, [_managed(0)]),
    _infrastructure({"cidr": VPC}, [_managed(0), _managed(1), _managed(2)]),
    _infrastructure(
        {"id": "vpc-0a1b2c3d", "gatewayEndpoints": ["s3"]},
        [_managed(0), {**_managed(1), "elasticIPAllocationID": "eipalloc-1"}],
        ignoreTags={"keys": ["owner"], "keyPrefixes": ["team/"]},
        elasticFileSystem={"enabled": True},
        enableDedicatedTenancyForVPC=True,
    ),
    _infrastructure(
        {"id": "vpc-0a1b2c3d"},
        [_byo(0), _byo(1)],
        elasticFileSystem={"enabled": True, "id": "fs-0a1b2c3d"},
    ),
    _infrastructure({"id": "vpc-0a1b2c3d"}, [{"name": ZONES[0], "workersSubnetID": "subnet-1"}]),
    _infrastructure(
        {"cidr": VPC, "ipv6IpamPool": {"id": "ipam-pool-1", "cidrBlock": "2001:db8::/56"}},
        [_managed(0)],
        dualStack={"enabled": True},
    ),
)
"""Valid ones; the last one for a Shoot with IPv6."""

_TAGS: Final = st.sampled_from(
    ["owner", "", "Name", "Nam", "N", "NameX", "kubernetes.io/cluster/a", "kubernetes", "k"]
) | st.sampled_from(
    ["gardener.cloud/role", "gardener.cloud", "g", "a b", "ä", "a\n", "a*", "x" * 128, "x" * 129]
)
_ENDPOINTS: Final = st.sampled_from(
    ["s3", "dynamodb", "ec2.x", "", "S3", "-a", "a-", "a_b", "a..b", "a" * 64, "a" * 254, "1", "ä"]
)
_ZONES: Final = st.lists(
    st.sampled_from([*map(_managed, range(3)), *map(_byo, range(3)), {"name": ZONES[3]}, {}]),
    max_size=4,
)


def _zone(number: int) -> dict[str, SearchStrategy[Any]]:
    path = f"networks.zones.{number}"
    absent = or_absent()
    return {
        f"{path}.name": ZONE_NAMES | absent,
        **dict.fromkeys(
            [f"{path}.workers", f"{path}.public", f"{path}.internal"], RANGES | RANGES | absent
        ),
        **dict.fromkeys(
            [f"{path}.workersSubnetID", f"{path}.publicSubnetID", f"{path}.internalSubnetID"],
            ids("subnet") | absent,
        ),
        f"{path}.elasticIPAllocationID": ids("eipalloc") | absent,
    }


TYPED: Final[dict[str, SearchStrategy[Any]]] = {
    "networks.vpc.id": ids("vpc") | or_absent(),
    "networks.vpc.cidr": RANGES | or_absent(),
    "networks.vpc.gatewayEndpoints": st.lists(_ENDPOINTS, max_size=3) | or_absent(),
    "networks.vpc.ipv6IpamPool.id": st.sampled_from(["ipam-pool-1", "", "x"]) | or_absent(),
    "networks.vpc.ipv6IpamPool.cidrBlock": RANGES | or_absent("2001:db8::/56", "2001:db8:1::/56"),
    "networks.zones": _ZONES,
    **_zone(0),
    **_zone(1),
    "networks.nodesSecurityGroupID": ids("sg") | or_absent(),
    "enableECRAccess": BOOLEANS,
    "enableDedicatedTenancyForVPC": BOOLEANS,
    "enableMTUCustomizer": BOOLEANS,
    "dualStack.enabled": BOOLEANS,
    "ignoreTags.keys": st.lists(_TAGS, max_size=2) | or_absent(),
    "ignoreTags.keyPrefixes": st.lists(_TAGS, max_size=2) | or_absent(),
    "elasticFileSystem.enabled": BOOLEANS,
    "elasticFileSystem.id": ids("fs") | or_absent(),
}
"""Fields with values of the right types."""
FIELDS: Final = free(TYPED | TYPES)
"""Fields with any values."""
